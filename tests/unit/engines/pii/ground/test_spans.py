"""Overlaps, handles, names carried on: rules that lose no covered character."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.core.contracts.engines import Span
from app.engines.pii.ground.labels import LABELS, NAME_LABELS
from app.engines.pii.ground.spans import blanked, handles, opaque_runs, resolved, without
from app.engines.pii.names.names import mentions, person_names

TEXT = "abcdefghijklmnopqrstuvwxyz" * 3
SPANS = st.builds(
    lambda start, size, label, score: Span(start, start + size, label, score),
    st.integers(0, 60),
    st.integers(1, 15),
    st.sampled_from(sorted(LABELS)),
    st.sampled_from([0.3, 0.5, 0.9]),
)


def covered(spans: list[Span]) -> set[int]:
    return {place for span in spans for place in range(span.start, span.end)}


@given(st.lists(SPANS, max_size=12))
def test_resolving_leaves_no_overlap_and_no_leak(spans: list[Span]) -> None:
    kept = resolved(TEXT, spans)
    assert all(before.end <= after.start for before, after in itertools.pairwise(kept))
    assert covered(kept) <= covered(spans)
    patterns = [span for span in spans if span.label not in NAME_LABELS]
    assert covered(patterns) <= covered(kept)
    assert resolved(TEXT, list(reversed(spans))) == kept


@given(st.lists(SPANS, max_size=12), st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4)), max_size=4))
def test_cutting_out_places_keeps_everything_else(spans: list[Span], raw: list[tuple[int, int]]) -> None:
    places = sorted({start * 5: (start * 5, start * 5 + size) for start, size in raw}.values())
    holes = {place for low, high in places for place in range(low, high)}
    assert covered(without(spans, places)) == covered(spans) - holes


def test_the_longest_finding_wins_then_the_score_then_the_order_of_labels() -> None:
    assert resolved(TEXT, [Span(0, 9, "PHONE", 0.9), Span(0, 10, "SSN", 0.4)]) == [Span(0, 10, "SSN", 0.4)]
    assert resolved(TEXT, [Span(0, 9, "PHONE", 0.9), Span(0, 9, "SSN", 0.4)]) == [Span(0, 9, "PHONE", 0.9)]
    assert resolved(TEXT, [Span(0, 9, "PHONE", 0.5), Span(0, 9, "SSN", 0.5)]) == [Span(0, 9, "SSN", 0.5)]


def test_a_name_gives_way_to_an_identifier_across_it() -> None:
    text = "John Doe john@example.com"
    found = resolved(text, [Span(0, 13, "PERSON", 0.9), Span(9, 25, "EMAIL", 0.9)])
    assert found == [Span(0, 8, "PERSON", 0.9), Span(9, 25, "EMAIL", 0.9)]


def test_an_address_keeps_its_post_code() -> None:
    text = "12 High Street, London NW1 6XE"
    assert resolved(text, [Span(0, 30, "ADDRESS", 0.9), Span(23, 30, "POSTCODE", 0.5)]) == [
        Span(0, 30, "ADDRESS", 0.9)
    ]


def test_handles_are_found_and_blanked_in_place() -> None:
    text = "a [PERSON_1] b [EMAIL_12~abcd] c [person_1] [PERSON_0]"
    assert [text[low:high] for low, high in handles(text)] == ["[PERSON_1]", "[EMAIL_12~abcd]"]
    assert len(blanked(text, handles(text))) == len(text)


def test_only_very_long_unbroken_runs_are_opaque() -> None:
    assert opaque_runs("x" * 4095) == []
    assert opaque_runs("a " + "x" * 5000 + " b") == [(2, 5002)]
    assert opaque_runs("x, " * 5000) == []


def test_parts_of_a_name_are_carried_on() -> None:
    text = "Doe said that DOE and John Doe, but no doe, Doer or Johnny. JOHN DOE!"
    found = [text[span.start : span.end] for span in mentions(text, ["John Doe"], 0.5)]
    assert found == ["Doe", "DOE", "John Doe", "JOHN DOE"]


def test_words_that_are_no_names_are_not_carried_on() -> None:
    text = "In May we may. Young people came. Then Young left. The Doctor will."
    found = [text[span.start : span.end] for span in mentions(text, ["Dr. May Young", "Will van Der"], 0.5)]
    assert found == ["Young"]


def test_doubtful_names_are_not_looked_for_elsewhere() -> None:
    text = "Hello World Foo"
    assert person_names(text, [Span(0, 5, "PERSON", 0.7), Span(6, 15, "PERSON", 0.7)]) == {"World Foo"}


def test_names_are_taken_from_findings() -> None:
    assert person_names("Ask John\n Doe", [Span(4, 13, "PERSON", 1.0), Span(0, 3, "EMAIL", 1.0)]) == {
        "John Doe"
    }


def test_ten_thousand_names_take_no_longer_than_one() -> None:
    names = [f"Name{'abcdefghij'[i % 10]}{i} Sur{i}" for i in range(10_000)] + ["John Doe"]
    assert len(mentions("John Doe and Doe again. " * 4000, names, 0.5)) == 8000
