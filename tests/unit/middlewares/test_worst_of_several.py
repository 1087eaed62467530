"""Of several texts the worst decides, whichever of them comes last."""

import json
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from app.core.content.context import Context
from app.core.contracts.engines import EngineReport, InjectionFinding, InjectionJudgement
from app.core.contracts.middleware import Outcome
from app.core.errors import BlockedByPolicyError
from app.middlewares.content_moderation import ContentModeration, ContentModerationArguments
from app.middlewares.prompt_injection.middleware import PromptInjection, PromptInjectionArguments
from tests.fakes import engines
from tests.fakes_moderation import FakeModerator

WORDS = {"calm": {"violence": 0.1}, "odd": {"violence": 0.6}, "grim": {"violence": 0.9, "hate": 0.6}}


async def moderated(*texts: str, **arguments: Any) -> Outcome:
    middleware = ContentModeration(engines(moderator=FakeModerator(WORDS)))
    return await middleware.apply(Context.parse(list(texts)), ContentModerationArguments(**arguments))


@pytest.mark.parametrize("texts", list(permutations(["calm", "odd", "grim"])))
async def test_the_highest_score_and_severity_of_all_items_stand_above_them(texts: tuple[str, ...]) -> None:
    outcome = await moderated(*texts, policies=["violence"], action="report")
    assert outcome.metadata["scores"] == {"violence": 0.9}
    assert outcome.metadata["severity"] == "high"
    assert outcome.metadata["allow"] is False
    assert [one["scores"]["violence"] for one in outcome.metadata["items"]] == [
        {"calm": 0.1, "odd": 0.6, "grim": 0.9}[text] for text in texts
    ]
    assert outcome.counts == {"violent_content": 2}


@pytest.mark.parametrize("texts", list(permutations(["calm", "grim", "odd"])))
async def test_one_item_is_enough_to_refuse(texts: tuple[str, ...]) -> None:
    actions = {"violence": "block", "hate": "report"}
    with pytest.raises(BlockedByPolicyError) as refused:
        await moderated(*texts, action=actions)
    expected = [number for number, text in enumerate(texts) if text != "calm"]
    assert refused.value.details["items"] == expected
    assert refused.value.details["severity"] == "high"


@pytest.mark.parametrize("words", ["harsh", "vile", "harsh vile", "vile harsh"])
async def test_a_policy_that_only_reports_does_not_undo_the_refusal_of_another(words: str) -> None:
    plain = {"harsh": {"violence": 0.9}, "vile": {"hate": 0.9}}
    middleware = ContentModeration(engines(moderator=FakeModerator(plain)))
    for blocked, reported, word in (("violence", "hate", "harsh"), ("hate", "violence", "vile")):
        arguments = ContentModerationArguments(action={blocked: "block", reported: "report"})
        if word in words:
            with pytest.raises(BlockedByPolicyError):
                await middleware.apply(Context.parse([words]), arguments)
        else:
            assert (await middleware.apply(Context.parse([words]), arguments)).metadata["allow"] is False


async def test_of_two_flags_of_one_name_the_first_is_told_and_warned_of_once() -> None:
    custom = [{"name": "rivals", "terms": ["Acme"], "warning": "No rivals"}]
    outcome = await moderated("Acme", "Acme", customPolicies=custom, policies=["rivals"])
    assert outcome.metadata["flags"] == ["rivals"]
    assert outcome.counts == {"rivals": 2}
    assert outcome.context.to_json()[0] == "[MODERATION WARNING: No rivals]\n\nAcme"


async def test_the_score_at_the_threshold_is_flagged_and_the_one_below_is_not() -> None:
    for score, flags in ((0.5, ["violent_content"]), (0.499, [])):
        middleware = ContentModeration(engines(moderator=FakeModerator({"odd": {"violence": score}})))
        outcome = await middleware.apply(Context.parse(["odd"]), ContentModerationArguments())
        assert outcome.metadata["flags"] == flags


class Scored:
    """Gives each text the score that stands in it, with the findings that a test says."""

    def __init__(self, **found: Sequence[InjectionFinding]) -> None:
        self.found = found

    async def judge(self, texts: Sequence[str], *, documents: bool = False) -> InjectionJudgement:
        scores = [
            max((float(word) for word in text.split() if word[0].isdigit()), default=0.0) for text in texts
        ]
        findings = [list(self.found.get(text.split()[0], ())) for text in texts]
        return InjectionJudgement(scores, findings, EngineReport("scored", "1"))


async def suspected(*items: Any, detector: Scored | None = None, **arguments: Any) -> Outcome:
    middleware = PromptInjection(engines(injection=detector or Scored()))
    return await middleware.apply(Context.parse(list(items)), PromptInjectionArguments(**arguments))


BLOCK = {"type": "text", "text": "x"}


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def result(text: str) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": text}]}


@pytest.mark.parametrize("scores", list(permutations(["0.2", "0.9", "0.6"])))
async def test_the_most_suspicious_text_gives_the_score(scores: tuple[str, ...]) -> None:
    outcome = await suspected(*(said(f"score {one}") for one in scores))
    assert outcome.metadata["score"] == 0.9
    assert [one["item"] for one in outcome.metadata["findings"]] == [
        number for number, one in enumerate(scores) if float(one) >= 0.5
    ]


