"""What the scan repairs of Presidio's way, each with Presidio's own behaviour beside it; derivation and its limits."""

import random
import re

import pytest
import regex
from presidio_analyzer import EntityRecognizer, Pattern, PatternRecognizer, RecognizerResult
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer
from presidio_analyzer.predefined_recognizers import PhoneRecognizer

from app.engines.pii.recognizers import patterns
from app.engines.pii.recognizers.patterns import ScanTimeoutError
from app.engines.pii.scan.digits import REACHES, beside_digits, digits_of, reach_of
from app.engines.pii.scan.image import AS_ASCII, EDGE, image
from app.engines.pii.scan.once import ScanOnce, WantedRecognizers
from app.engines.pii.scan.plain_words import PlainWords
from app.engines.pii.scan.shapes import NotDerivableError
from app.engines.pii.scan.superset import probe_of
from app.engines.pii.scan.weighing import PresidioWeighing
from tests.scan_engines import MATCHERS

FLAGS = regex.DOTALL | regex.MULTILINE | regex.IGNORECASE


def scan_of(*recognizers: EntityRecognizer, matcher: str = "re2") -> ScanOnce:
    weighing = PresidioWeighing(LemmaContextAwareEnhancer())
    return ScanOnce(recognizers, weighing, PlainWords(), matcher)  # type: ignore[arg-type]


def found(scan: ScanOnce, text: str) -> list[str]:
    chosen = WantedRecognizers(dict.fromkeys(range(len(scan.recognizers)), 0.0))
    return sorted(text[one.start : one.end] for one in scan.search(text, chosen))


@pytest.mark.parametrize("matcher", MATCHERS)
def test_a_pattern_that_takes_too_long_ends_the_scan_where_presidio_skips_it(
    monkeypatch: pytest.MonkeyPatch, matcher: str
) -> None:
    monkeypatch.setattr(patterns, "TIMEOUT_S", 0.01)
    monkeypatch.setattr("presidio_analyzer.pattern_recognizer.REGEX_TIMEOUT_SECONDS", 0.01)
    slow = PatternRecognizer("SLOW", patterns=[Pattern("slow", r"(?:(?:a|aa)+)+\d", 0.9)])
    text = "a" * 5000 + " a1"
    assert slow.analyze(text, []) == []
    with pytest.raises(ScanTimeoutError):
        found(scan_of(slow, matcher=matcher), text)


def test_numbers_behind_more_candidates_than_presidio_looks_at_are_found() -> None:
    recognizer = PhoneRecognizer(supported_regions=("US",))
    text = "1," * 66_000 + " call 212-555-0143"
    assert recognizer.analyze(text, []) == []
    assert found(scan_of(recognizer), text) == ["212-555-0143"]


@pytest.mark.parametrize("matcher", MATCHERS)
def test_deny_lists_patterns_and_code_of_a_user_are_all_heard(matcher: str) -> None:
    class Shouting(EntityRecognizer):
        def load(self) -> None:
            pass

        def analyze(
            self, text: str, entities: list[str], nlp_artifacts: object = None
        ) -> list[RecognizerResult]:
            del entities, nlp_artifacts
            return [
                RecognizerResult("LOUD", one.start(), one.end(), 0.8)
                for one in re.finditer(r"[A-Z]{5,}", text)
            ]

    scan = scan_of(
        PatternRecognizer("PROJECT", deny_list=["Blue Heron", "K9"]),
        PatternRecognizer("TICKET", patterns=[Pattern("ticket", r"\bTK-\d{4,}(?:/\d+)*\b", 0.5)]),
        Shouting(["LOUD"]),
        matcher=matcher,
    )
    text = "Blue Heron is TK-12345/6/77, K9 not K99; HELLO"
    assert found(scan, text) == ["Blue Heron", "HELLO", "K9", "TK-12345/6/77"]
    assert [name for name in scan.plan.undivided if name == "Shouting"] == ["Shouting"]


@pytest.mark.parametrize(
    "pattern",
    [r"(?:cats){e<=1}", r"[[:alpha:]]+\d", r"\p{L}{3}\d", r"a*", r"(?=.*x)\d{4}", r"(?<!.{5,})\d", r".+"],
)
def test_what_cannot_be_derived_runs_whole_and_is_named(pattern: str) -> None:
    with pytest.raises(NotDerivableError):
        probe_of(pattern, FLAGS)
    recognizer = PatternRecognizer("ODD", patterns=[Pattern("odd", pattern, 0.5)])
    assert scan_of(recognizer).plan.undivided == ["PatternRecognizer: odd"]


