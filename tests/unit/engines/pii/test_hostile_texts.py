"""Texts made to blind a detector: what hides behind them is found, and time stays proportional to length."""

from itertools import pairwise

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.recognizers import patterns
from app.engines.pii.recognizers.patterns import ExactPatterns, ScanTimeoutError
from app.engines.pii.search.analyzer import Analyzer
from tests.hostile_texts import HOSTILE
from tests.proportion import assert_in_proportion
from tests.unit.engines.pii.conftest import Find

SIZE = 12_000
ODD = [
    "219\u200b-09-9999",
    "[PERSON_1]",
    "Jose\u0301 Doe",
    "１２３-４５-６７８９",
    "\ud800",
    "j@x.co",
    "+1 (",
    "DЕ89 3704",
    "A1b2 {À",
    "0 \ud800",
    "²³",
    "٣",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_stands_behind_a_hostile_text_is_found(find: Find, name: str) -> None:
    text = HOSTILE[name](SIZE) + " Write to jane@example.com, SSN 219-09-9999."
    covered = " ".join(what for what, _ in find(text))
    assert "jane@example.com" in covered
    assert "219-09-9999" in covered


@pytest.mark.in_turn("strict")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_length_only(analyzer: Analyzer, name: str, strict: bool) -> None:
    options = DetectionOptions(strict=strict)
    # Half a second for 36,000 characters is no attack, whatever the proportion.
    assert_in_proportion(
        lambda size: analyzer.scan(HOSTILE[name](size), options), SIZE, 3 * SIZE, harmless_s=0.5
    )


@pytest.mark.parametrize("unit", ["http://a.b/?", "ftp://x.y/&q=http://"])
def test_a_long_run_of_addresses_takes_time_in_proportion(analyzer: Analyzer, unit: str) -> None:
    """Each place where an address begins was read to the end of the run: 500 KB took eleven seconds."""
    text = unit * (200_000 // len(unit))
    assert_in_proportion(lambda size: analyzer.scan(text[:size], DetectionOptions()), 50_000, 200_000)


def test_an_address_behind_forty_thousand_letters_and_dots_is_covered(find: Find) -> None:
    covered = "".join(what for what, _ in find("a." * 20_000 + "jane@example.com"))
    assert covered.endswith("jane@example.com")


def test_phone_numbers_behind_seventy_thousand_commas_are_found(find: Find) -> None:
    found = find("1," * 70_000 + " call me at 212-555-0143 or +44 20 7946 0958")
    assert found[-2:] == [("212-555-0143", "PHONE"), ("+44 20 7946 0958", "PHONE")]


def test_a_megabyte_of_digits_becomes_one_finding(find: Find) -> None:
    text = "1" * 1_000_000
    assert find(text) == [(text, "OPAQUE")]


def test_minified_json_is_scanned_and_not_hidden_as_a_whole(find: Find) -> None:
    text = (
        "["
        + ",".join(f'{{"id":{number},"ok":true}}' for number in range(1000))
        + ',{"mail":"jane@example.com"}]'
    )
    assert find(text) == [("jane@example.com", "EMAIL")]


def test_a_token_longer_than_a_chunk_is_hidden_to_its_end(find: Find) -> None:
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIx" * 300 + "." + "c2lnbmF0dXJl" * 20
    text = "lorem ipsum " * 400 + token + " dolor"
    assert (token, "SECRET") in find(text, entities=frozenset({"SECRET"}))


def test_a_pattern_that_takes_too_long_raises_instead_of_being_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "TIMEOUT_S", 0.01)
    slow = ExactPatterns("SECRET", [(r"(?:(?:a|aa)+)+\d", 0.9)])
    with pytest.raises(ScanTimeoutError) as caught:
        slow.analyze("a" * 5000, [])
    assert "aaa" not in str(caught.value)


def test_presidio_itself_skips_such_a_pattern() -> None:
    """The negative control: without our matching the text would pass unscanned."""
    with pytest.raises(TimeoutError):
        list(regex.finditer(r"(?:(?:a|aa)+)+\d", "a" * 5000, timeout=0.01))


def test_lone_surrogates_and_controls_do_no_harm(find: Find) -> None:
    assert find("\ud800 jane@example.com \udfff\x00\x1b[0m 219-09-9999") == [
        ("jane@example.com", "EMAIL"),
        ("219-09-9999", "SSN"),
    ]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=20) | st.sampled_from(ODD), max_size=12).map(" ".join), st.booleans())
def test_any_text_is_scanned_and_its_spans_are_sound(analyzer: Analyzer, text: str, strict: bool) -> None:
    spans = analyzer.analyze(text, DetectionOptions(strict=strict, deny_list=("a",)))
    assert all(0 <= span.start < span.end <= len(text) and 0 < span.score <= 1 for span in spans)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert all(text[span.start : span.end].strip() for span in spans)
