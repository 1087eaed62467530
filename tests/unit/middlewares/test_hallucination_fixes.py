"""What is mended in an answer where findings overlap, and what counts as mended."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from app.core.content.context import Context
from app.core.contracts.engines import Claim, EngineReport, Grounding
from app.core.contracts.grounding import AnswerFinding, CheckOptions, SourcePlace, Statements
from app.core.contracts.middleware import Outcome
from app.middlewares.hallucination_detection.middleware import (
    HallucinationDetection,
    HallucinationDetectionArguments,
)
from tests.fakes import engines

Found = Mapping[str, Sequence[AnswerFinding]]


class Scripted:
    """Finds in each text what a test says, and judges each sentence and each whole text as it says."""

    def __init__(self, found: Found | None = None, scores: Mapping[str, float] | None = None) -> None:
        self.found, self.scores = found or {}, scores or {}

    async def statements(self, answers: Sequence[str]) -> Sequence[Statements]:
        return [
            Statements(self._sentences(text), text if self._sentences(text) else None) for text in answers
        ]

    def _sentences(self, text: str) -> list[tuple[int, int]]:
        return [
            (text.index(one), text.index(one) + len(one))
            for one in self.scores
            if one in text and one != text
        ]

    def links(self, answer: str) -> Sequence[tuple[int, int]]:
        return []

    async def nearest(self, sentences: Sequence[str], sources: Sequence[str]) -> Sequence[SourcePlace | None]:
        return [None for _ in sentences]

    async def check(
        self, answers: Sequence[str], sources: Sequence[str], options: CheckOptions
    ) -> Sequence[Sequence[AnswerFinding]]:
        return [self.found.get(text, ()) for text in answers]

    async def judge(self, claims: Sequence[Claim]) -> Grounding:
        return Grounding(
            [self.scores.get(claim.text, 0.0) for claim in claims], EngineReport("scripted", "1")
        )


def finding(
    start: int, end: int, fix: str | None, *, kind: str = "name", score: float = 0.3
) -> AnswerFinding:
    return AnswerFinding(kind, start, end, "medium", score, "Said otherwise.", None, fix)


async def detected(script: Scripted, *blocks: Any, **arguments: Any) -> Outcome:
    items = [
        {"role": "user", "content": "What is known."},
        {"role": "assistant", "content": [
            {"type": "text", "text": one} if isinstance(one, str) else one for one in blocks
        ]},
    ]  # fmt: skip
    middleware = HallucinationDetection(engines(answers=script, grounding=script))
    return await middleware.apply(Context.parse(items), HallucinationDetectionArguments(**arguments))


def answer_of(outcome: Outcome) -> list[Any]:
    content = outcome.context.to_json()[1]["content"]
    return [block.get("text") for block in content]


def fixed_in(outcome: Outcome) -> list[tuple[int, int]]:
    return [(one["start"], one["end"]) for one in outcome.metadata["findings"] if one.get("fixed")]


@pytest.mark.parametrize(
    ("places", "expected", "fixed"),
    [
        # Of two that overlap the first is mended and the other left.
        ([(0, 4, "1111"), (2, 6, "2222")], "1111456789", [(0, 4)]),
        # One inside another, and one that ends where the next begins.
        ([(0, 8, "x"), (2, 4, "y")], "x89", [(0, 8)]),
        ([(0, 4, "a"), (4, 6, "b")], "ab6789", [(0, 4), (4, 6)]),
        # What is skipped for an overlap does not stand in the way of what comes behind it.
        ([(0, 4, "a"), (2, 6, "b"), (5, 7, "c")], "a4c789", [(0, 4), (5, 7)]),
        # A finding without a fix takes no place.
        ([(0, 8, None), (2, 4, "y")], "01y456789", [(2, 4)]),
        # They are taken in the order of the text, however they were found.
        ([(2, 6, "b"), (0, 4, "a")], "a456789", [(0, 4)]),
        ([(0, 4, "")], "456789", [(0, 4)]),
    ],
)
async def test_no_text_is_mended_twice(
    places: list[tuple[int, int, str | None]], expected: str, fixed: list[tuple[int, int]]
) -> None:
    script = Scripted({"0123456789": [finding(*place) for place in places]})
    outcome = await detected(script, "0123456789", action="fix", checks=["names"])
    assert answer_of(outcome) == [expected]
    assert fixed_in(outcome) == fixed
    assert outcome.audit_details["fixed"] == len(fixed)
    assert len(outcome.metadata["findings"]) == len(places)


async def test_each_text_of_an_answer_is_mended_by_itself() -> None:
    script = Scripted({"first": [finding(0, 5, "one")], "second": [finding(1, 3, "x")]})
    outcome = await detected(script, "first", "second", action="fix", checks=["names"])
    assert answer_of(outcome) == ["one", "sxond"]
    assert outcome.audit_details["fixed"] == 2


@pytest.mark.parametrize("action", ["report", "annotate"])
async def test_what_is_only_reported_does_not_count_as_fixed(action: str) -> None:
    script = Scripted({"0123456789": [finding(0, 4, "a")]})
    outcome = await detected(script, "0123456789", action=action, checks=["names"])
    assert answer_of(outcome) == ["0123456789"]
    assert fixed_in(outcome) == []
    assert outcome.audit_details == {"supported": True, "fixed": 0}
    assert outcome.counts == {"name": 1}


async def test_a_tool_s_arguments_are_never_mended_whatever_fix_there_is() -> None:
    call = {"type": "tool_use", "id": "1", "name": "open", "input": {"url": "https://a.dev"}}
    script = Scripted({"https://a.dev": [finding(0, 5, "http:", kind="url")]})
    outcome = await detected(script, "Fine.", call, action="fix", checks=["urls"])
    assert outcome.context.to_json()[1]["content"][1] == call
    assert outcome.audit_details["fixed"] == 0


@pytest.mark.parametrize("texts", [("Bad one. x", "Good one. y"), ("Good one. y", "Bad one. x")])
async def test_the_worst_text_of_an_answer_decides(texts: tuple[str, str]) -> None:
    scores = {"Bad one.": 1.0, "Bad one. x": 0.8, "Good one.": 0.2, "Good one. y": 0.0}
    outcome = await detected(Scripted(scores=scores), *texts, action="report")
    assert outcome.metadata["score"] == 0.9
    assert outcome.metadata["supported"] is False


@pytest.mark.parametrize("scores", [(1.0, 0.2), (0.2, 1.0)])
async def test_the_worst_sentence_of_a_text_decides(scores: tuple[float, float]) -> None:
    text = "One here. Two there."
    script = Scripted(scores={"One here.": scores[0], "Two there.": scores[1], text: 0.4})
    outcome = await detected(script, text, action="report")
    assert outcome.metadata["score"] == 0.7
    assert outcome.counts == {"sentence": 1}


async def test_a_sentence_is_found_from_the_threshold_on_and_surely_from_nine_tenths() -> None:
    text = "One here. Two there. Three too."
    script = Scripted(scores={"One here.": 0.5, "Two there.": 0.9, "Three too.": 0.49, text: 0.0})
    outcome = await detected(script, text, action="report", threshold=0.5)
    severities = [(one["start"], one["severity"]) for one in outcome.metadata["findings"]]
    assert severities == [(0, "low"), (10, "medium")]


async def test_findings_together_make_an_answer_unsupported_and_sentences_are_not_counted_twice() -> None:
    script = Scripted({"0123456789": [finding(0, 1, None, score=0.3), finding(1, 2, None, score=0.4)]})
    outcome = await detected(script, "0123456789", action="report", checks=["names"])
    assert outcome.metadata["score"] == 0.58
    judged = Scripted(scores={"One here.": 0.6, "One here. x": 0.4})
    outcome = await detected(judged, "One here. x", action="report")
    assert outcome.metadata["score"] == 0.5
    assert outcome.metadata["supported"] is False, "the threshold itself counts as unsupported"


async def test_the_note_names_what_weighs_and_stands_behind_the_last_text() -> None:
    script = Scripted(
        {"first": [finding(0, 5, None, kind="number", score=0.5), finding(0, 5, None, score=0.4)]}
    )
    outcome = await detected(script, "first", "second", checks=["names"])
    first, second = answer_of(outcome)
    assert first == "first"
    assert second == "second\n\n[Note: the context does not support parts of this answer (numbers).]"


async def test_findings_beyond_two_hundred_are_counted_and_not_shown() -> None:
    text = "x" * 300
    for number, more in ((200, None), (201, 1)):
        script = Scripted({text: [finding(place, place + 1, "y", score=0.0) for place in range(number)]})
        outcome = await detected(script, text, action="fix", checks=["names"])
        assert len(outcome.metadata["findings"]) == 200
        assert outcome.metadata.get("moreFindings") == more
        assert outcome.audit_details["fixed"] == number


async def test_a_text_is_judged_by_its_own_sentences_and_not_by_another_s() -> None:
    scores = {"One here.": 1.0, "One here. x": 0.2, "Two there.": 0.1, "Two there. y": 0.9}
    outcome = await detected(Scripted(scores=scores), "One here. x", "Two there. y", action="report")
    assert outcome.metadata["score"] == 0.6
