"""In languages that the tagger was not trained for, people need capitals and a known name, or certainty."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.doubts import believed, code_of, own_letters, readers
from app.engines.pii.names.programs import is_program
from app.engines.pii.names.tagger import TaggedSpan
from app.engines.pii.search.analyzer import Analyzer
from app.engines.pii.search.searching import Search

NAMELESS = {
    "tr": "Sipariş ettiğim kitaplar henüz gelmedi, ama kargo şirketi yarın teslim edileceğini söyledi.",
    "fi": "Tilaamani kirjat eivät ole vielä tulleet, mutta kuljetusliike sanoi niiden saapuvan huomenna.",
    "hu": "A megrendelt könyvek még nem érkeztek meg, de a futárcég szerint holnap itt lesznek nálunk.",
    "cs": "Objednané knihy zatím nedorazily, ale dopravce říkal, že by měly být zítra u nás doma.",
    "id": "Buku yang saya pesan belum sampai, tetapi kurir mengatakan bahwa besok akan tiba di rumah kami.",
    "da": "De bøger, som vi har bestilt, er ikke kommet endnu, men fragtmanden siger, at de er her i morgen.",
}
WITH_A_NAME = {
    "tr": "Sipariş ettiğim kitaplar henüz gelmedi, ama Daniel Schneider bunu yarın bize söyleyecek.",
    "fi": "Tilaamani kirjat eivät ole vielä tulleet, mutta Daniel Schneider sanoi niiden saapuvan.",
    "da": "De bøger, som vi har bestilt, er ikke kommet endnu, men Daniel Schneider siger, at de er her nu.",
}


def people(analyzer: Analyzer, text: str, **options: object) -> list[str]:
    spans = analyzer.analyze(text, DetectionOptions(**options))  # type: ignore[arg-type]
    return [text[span.start : span.end] for span in spans if span.label == "PERSON"]


def test_a_name_that_no_list_holds_is_found_in_a_short_english_text(analyzer: Analyzer) -> None:
    text = "This patient is called Mülgürt, ring today."
    assert code_of(text, "auto") == ""
    assert people(analyzer, text) == ["Mülgürt"]


@pytest.mark.parametrize("code", NAMELESS)
def test_text_that_names_nobody_has_no_people(analyzer: Analyzer, code: str) -> None:
    assert code_of(NAMELESS[code], "auto") == code
    assert people(analyzer, NAMELESS[code]) == []


@pytest.mark.parametrize("code", WITH_A_NAME)
def test_known_names_are_found_there(analyzer: Analyzer, code: str) -> None:
    assert people(analyzer, WITH_A_NAME[code]) == ["Daniel Schneider"]


def test_strict_doubts_nothing_and_a_given_language_is_believed(analyzer: Analyzer) -> None:
    text = NAMELESS["fi"]
    analyzer = Analyzer(Readers("kuljetusliike"))
    assert people(analyzer, text) == []
    assert people(analyzer, text, language="en") == people(analyzer, text, language="de-AT") != []
    assert set(people(analyzer, text, language="en")) <= set(people(analyzer, text, strict=True))


def test_a_name_keeps_its_particle_and_loses_small_words_around_it() -> None:
    text = "Sen jälkeen van Dijk tuli kotiin"

    def part(start: str, end: str, score: float = 0.9) -> str | None:
        first, last = text.index(start), text.index(end) + len(end)
        place = believed(text, first, last, score, "fi", lambda word: "l" if word == "dijk" else "")
        return None if place is None else text[slice(*place)]

    assert part("jälkeen", "tuli") == "van Dijk"
    assert part("van", "kotiin", 0.5) == "van Dijk"
    assert part("jälkeen", "jälkeen", 0.99) is None


def test_a_plain_word_of_no_known_language_is_nobody() -> None:
    def holds(word: str, score: float, code: str = "", *, listed: bool = False) -> bool:
        text = f"legajo: {word}"
        return believed(text, 8, len(text), score, code, lambda _: "f" if listed else "") is not None

    assert not holds("abierto", 0.8)
    assert holds("abierto", 0.8, "en")
    assert holds("abierto", 0.96)
    assert holds("autumn", 0.8, listed=True)
    assert holds("Abierto", 0.8)
    assert holds("jan abierto", 0.8)


def test_a_plain_word_in_a_sentence_may_be_a_name() -> None:
    text = "tell quelda i said hi"
    assert believed(text, 5, 11, 0.7, "", lambda _: "") == (5, 11)
    short = "tell quelda hi"
    assert believed(short, 5, 11, 0.7, "", lambda _: "") == (5, 11)
    assert believed("legajo quelda", 7, 13, 0.7, "", lambda _: "") is None
    assert believed("owner: quelda", 7, 13, 0.7, "", lambda _: "") == (7, 13)
    assert believed('owner = "quelda"', 9, 15, 0.7, "", lambda _: "") == (9, 15)


def test_an_owner_in_code_needs_no_certainty(analyzer: Analyzer) -> None:
    text = "# HACK(quelda): drop it"
    assert code_of(text, "auto") == ""
    assert people(analyzer, text) == ["quelda"]


def test_names_that_no_list_holds_need_certainty() -> None:
    text = "Kirjeen sai Qvorst Zelbrin eilen"
    start, end = text.index("Qvorst"), text.index(" eilen")

    def holds(score: float, code: str, *, listed: bool) -> bool:
        return believed(text, start, end, score, code, lambda _: "f" if listed else "") is not None

    assert holds(0.5, "fi", listed=True)
    assert not holds(0.55, "fi", listed=False)
    assert holds(0.65, "fi", listed=False)
    assert not holds(0.62, "hu", listed=False)
    assert holds(0.75, "hu", listed=False)
    assert holds(0.5, "pt", listed=False)
    assert holds(0.5, "no", listed=False)


def test_a_single_word_that_no_list_holds_needs_more_certainty_than_two() -> None:
    text = "Kirjeen sai Qvorst eilen"
    start, end = text.index("Qvorst"), text.index(" eilen")
    assert believed(text, start, end, 0.85, "fi", lambda _: "") is None
    assert believed(text, start, end, 0.95, "fi", lambda _: "") == (start, end)


def test_a_lone_unknown_word_needs_more_certainty_than_a_known_one() -> None:
    def holds(code: str, score: float, lists: str = "") -> bool:
        text = "kata Qvorst tadi"
        return believed(text, 5, 11, score, code, lambda _: lists) is not None

    assert not holds("tr", 0.65)
    assert holds("tr", 0.7)
    assert holds("tr", 0.65, "l")
    assert not holds("hu", 0.65)
    assert holds("hu", 0.65, "f")
    assert not holds("id", 0.6)
    assert holds("id", 0.65)
    assert holds("pt", 0.8)


def test_a_name_that_may_as_well_be_of_another_kind_is_doubted() -> None:
    text = "Kirjeen sai Qvorst Zelbrin eilen"
    start, end = text.index("Qvorst"), text.index(" eilen")

    def holds(score: float, share: float, code: str = "tr") -> bool:
        return believed(text, start, end, score, code, lambda _: "l", share) is not None

    assert holds(0.95, 1.0)
    assert holds(0.95, 0.5)
    assert not holds(0.95, 0.4)
    assert not holds(0.5, 0.7)
    assert holds(0.95, 0.3, "pt")
    assert holds(0.95, 0.3, "en")


def test_an_ordinal_before_a_name_is_no_initial() -> None:
    text = "Sonra I. Quell oldu"
    assert believed(text, 6, 14, 0.6, "tr", lambda _: "f") is None
    assert believed(text, 6, 14, 0.9, "tr", lambda _: "f") == (6, 14)
    other = text.replace("I.", "K.")
    assert believed(other, 6, 14, 0.6, "tr", lambda _: "f") == (6, 14)


def test_a_sentence_of_no_clear_language_is_doubted_as_the_nearest_one() -> None:
    assert code_of("Mange har nemleg komme frå dei små øyane", "auto") == "no"
    assert code_of("Albüm, 10 Eylül 1985 günü yapılan törende yayımlandı", "auto") == "tr"
    assert code_of("Sjøberg 4711 – ok", "auto") == ""
    assert code_of("Señor Peña dijo algo raro ayer", "auto") == ""


def test_letters_of_a_language_are_its_own_there_alone() -> None:
    assert own_letters(NAMELESS["tr"] + " kış", "auto") == str.maketrans("ı", "i")
    assert own_letters("Mıchael said that he would be here on Monday with the books.", "auto") == {}
    assert own_letters(NAMELESS["fi"], "auto") == {}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("en", ("accurate",)),
        ("fi", ("accurate", "world")),
        ("pt-BR", ("accurate", "world")),
        ("no", ("world",)),
    ],
)
def test_the_accurate_tagger_is_never_alone_outside_english(code: str, expected: tuple[str, ...]) -> None:
    assert readers("", code, "accurate") == expected
    assert readers("", code, "fast") == ("fast" if code == "en" else "world",)


def test_the_language_of_the_text_says_who_reads_it() -> None:
    assert readers(NAMELESS["fi"], "auto", "accurate") == ("accurate", "world")
    assert readers(NAMELESS["id"], "auto", "accurate") == ("world",)
    assert readers(NAMELESS["id"], "auto", "fast") == ("world",)
    assert readers("Please call Daniel Schneider about the invoice.", "auto", "fast") == ("fast",)
    assert readers("Schneider 4711 – ok", "auto", "fast") == ("fast",)
    assert readers("Ask for the Sjøberg file", "auto", "fast") == ("fast", "world")
    assert readers("Sjøberg 4711 – ok", "auto", "fast") == ("world",)
    assert readers("Please call Daniel Schneider about the invoice.", "auto", "accurate") == ("accurate",)


class Readers:
    """Count the texts that a tagger reads, and find one word in each."""

    def __init__(self, word: str, score: float = 0.99) -> None:
        self.word, self.score, self.texts = word, score, []

    def kinds(self, word: str) -> str:
        return ""

    def __call__(self, text: str, threshold: float) -> list[TaggedSpan]:
        self.texts.append(text)
        start = text.find(self.word)
        return [TaggedSpan(start, start + len(self.word), "PERSON", self.score)] if start >= 0 else []


def test_both_taggers_find_people_where_both_read() -> None:
    # The real accurate tagger is slow to load.
    fast, accurate = Readers("Matti"), Readers("Liisa")
    search = Search(fast)
    search._taggers._loaded["accurate"] = accurate
    text = "Tilaamani kirjat eivät ole vielä tulleet, mutta Matti ja Liisa sanoivat niiden saapuvan."
    options = DetectionOptions(names="accurate", entities=frozenset({"PERSON"}))
    found = {text[f.start : f.end] for f in search.findings(text, options) if f.label == "PERSON"}
    assert {"Matti", "Liisa"} <= found
    assert fast.texts == accurate.texts == [text]
    english = "The books have not arrived yet, but Matti said that Liisa would be here soon."
    found = {english[f.start : f.end] for f in search.findings(english, options) if f.label == "PERSON"}
    assert found == {"Liisa"}


@pytest.mark.parametrize(
    ("score", "strict", "expected"), [(0.85, False, 0), (0.95, False, 1), (0.85, True, 1)]
)
def test_the_accurate_tagger_must_be_sure_where_another_knows_the_language(
    score: float, strict: bool, expected: int
) -> None:
    search = Search(Readers("Matti", 0.6))
    search._taggers._loaded["accurate"] = Readers("Herr Liisa", score)
    text = "Heute kommen Matti und Herr Liisa mit den Büchern, die wir bestellt haben."
    options = DetectionOptions(names="accurate", language="fr", strict=strict, entities=frozenset({"PERSON"}))
    found = [text[each.start : each.end] for each in search.findings(text, options)]
    assert found.count("Herr Liisa") == expected
    assert "Matti" in found


def test_chats_in_small_letters_keep_sure_names() -> None:
    text = "hej det er sofie her, jeg kommer ikke i dag"
    start, end = text.index("sofie"), text.index(" her")
    assert believed(text, start, end, 0.96, "da", lambda _: "f") == (start, end)
    assert believed(text, start, end, 0.8, "da", lambda _: "f") is None
    assert believed(text.capitalize(), start, end, 0.96, "da", lambda _: "f") is None


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("Add Oracle, MongoDB, Redis and Cassandra to the list.", "Cassandra", True),
        ("We migrated from Jenkins to GitHub Actions.", "Jenkins", True),
        ("Ask Oracle, Redis and Cassandra.", "Cassandra", False),
        ("Ask Anna, and GitHub support.", "Anna", False),
        ("Anna moved from Jenkins to GitHub.", "Anna", False),
        ("We moved the task from Anna to Ben.", "Anna", False),
    ],
)
def test_a_program_is_told_by_the_programs_beside_it(text: str, word: str, expected: bool) -> None:
    start = text.index(word)
    assert is_program(text, start, start + len(word)) is expected


def test_standard_leaves_programs_and_strict_hides_them(analyzer: Analyzer) -> None:
    text = "Add Oracle, MongoDB, Redis and Cassandra to the list."
    assert people(analyzer, text) == []
    spans = analyzer.analyze(text, DetectionOptions(strict=True))
    assert ("Cassandra", "ORGANIZATION") in {(text[s.start : s.end], s.label) for s in spans}
