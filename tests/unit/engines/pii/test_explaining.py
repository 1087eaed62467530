"""An explanation holds every candidate, and says of each why it won or lost."""

import time

import pytest

from app.core.engines import DetectionOptions
from app.engines.pii.analyzer import Analyzer
from app.engines.pii.explaining import CARRIED, explain
from app.engines.pii.tagger import TaggedSpan

TEXT = "Jane Roe, card 4111 1111 1111 1111, paid on 2024-05-01 from jane@example.com; ask Roe. [PERSON_1]"


@pytest.fixture
def considered(analyzer):
    def of(text=TEXT, **options):
        spans, candidates = explain(analyzer, text, DetectionOptions(**options))
        return spans, {(text[one.span.start : one.span.end], one.span.label): one for one in candidates}

    return of


def test_every_finding_has_a_winner_with_its_recognizer(considered):
    spans, found = considered()

    won = {text for (text, _), one in found.items() if one.won}
    assert won == {TEXT[span.start : span.end] for span in spans}
    assert won == {"Jane Roe", "4111 1111 1111 1111", "jane@example.com", "Roe"}
    assert all(one.recognizer and one.entity for one in found.values())


def test_what_only_strict_takes_is_shown_as_lost(considered):
    _, found = considered()

    date = found["2024-05-01", "DATE"]
    assert not date.won and "only strict" in date.reason


def test_a_name_carried_on_says_so():
    analyzer = Analyzer(lambda _text, _threshold: [TaggedSpan(0, 8, "PERSON", 0.9)])

    _, candidates = explain(analyzer, "Jane Roe pays; ask Roe.", DetectionOptions())

    assert [(one.span.start, one.recognizer == CARRIED) for one in candidates] == [(0, False), (19, True)]


def test_what_is_allowed_loses_by_the_list(considered):
    _, found = considered(allow_list=("jane@example.com",))

    mail = found["jane@example.com", "EMAIL"]
    assert not mail.won and mail.reason == "on the allow list"


def test_a_type_that_was_not_asked_for_is_named(considered):
    _, found = considered(entities=frozenset({"EMAIL"}))

    assert found["jane@example.com", "EMAIL"].won
    assert found["4111 1111 1111 1111", "CARD"].reason == "its type was not asked for"


def test_a_number_without_a_word_of_its_context_says_what_it_lacks(considered):
    _, found = considered("The total was 9434765919 yesterday.")

    assert {one.reason for one in found.values() if not one.won} & {"no word of its context stands nearby"}


def test_a_deny_list_wins_under_its_own_label(considered):
    _, found = considered("Project Bluebird starts.", deny_list=("bluebird",))

    assert found["Bluebird", "CUSTOM"].won


def test_a_text_full_of_findings_is_explained_in_time_linear_in_it(analyzer):
    text = "a@b.co [PERSON_1] " * 4_000
    began = time.process_time()

    spans, candidates = explain(analyzer, text, DetectionOptions(allow_list=("x@y.example",)))

    assert len(spans) == 4_000
    assert sum(one.won for one in candidates) >= 4_000
    assert time.process_time() - began < 15, "each candidate was compared with every finding"


def test_a_name_that_only_strict_reads_so_is_not_said_to_score_too_low():
    def tagger(_text, threshold):
        return [] if threshold >= 0.5 else [TaggedSpan(0, 8, "ADDRESS", 0.63)]

    _, (candidate,) = explain(Analyzer(tagger), "SW1A 1AA", DetectionOptions(exclude=frozenset({"POSTCODE"})))

    assert (candidate.won, candidate.span.score) == (False, 0.63)
    assert "below" not in candidate.reason and "strict" in candidate.reason