def test_each_letter_that_case_makes_an_ascii_letter_stands_for_it() -> None:
    everything = "".join(chr(code) for code in range(128, 0x110000) if not 0xD800 <= code < 0xE000)
    alike = set(regex.findall("[a-z]", everything, regex.IGNORECASE)) | set(
        re.findall("[a-z]", everything, re.IGNORECASE)
    )
    assert alike == set(AS_ASCII)
    assert image("\u212a\u017f")[1:-1] == b"ks"


def test_an_image_has_one_byte_a_character_and_an_edge_on_either_side() -> None:
    text = "aé\ud800中😀\u0661\u2003"
    seen = image(text)
    assert len(seen) == len(text) + 2
    assert {seen[0], seen[-1]} == {EDGE}
    assert EDGE not in seen[1:-1]


def test_a_context_word_raises_a_score_on_either_side_of_a_long_gap() -> None:
    recognizer = PatternRecognizer("CODE", patterns=[Pattern("code", r"\b\d{6}\b", 0.2)], context=["badge"])
    scan = scan_of(recognizer)
    scores = [one.score for one in scan.search("badge" + " " * 3000 + "123456", WantedRecognizers({0: 0.0}))]
    assert scores == [pytest.approx(0.55)]
    far = "badge one two three four five six seven 123456"
    assert [one.score for one in scan.search(far, WantedRecognizers({0: 0.0}))] == [0.2]


@pytest.mark.parametrize("reach", REACHES)
def test_what_lies_beside_digits_keeps_its_place(reach: int) -> None:
    text = "7" + "x" * 9000 + "call 212-555-0143 now" + "y" * 9000 + "a@b.de 5"
    seen = image(text)
    part, moved = beside_digits(seen, digits_of(seen), reach)
    assert moved is not None
    assert len(part) < len(seen) // 2
    for one in re.finditer(rb"[0-9]+", part):
        (end,) = moved([one.end()])
        assert seen[end - len(one[0]) : end] == one[0]
    assert moved([len(part)]) == [len(seen)]


@pytest.mark.parametrize("reach", REACHES)
def test_a_text_is_searched_whole_where_its_digits_reach_most_of_it(reach: int) -> None:
    rng, wholes = random.Random(reach), 0
    for _ in range(200):
        size = rng.randint(1, reach * 6)
        places = {rng.randrange(size) for _ in range(rng.randint(1, 3))}
        seen = image("".join("7" if place in places else "x" for place in range(size)))
        part, moved = beside_digits(seen, digits_of(seen), reach)
        near = {place for digit in places for place in range(digit + 1 - reach, digit + reach + 2)}
        share = len(near & set(range(len(seen)))) / len(seen)
        assert (moved is None) == (share > 0.6), (size, places)
        assert len(part) == (len(seen) if moved is None else round(share * len(seen)))
        wholes += moved is None
    assert 20 < wholes < 180


def test_digits_far_apart_are_found_in_a_long_text_as_in_a_short_one() -> None:
    recognizer = PatternRecognizer("CODE", patterns=[Pattern("code", r"\b[A-Z]{2}-\d{4}\b", 0.5)])
    scan = scan_of(recognizer, matcher="hyperscan")
    places = (f"AB-000{place}" + " and so on" * 400 for place in range(9))
    assert found(scan, " ".join(places)) == [f"AB-000{place}" for place in range(9)]


@pytest.mark.parametrize(
    ("expression", "around", "reach"),
    [
        (rb"[0-9\x82]{4}", 0, REACHES[0]),
        (rb"ab(?:[0-9]|[0-9]c)", 0, REACHES[0]),
        (rb"[a-z]{60}[0-9]", 0, REACHES[1]),
        (rb"[0-9][a-z]{200}", 0, REACHES[2]),
        (rb"[0-9][a-z]{2000}", 0, 0),
        (rb"[0-9]{0,1}ab", 0, 0),
        (rb"(?:[0-9]|a)b", 0, 0),
        (rb"[0-9a]{9}", 0, 0),
        (rb"phone", 35, REACHES[0]),
        (rb"phone", 36, REACHES[1]),
        (rb"phone", 0, 0),
    ],
)
def test_only_what_always_has_a_digit_near_is_looked_for_beside_digits(
    expression: bytes, around: int, reach: int
) -> None:
    assert reach_of(expression, around) == reach
