"""In languages that the tagger was not trained for, people need capitals and a known name, or certainty."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.doubts import believed, is_doubted
from app.engines.pii.search.analyzer import Analyzer

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


@pytest.mark.parametrize("code", NAMELESS)
def test_text_that_names_nobody_has_no_people(analyzer: Analyzer, code: str) -> None:
    assert is_doubted(NAMELESS[code], "auto") == code
    assert people(analyzer, NAMELESS[code]) == []


@pytest.mark.parametrize("code", WITH_A_NAME)
def test_known_names_are_found_there(analyzer: Analyzer, code: str) -> None:
    assert people(analyzer, WITH_A_NAME[code]) == ["Daniel Schneider"]


def test_strict_doubts_nothing_and_a_given_language_is_believed(analyzer: Analyzer) -> None:
    text = NAMELESS["fi"]
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


def test_names_that_no_list_holds_need_certainty() -> None:
    text = "Kirjeen sai Qvorst Zelbrin eilen"
    start, end = text.index("Qvorst"), text.index(" eilen")

    def holds(score: float, code: str, *, listed: bool) -> bool:
        return believed(text, start, end, score, code, lambda _: "f" if listed else "") is not None

    assert holds(0.5, "fi", listed=True)
    assert not holds(0.9, "fi", listed=False)
    assert holds(0.98, "fi", listed=False)
    assert holds(0.5, "pt", listed=False)


def test_chats_in_small_letters_keep_sure_names() -> None:
    text = "hej det er sofie her, jeg kommer ikke i dag"
    start, end = text.index("sofie"), text.index(" her")
    assert believed(text, start, end, 0.96, "da", lambda _: "f") == (start, end)
    assert believed(text, start, end, 0.8, "da", lambda _: "f") is None
    assert believed(text.capitalize(), start, end, 0.96, "da", lambda _: "f") is None
