"""Scores of findings against labels: strict, partial and by character, and what was confused with what."""

from app.core.contracts.engines import Span
from app.engines.pii.search.scoring import ANY, score


def spans(*given: tuple[int, int, str]) -> list[Span]:
    return [Span(start, end, label, 1.0) for start, end, label in given]


def test_the_same_spans_score_one_everywhere():
    there = [spans((0, 4, "PERSON"), (9, 12, "PHONE"))]

    scores = score(there, there)

    assert {tally.f1 for tallies in scores.tallies.values() for tally in tallies.values()} == {1.0}
    assert scores.confusions == [] and scores.labels() == ["PERSON", "PHONE", ANY]


def test_half_a_name_counts_in_part_but_not_strictly():
    tallies = score([spans((0, 10, "PERSON"))], [spans((0, 5, "PERSON"))]).tallies["PERSON"]

    assert [tallies[kind].f1 for kind in ("strict", "partial")] == [0.0, 1.0]
    assert (tallies["character"].precision, tallies["character"].recall) == (1.0, 0.5)


def test_another_label_hides_the_text_but_is_a_confusion():
    scores = score([spans((0, 4, "PERSON"))], [spans((0, 4, "ORGANIZATION"))])

    assert scores.tallies[ANY]["strict"].f1 == 1.0 and scores.tallies["PERSON"]["strict"].recall == 0.0
    assert [one.kind for one in scores.confusions] == ["label"]
    assert scores.pairs == {("PERSON", "ORGANIZATION"): 1}


def test_what_is_missed_and_what_is_false_are_told_apart():
    scores = score([spans((0, 4, "PERSON")), []], [[], spans((2, 3, "CARD"))])

    assert [(one.text, one.kind) for one in scores.confusions] == [(0, "missed"), (1, "false")]
    assert scores.tallies[ANY]["strict"].precision == 0.0