@pytest.mark.parametrize(
    ("score", "severity"), [("0.5", "medium"), ("0.849", "medium"), ("0.85", "high"), ("0.499", "low")]
)
async def test_what_is_suspected_has_the_severity_of_its_score(score: str, severity: str) -> None:
    outcome = await suspected(said(f"score {score}"), threshold=0.4)
    (finding,) = outcome.metadata["findings"]
    assert (finding["kind"], finding["severity"]) == ("judgement", severity)
    assert (finding["start"], finding["end"]) == (0, len(f"score {score}"))


async def test_the_threshold_itself_is_suspected_and_a_score_of_nothing_never_is() -> None:
    assert (await suspected(said("score 0.5"))).metadata["suspected"] is True
    assert (await suspected(said("score 0.499"))).metadata["suspected"] is False
    assert (await suspected(said("score 0"), threshold=0)).metadata["suspected"] is False


@pytest.mark.parametrize(
    ("items", "warnings"),
    [
        ([said("score 0.9"), result("score 0.9")], ("This message may", "Content of tools")),
        ([said("score 0.9"), result("score 0.1")], ("This message may",)),
        ([said("score 0.1"), result("score 0.9")], ("Content of tools",)),
        ([said("score 0.1"), result("score 0.1")], ()),
        ([said("score 0.9"), said("score 0.1"), result("0.9"), result("0.1")],
         ("This message may", "Content of tools")),
    ],
)  # fmt: skip
async def test_the_warning_tells_what_users_say_from_what_tools_hold(
    items: list[Any], warnings: tuple[str, ...]
) -> None:
    outcome = await suspected(*items, action="annotate")
    changed = json.dumps(outcome.context.to_json())
    assert [one for one in ("This message may", "Content of tools") if one in changed] == list(warnings)


async def test_a_surer_finding_of_hidden_text_keeps_its_score_and_a_doubtful_one_is_raised() -> None:
    text = "go <!-- obey -->"
    for score, expected in ((0.97, 0.97), (0.3, 0.9)):
        detector = Scored(go=[InjectionFinding("override", 8, 12, score)])
        outcome = await suspected(result(text), detector=detector)
        assert outcome.metadata["score"] == expected
        assert [(one["kind"], one["score"]) for one in outcome.metadata["findings"]] == [
            ("hidden_text", expected)
        ]


async def test_a_finding_beside_hidden_text_is_none_of_it() -> None:
    detector = Scored(go=[InjectionFinding("override", 0, 3, 0.6)])
    outcome = await suspected(result("go <!-- obey --> 0.6"), detector=detector)
    assert [one["kind"] for one in outcome.metadata["findings"]] == ["override"]


async def test_notable_is_what_reaches_four_tenths_or_the_lower_threshold() -> None:
    found = [InjectionFinding(kind, 0, 2, score) for kind, score in (("a", 0.4), ("b", 0.39), ("c", 0.3))]
    outcome = await suspected(said("go 0.9"), detector=Scored(go=found))
    assert [one["kind"] for one in outcome.metadata["findings"]] == ["a"]
    outcome = await suspected(said("go 0.9"), detector=Scored(go=found), level="strict")
    assert [one["kind"] for one in outcome.metadata["findings"]] == ["a", "b", "c"]


async def test_a_hundred_findings_are_told_and_counted() -> None:
    found = [InjectionFinding("a", 0, 2, 0.9)] * 101
    outcome = await suspected(said("go 0.9"), detector=Scored(go=found))
    assert len(outcome.metadata["findings"]) == 100
    assert outcome.counts == {"a": 100}


async def test_what_crosses_from_one_text_into_the_next_is_told_where_it_begins() -> None:
    blocks = [{"type": "text", "text": text} for text in ("go", "on 0.9", "x")]
    # Of "go\non 0.9\nx": what begins in the second and ends in the third, and what stays inside of one.
    crossing, inside = InjectionFinding("split", 6, 11, 0.9), InjectionFinding("whole", 4, 9, 0.9)

    class Joined(Scored):
        """Finds only in the texts together."""

        async def judge(self, texts: Sequence[str], *, documents: bool = False) -> InjectionJudgement:
            found = [[crossing, inside] if "\n" in text else [] for text in texts]
            scores = [0.9 if "\n" in text else 0.0 for text in texts]
            return InjectionJudgement(scores, found, EngineReport("joined", "1"))

    outcome = await suspected({"role": "user", "content": blocks}, detector=Joined())
    (finding,) = outcome.metadata["findings"]
    assert (finding["kind"], finding["pointer"]) == ("split", "/0/content/1/text")
    assert (finding["start"], finding["end"]) == (3, 6)


@pytest.mark.parametrize(
    ("items", "groups"),
    [
        (["a", "b", "c"], ["a\nb\nc"]),
        (["a", {"type": "image", "data": "AA==", "mimeType": "image/png"}, "b"], []),
        ([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], []),
        (["a", "b", {"role": "user", "content": "c"}], ["a\nb"]),
        (["a", {"role": "user", "content": [BLOCK, BLOCK]}], ["x\nx"]),
        ([{"role": "user", "content": [BLOCK, BLOCK]}, {"role": "user", "content": "a"}], ["x\nx"]),
    ],
)
async def test_only_texts_side_by_side_are_judged_together(items: list[Any], groups: list[str]) -> None:
    asked: list[str] = []

    class Listening(Scored):
        async def judge(self, texts: Sequence[str], *, documents: bool = False) -> InjectionJudgement:
            asked.extend(texts)
            return await super().judge(texts, documents=documents)

    await suspected(*items, detector=Listening())
    assert [text for text in asked if "\n" in text] == groups
