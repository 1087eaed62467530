"""The tools that a conversation needs are suggested, pinned and used ones always, never none by accident."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from app.core.access import Caller, Role
from app.core.content.context import Context
from app.core.contracts.middleware import Invocation, Outcome
from app.core.errors import InvalidArgumentsError
from app.engines.encoder import Encoder
from app.engines.ranking.ranker import EmbeddedToolRanker
from app.middlewares.tool_filter import ToolFilter, ToolFilterArguments
from tests.fakes import engines

REQUEST = [{"type": "text", "text": "Find my meeting notes from last week about the marketing campaign"}]
NAMES = ["search_email", "search_documents", "search_calendar", "calculate", "send_email"]
CALLER = Caller("acme", "key", frozenset({Role.INVOKER}))


def defined(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


async def filtered(
    items: list[Any], visible: Sequence[Mapping[str, Any]] = (), *, ranker: Any = None, **arguments: Any
) -> Outcome:
    async def seen() -> Sequence[Mapping[str, Any]]:
        return visible

    chosen = ToolFilterArguments.model_validate(arguments)
    bundle = engines(tools=ranker) if ranker else engines()
    return await ToolFilter(bundle).invoke(Context.parse(items), chosen, Invocation(CALLER, 0.0, seen))


def suggested(outcome: Outcome) -> list[str]:
    found: list[str] = outcome.metadata["suggestedToolSet"]
    return found


async def test_the_proposal_s_example_has_its_content_and_its_shape() -> None:
    outcome = await filtered(
        REQUEST, ranker=EmbeddedToolRanker(Encoder(), patience_s=60), availableTools=NAMES
    )
    assert outcome.context.to_json() == REQUEST
    relevant = outcome.metadata["relevantTools"]
    assert all(set(one) == {"name", "score"} and 0 <= one["score"] <= 1 for one in relevant)
    assert [one["score"] for one in relevant] == sorted((one["score"] for one in relevant), reverse=True)
    assert {one["name"] for one in relevant[:3]} == {"search_documents", "search_email", "search_calendar"}
    assert "calculate" not in suggested(outcome)
    assert suggested(outcome) == [one["name"] for one in relevant]
    assert outcome.engine is not None and outcome.engine.name == "embedded-hybrid"


async def test_definitions_names_and_both_mixed_are_taken() -> None:
    tools = [defined("read_file", title="Read a file"), "send_email", defined("send_email", "Sends mail")]
    outcome = await filtered([{"type": "text", "text": "send an email"}], availableTools=tools)
    assert outcome.metadata["total"] == 2
    assert suggested(outcome) == ["send_email"]


async def test_without_tools_the_caller_s_visible_ones_are_ranked() -> None:
    outcome = await filtered(
        [{"type": "text", "text": "read the file"}], [defined("read_file"), defined("zip")]
    )
    assert suggested(outcome) == ["read_file"]
    assert outcome.metadata["total"] == 2


async def test_a_name_alone_takes_the_visible_definition() -> None:
    visible = [defined("alpha", "Translates texts"), defined("beta", "Books flights")]
    outcome = await filtered(
        [{"type": "text", "text": "book a flight to Rome"}],
        visible,
        ranker=EmbeddedToolRanker(),
        availableTools=["alpha", "beta"],
        maxTools=1,
        returnDefinitions=True,
    )
    assert outcome.metadata["definitions"] == [visible[1]]


async def test_no_tools_at_all_are_no_error() -> None:
    outcome = await filtered(REQUEST, availableTools=[])
    assert (outcome.metadata["relevantTools"], suggested(outcome)) == ([], [])


async def test_nothing_relevant_still_suggests_the_best_unless_nothing_is_wanted() -> None:
    hello = [{"type": "text", "text": "hello"}]
    assert suggested(await filtered(hello, availableTools=NAMES, maxTools=2)) == NAMES[:2]
    assert suggested(await filtered(hello, availableTools=NAMES, allowEmpty=True)) == []
    assert suggested(await filtered([], availableTools=NAMES, maxTools=1)) == NAMES[:1]


async def test_pinned_and_used_tools_are_suggested_behind_the_relevant_ones() -> None:
    items = [
        {"role": "user", "content": "what is 2 + 2"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "calculate", "input": {}}]},
        {"role": "user", "content": "search the email of today"},
    ]
    outcome = await filtered(
        items, availableTools=NAMES, maxTools=1, pinned=["send_email", "nowhere", "nowhere"]
    )
    assert suggested(outcome) == ["search_email", "send_email", "calculate"]
    assert outcome.metadata["unknownPinned"] == ["nowhere"]
    assert [one["name"] for one in outcome.metadata["relevantTools"]] == ["search_email"]


async def test_the_last_user_message_weighs_most_and_handles_are_no_words() -> None:
    items = [
        {"role": "user", "content": "send an email to [EMAIL_1]"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "now calculate the total of [SSN_1]"},
    ]
    assert suggested(
        await filtered(items, availableTools=["send_email", "calculate", "SSN"], maxTools=1)
    ) == ["calculate"]


async def test_a_message_that_says_little_leans_on_what_was_said_before() -> None:
    items = [
        {"role": "user", "content": "should I send an email?"},
        {"role": "assistant", "content": "Shall I send the email?"},
        {"role": "user", "content": "yes please"},
    ]
    assert suggested(await filtered(items, availableTools=["calculate", "send_email"], maxTools=1)) == [
        "send_email"
    ]


async def test_a_minimum_a_gap_and_a_budget_of_tokens_end_the_choice() -> None:
    items = [{"type": "text", "text": "send email and search email"}]
    names = ["send_email", "search_email", "email_archive_of_old_things", "calculate"]
    assert len(suggested(await filtered(items, availableTools=names, minScore=0.1))) == 3
    assert len(suggested(await filtered(items, availableTools=names, minScore=0.5))) == 2
    assert len(suggested(await filtered(items, availableTools=names, gap=0.5))) == 2
    large = defined("send_email", "x" * 4000)
    fitting = await filtered(items, availableTools=[large, "search_email"], maxTokens=100)
    assert suggested(fitting) == ["search_email"]


async def test_repeated_tools_count_once_and_contradicting_ones_are_refused() -> None:
    twice = [defined("a", "x"), defined("a", "x"), "a", "b", "b"]
    assert (await filtered(REQUEST, availableTools=twice)).metadata["total"] == 2
    with pytest.raises(InvalidArgumentsError) as refused:
        await filtered(REQUEST, availableTools=[defined("a", "x"), defined("a", "y")])
    assert refused.value.details["pointer"] == "/arguments/availableTools/1/name"


@pytest.mark.parametrize("name", [None, 1, "", " ", "x" * 257, "a\nb", ["a"], {}])
async def test_a_definition_without_a_proper_name_is_refused_where_it_stands(name: Any) -> None:
    with pytest.raises(InvalidArgumentsError) as refused:
        await filtered(REQUEST, availableTools=["a", {"name": name}])
    assert refused.value.details["pointer"] == "/arguments/availableTools/1/name"


@pytest.mark.parametrize(
    "hostile",
    [
        {"inputSchema": "x"},
        {"inputSchema": {"properties": [1]}},
        {"inputSchema": {"properties": {"a": None, "b": {"description": 1}, "": {}}}},
        {"description": {"a": 1}},
        {"description": "\ud800 " * 2000, "title": 3, "annotations": "x"},
        {"description": "a" * 1_000_000},
        {"inputSchema": {"properties": {str(number): {} for number in range(10_000)}}},
    ],
)
async def test_members_of_odd_types_and_sizes_count_as_absent_or_are_cut(hostile: dict[str, Any]) -> None:
    ranker = EmbeddedToolRanker()
    outcome = await filtered(REQUEST, ranker=ranker, availableTools=[{"name": "a", **hostile}, "b"])
    assert set(suggested(outcome)) == {"a", "b"}


async def test_ten_thousand_tools_are_ranked_and_more_are_refused() -> None:
    many = [f"tool_{number}" for number in range(10_000)]
    outcome = await filtered(REQUEST, ranker=EmbeddedToolRanker(), availableTools=many)
    assert outcome.metadata["total"] == 10_000 and 0 < len(suggested(outcome)) <= 10
    with pytest.raises(ValidationError):
        ToolFilterArguments.model_validate({"availableTools": [*many, "one_more"]})
