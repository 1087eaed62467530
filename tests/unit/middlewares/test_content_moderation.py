"""content_moderation scores items, warns the model, reports or refuses, and leaves content alone else."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.core.content.context import Context
from app.core.contracts.middleware import Outcome
from app.core.errors import BlockedByPolicyError, InvalidArgumentsError
from app.middlewares.content_moderation import ContentModeration, ContentModerationArguments
from tests.fakes import engines
from tests.fakes_moderation import FakeModerator

EXAMPLE = "How can I hurt someone's feelings?"
WARNED = "[MODERATION WARNING: This query may seek harmful advice]\n\n"


async def moderated(items: list[Any], **arguments: Any) -> Outcome:
    given = ContentModerationArguments(**arguments)
    return await ContentModeration(engines()).apply(Context.parse(items), given)


async def test_the_proposal_s_example_has_its_shape_with_any_engine() -> None:
    outcome = await moderated([{"type": "text", "text": EXAMPLE}], policies=["violence", "harassment"])
    assert outcome.context.to_json() == [{"type": "text", "text": WARNED + EXAMPLE}]
    assert outcome.metadata == {
        "flags": ["potential_harm_seeking"],
        "severity": "medium",
        "allow": True,
        "scores": {"violence": 0.0, "harassment": 0.7},
        "items": [
            {
                "item": 0,
                "flags": ["potential_harm_seeking"],
                "scores": {"violence": 0.0, "harassment": 0.7},
            }
        ],
    }
    assert outcome.counts == {"potential_harm_seeking": 1}
    assert outcome.engine is not None
    assert outcome.engine.name == "fake"
    assert outcome.audit_details == {
        "level": "enterprise",
        "severity": "medium",
        "allow": True,
        "engine": "fake",
        "engine_version": "1",
    }


async def test_where_there_is_nothing_the_context_stays_and_flags_are_empty() -> None:
    outcome = await moderated(["Good morning"])
    assert outcome.context.to_json() == ["Good morning"]
    assert outcome.metadata["flags"] == []
    assert outcome.metadata["allow"] is True
    assert outcome.metadata["severity"] == "low"
    assert set(outcome.metadata["scores"]) == {
        *("violence", "harassment", "hate", "sexual", "self_harm", "illicit")
    }


async def test_scores_belong_to_items_and_the_highest_stands_above_them() -> None:
    items = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "I will kill you"}]
    outcome = await moderated(items, policies=["violence"])
    assert outcome.metadata["scores"] == {"violence": 0.95}
    assert [(one["item"], one["flags"]) for one in outcome.metadata["items"]] == [
        (0, []),
        (1, ["violent_content"]),
    ]


async def test_tool_results_and_documents_are_judged_and_the_warning_goes_to_the_user() -> None:
    items = [
        {"role": "system", "content": "Never say: I will kill you."},
        {"role": "user", "content": "What does the mail say?"},
        {
            "role": "user",
            "content": [{"type": "tool_result", "content": [{"type": "text", "text": "kill you"}]}],
        },
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "they said kill you"}},
    ]
    outcome = await moderated(items, policies=["violence"])
    assert [one["item"] for one in outcome.metadata["items"] if one["flags"]] == [2, 3]
    changed = outcome.context.to_json()
    assert changed[1]["content"].startswith("[MODERATION WARNING: This text may threaten")
    assert [changed[0], *changed[2:]] == [items[0], *items[2:]]


async def test_each_category_has_its_own_line() -> None:
    outcome = await moderated(["I will kill you, she uses a slur"])
    text = outcome.context.to_json()[0]
    assert text.count("[MODERATION WARNING: ") == 2
    assert text.endswith("]\n\nI will kill you, she uses a slur")


@pytest.mark.parametrize(
    ("level", "flags"), [("regulated", ["illicit_content"]), ("enterprise", []), ("consumer", [])]
)
async def test_levels_are_thresholds(level: str, flags: list[str]) -> None:
    outcome = await moderated(["a doubtful remark"], level=level)
    assert outcome.metadata["flags"] == flags
    assert outcome.metadata["severity"] == "low"


async def test_report_changes_nothing_and_says_what_block_would_do() -> None:
    outcome = await moderated(["I will kill you"], action="report")
    assert outcome.context.to_json() == ["I will kill you"]
    assert outcome.metadata["flags"] == ["violent_content"]
    assert outcome.metadata["severity"] == "high"
    assert outcome.metadata["allow"] is False


async def test_annotate_allows_whatever_it_warns_of() -> None:
    outcome = await moderated(["I will kill you"])
    assert outcome.metadata["allow"] is True
    assert outcome.context.to_json()[0].startswith("[MODERATION WARNING: ")


async def test_block_refuses_what_is_plain_and_names_no_content() -> None:
    with pytest.raises(BlockedByPolicyError) as refused:
        await moderated(["I will kill you"], action="block")
    assert refused.value.details == {"flags": ["violent_content"], "severity": "high", "items": [0]}
    assert "kill" not in refused.value.message


async def test_block_only_warns_where_severity_is_not_high() -> None:
    outcome = await moderated([EXAMPLE], action="block")
    assert outcome.context.to_json() == [WARNED + EXAMPLE]
    assert outcome.metadata["allow"] is True


async def test_who_is_in_distress_is_answered_with_care_unless_the_policy_itself_is_blocked() -> None:
    outcome = await moderated(["I want to end my life"], action="block")
    text = outcome.context.to_json()[0]
    assert "crisis line" in text
    assert outcome.metadata["flags"] == ["self_harm_risk"]
    with pytest.raises(BlockedByPolicyError):
        await moderated(["I want to end my life"], action={"self_harm": "block"})


async def test_each_policy_can_have_its_own_action() -> None:
    items = ["I will kill you, she uses a slur"]
    outcome = await moderated(items, action={"violence": "report"})
    assert outcome.context.to_json()[0].count("[MODERATION WARNING: ") == 1
    assert outcome.metadata["allow"] is False


async def test_custom_policies_match_words_and_patterns() -> None:
    custom = [
        {"name": "rivals", "terms": ["Acme Corp"], "warning": "Do not speak of rivals"},
        {"name": "codes", "patterns": [r"\bPRJ-\d+\b"], "severity": "high"},
    ]
    outcome = await moderated(["acme corp runs PRJ-77"], customPolicies=custom, policies=["rivals", "codes"])
    assert outcome.metadata["flags"] == ["rivals", "codes"]
    assert outcome.metadata["scores"] == {"rivals": 1.0, "codes": 1.0}
    assert outcome.metadata["severity"] == "high"
    assert outcome.context.to_json()[0].startswith("[MODERATION WARNING: Do not speak of rivals]\n[MODER")
    assert outcome.engine is None
    with pytest.raises(BlockedByPolicyError):
        await moderated(["acme corp"], customPolicies=custom, action="block")


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        ({"policies": ["violence", "rivals"]}, "/arguments/policies/1"),
        ({"action": {"rivals": "block"}}, "/arguments/action/rivals"),
        ({"customPolicies": [{"name": "hate"}]}, "/arguments/customPolicies/0/name"),
        ({"customPolicies": [{"name": "a"}]}, "/arguments/customPolicies/0"),
        (
            {"customPolicies": [{"name": "a", "terms": ["x"]}, {"name": "a"}]},
            "/arguments/customPolicies/1/name",
        ),
        (
            {
                "customPolicies": [{"name": "a", "terms": ["x"]}, {"name": "b", "patterns": ["x", "(x"]}],
                "policies": ["b"],
            },
            "/arguments/customPolicies/1/patterns/1",
        ),
    ],
)
async def test_a_wrong_argument_is_refused_with_its_pointer(arguments: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidArgumentsError) as refused:
        await moderated(["x"], **arguments)
    assert refused.value.details["pointer"] == pointer


@pytest.mark.parametrize(
    "arguments",
    [
        {"level": "lenient"},
        {"customPolicies": [{"name": "a", "warning": "two]\nlines"}]},
        {"customPolicies": [{"name": "a", "terms": ["x"] * 501}]},
        {"customPolicies": [{"name": "a", "patterns": ["x" * 501]}]},
        {"customPolicies": [{"name": f"p{i}"} for i in range(21)]},
    ],
)
def test_arguments_are_bounded(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ContentModerationArguments(**arguments)


async def test_a_category_is_chosen_by_the_window_that_the_engine_names() -> None:
    class Windowed(FakeModerator):
        """Names the last sentence."""

        async def moderate(self, texts, policies):
            made = await super().moderate(texts, policies)
            windows = [dict.fromkeys(policies, (text.rindex(" I "), len(text))) for text in texts]
            return type(made)(made.scores, made.report, windows)

    text = "How do I get home? I will kill you"
    arguments = ContentModerationArguments(policies=["violence"])
    middleware = ContentModeration(engines(moderator=Windowed()))
    outcome = await middleware.apply(Context.parse([text]), arguments)
    assert outcome.metadata["flags"] == ["violent_content"]


async def test_what_redaction_left_of_a_person_is_read_as_somebody() -> None:
    class Listening(FakeModerator):
        """Keeps what it is given."""

        async def moderate(self, texts, policies):
            self.given = list(texts)
            return await super().moderate(texts, policies)

    listening = Listening()
    custom = [{"name": "handles", "patterns": [r"PERSON_\d"]}]
    arguments = ContentModerationArguments(customPolicies=custom)
    items = ["Stab [PERSON_1] and [PERSON_12~k3fq] at [ADDRESS_1]", "Stab person 1"]
    outcome = await ContentModeration(engines(moderator=listening)).apply(Context.parse(items), arguments)
    assert listening.given == ["Stab someone and someone at [ADDRESS_1]", "Stab person 1"]
    assert outcome.metadata["items"][0]["flags"][-1] == "handles"
