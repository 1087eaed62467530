"""An expression hits what its pattern matches: a capital where only a capital may stand, and hosts of any length."""

import pytest

from app.engines.pii.names.nlp import WITHOUT_CONTEXT
from app.engines.pii.recognizers.addresses import StreetAddressRecognizer
from app.engines.pii.recognizers.generic import UrlRecognizer
from app.engines.pii.recognizers.patterns import FLAGS
from app.engines.pii.scan.image import image
from app.engines.pii.scan.matchers import build
from app.engines.pii.scan.once import ScanOnce, WantedRecognizers
from app.engines.pii.scan.plain_words import PlainWords
from app.engines.pii.scan.superset import probe_of
from app.engines.pii.scan.weighing import PhraseWeighing

NAMED = r"(?<!\w)[a-z]{2,99} (?-i:Strand|NewRoad) [a-z]{2,99}(?!\w)"
LONGEST = ".".join(["a" * 63] * 8)


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("matcher", ["hyperscan", "re2"])
@pytest.mark.parametrize(
    ("pattern", "hit", "passed"),
    [
        (
            NAMED,
            ["the Strand here", "THE Strand HERE", "a NewRoad now"],
            ["the strand here", "a newroad now"],
        ),
        (
            NAMED.replace("-i", ""),
            ["the Strand here", "the strand here", "a newroad now"],
            ["the beach here"],
        ),
        (r"(?-i:[AC][KO]), \d{5}", ["AK, 99501", "CO, 80014"], ["ak, 99501", "Ak, 99501"]),
        (r"[AC][KO], \d{5}", ["AK, 99501", "ak, 99501", "\u212ao, 1AK, 99501"], ["xx, 99501"]),
        (r"(?-i:k[a-m]X)-\d{5}", ["kaX-12345", "kmX-12345"], ["kax-12345"]),
    ],
)
def test_a_capital_that_stands_alone_is_looked_for_as_such(
    matcher: str, pattern: str, hit: list[str], passed: list[str]
) -> None:
    expressions = probe_of(pattern, FLAGS).expressions
    anywhere = [0] * len(expressions)
    engine = build(matcher, expressions, len(expressions), anywhere, anywhere)  # type: ignore[arg-type]
    for text in hit:
        assert engine.hits(image(f"({text})"), {0}), text
    for text in passed:
        assert not engine.hits(image(f"({text})"), {0}), text


@pytest.mark.parametrize("matcher", ["hyperscan", "re2"])
def test_hosts_are_found_whole_wherever_they_begin_and_numbers_are_none(matcher: str) -> None:
    texts = [
        f"See {LONGEST}.com.",
        f"{LONGEST}.org:8080/a?b=c and example.io",
        f"{'b' * 700} x.{LONGEST}.de",
        "no.host.here 1.25 is 3.14.15, v2.0.co",
        "write to ann@mail.example.co.uk or ask www.example.com",
        "a.com,b.com;c.com" * 40,
    ]
    fast, plain = (
        ScanOnce([UrlRecognizer()], PhraseWeighing(), PlainWords(), name)  # type: ignore[arg-type]
        for name in (matcher, "plain")
    )
    wanted = WantedRecognizers({0: 0.5 * WITHOUT_CONTEXT})
    for text in texts:
        assert fast.search(text, wanted) == plain.search(text, wanted), text
    (whole,) = fast.search(texts[0], wanted)
    assert (whole.start, whole.end) == (4, len(texts[0]) - 1)
    unit = next(unit for unit in fast.plan.units if "URL 3" in {rule.name for rule in unit.rules})
    hits = fast.matcher.hits(image("1.25 is 3.14, and 10.0.0.1 is v2.0"), {0})
    assert hits is not None
    assert fast.plan.units.index(unit) not in fast.plan.by_unit(hits, fast.matcher.grain, image(""))


def test_streets_without_a_word_for_street_keep_their_article() -> None:
    recognizer = StreetAddressRecognizer()

    def addresses(text: str) -> list[str]:
        return [text[each.start : each.end] for each in recognizer.analyze(text, ["STREET_ADDRESS"])]

    assert addresses("at 12 The Strand, London") == ["12 The Strand"]
    assert addresses("at 12 Strand or 7 Piccadilly") == ["12 Strand", "7 Piccadilly"]
    assert addresses("at 12 the strand, and 12 The Beach") == []
