"""An explanation holds every candidate, and says of each why it won or lost."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.tagger import TaggedSpan
from app.engines.pii.search.analyzer import Analyzer
from app.engines.pii.search.explaining import CARRIED, explain
from tests.proportion import assert_in_proportion

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


def test_what_only_strict_takes_is_shown_as_lost_beside_what_lacks_a_word(analyzer):
    _, candidates = explain(analyzer, TEXT, DetectionOptions())

    dates = [one for one in candidates if TEXT[one.span.start : one.span.end] == "2024-05-01"]
    assert not any(one.won for one in dates)
    assert {one.entity: one.reason.split(",")[0] for one in dates if one.span.label == "DATE"} == {
        "DATE_TIME": "this type is found only in strict mode",
        "DATE_OF_BIRTH": "no context word is nearby",
        "CARE_DATE": "no context word is nearby",
    }


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
    assert found["4111 1111 1111 1111", "CARD"].reason == "its type was not requested"


def test_a_number_without_a_word_of_its_context_says_what_it_lacks(considered):
    _, found = considered("The total was 9434765919 yesterday.")

    nhs = found["9434765919", "NHS"]
    assert not nhs.won and nhs.reason.startswith("no context word is nearby, such as nhs")
    assert (nhs.span.score < nhs.threshold, "nhs number" in nhs.missing) == (True, True)


def test_what_scores_too_low_says_how_much_it_needs(considered):
    _, found = considered("Employee 123456789 in room 12")

    ssn = found["123456789", "SSN"]
    assert (ssn.won, ssn.span.score, ssn.threshold, "social security" in ssn.missing) == (
        False,
        0.05,
        0.4,
        True,
    )
    assert ssn.reason.startswith(
        "score 0.05 is below 0.40; a context word nearby would raise it, such as ssn"
    )


@pytest.mark.parametrize(
    ("text", "number", "label"),
    [
        ("card 4111 1111 1111 1112", "4111 1111 1111 1112", "CARD"),
        ("her CPF: 111.444.777-36", "111.444.777-36", "CPF"),
    ],
)
def test_a_wrong_check_digit_beside_a_word_for_the_number_is_named(considered, text, number, label):
    _, found = considered(text)

    assert found[number, label].reason == "its check digit or its format is wrong"
    assert (found[number, label].won, found[number, label].context) == (False, label.lower())


def test_what_is_hidden_anyway_is_not_said_to_be_missing(considered):
    _, found = considered("SSN 219-09-9999")

    assert [one for one in found.values() if one.span.start >= 4 and not one.won] == []


def test_of_what_scores_too_low_a_text_full_of_it_shows_the_best(analyzer):
    text = " ".join(str(number) for number in range(123_456_000, 123_456_500))

    _, candidates = explain(analyzer, text, DetectionOptions())

    assert sum(not one.won for one in candidates) <= 1_000 + 500


def test_a_deny_list_wins_under_its_own_label(considered):
    _, found = considered("Project Bluebird starts.", deny_list=("bluebird",))

    assert found["Bluebird", "CUSTOM"].won


def test_a_text_full_of_findings_is_explained_in_time_linear_in_it(analyzer):
    """Each candidate was once compared with every finding."""

    def explained(count: int) -> None:
        text = "a@b.co [PERSON_1] " * count
        spans, candidates = explain(analyzer, text, DetectionOptions(allow_list=("x@y.example",)))
        assert len(spans) == count
        assert sum(one.won for one in candidates) >= count

    assert_in_proportion(explained, 1_000, 4_000)


def test_a_name_that_only_strict_reads_so_is_not_said_to_score_too_low():
    def tagger(_text, threshold):
        return [] if threshold >= 0.45 else [TaggedSpan(0, 8, "ADDRESS", 0.63)]

    _, candidates = explain(Analyzer(tagger), "SW1A 1AA", DetectionOptions(exclude=frozenset({"POSTCODE"})))

    (candidate,) = (one for one in candidates if one.span.label == "ADDRESS")
    assert (candidate.won, candidate.span.score) == (False, 0.63)
    assert "below" not in candidate.reason and "strict" in candidate.reason
