"""Where a choice of tools ends: at a number, a score, a fall of the score or a budget, each to the very value."""

from collections.abc import Sequence
from typing import Any

import pytest

from app.core.content.context import Context
from app.core.contracts.engines import EngineReport, ToolCandidate, ToolRanking
from app.core.tools.requests import ToolRequest, request_of
from app.core.tools.selection import Selection, SelectionLimits, selected

ONE = ToolRequest(("ask",), (1.0,), ())


class Ranker:
    """Gives the tools, by text, the scores that a test says."""

    def __init__(self, *rows: Sequence[float]) -> None:
        self.rows = rows

    async def rank(self, queries: Sequence[str], tools: Sequence[ToolCandidate]) -> ToolRanking:
        rows = [list(row) for row in self.rows[: len(queries)]]
        order = [sorted(range(len(row)), key=lambda place: -row[place]) for row in rows]
        return ToolRanking(rows, order, EngineReport("scripted", "1"))


async def chosen(
    *rows: Sequence[float], request: ToolRequest = ONE, costs: Sequence[int] = (), **wanted: Any
) -> Selection:
    tools = [ToolCandidate(name) for name in "abcdefgh"[: len(rows[0])]]
    bounds = SelectionLimits(**{"max_tools": 10, "min_score": 0.0, "gap": 0.0, **wanted})
    return await selected(Ranker(*rows), request, tools, bounds, lambda place: costs[place] if costs else 0)


def names(selection: Selection) -> str:
    return "".join(name for name, _ in selection.relevant)


@pytest.mark.parametrize(
    ("scores", "wanted", "relevant"),
    [
        ((0.9, 0.5, 0.1), {"max_tools": 2}, "ab"),
        ((0.9, 0.5, 0.1), {"max_tools": 3}, "abc"),
        ((0.9, 0.5, 0.1), {"min_score": 0.5}, "ab"),
        ((0.9, 0.5, 0.1), {"min_score": 0.51}, "a"),
        ((0.8, 0.4, 0.1), {"gap": 0.5}, "ab"),
        ((0.8, 0.39, 0.1), {"gap": 0.5}, "a"),
        ((0.8, 0.4, 0.2), {"gap": 0.5}, "abc"),
        ((0.2, 0.9, 0.5), {}, "bca"),
        ((0.5, 0.5, 0.9), {"max_tools": 2}, "ca"),
    ],
)
async def test_the_bound_itself_is_within(scores: Sequence[float], wanted: Any, relevant: str) -> None:
    assert names(await chosen(scores, **wanted)) == relevant


async def test_a_definition_that_does_not_fit_leaves_room_for_smaller_ones() -> None:
    assert names(await chosen((0.9, 0.8, 0.7), costs=(4, 7, 6), max_tokens=10)) == "ac"
    assert names(await chosen((0.9, 0.8, 0.7), costs=(4, 7, 7), max_tokens=10)) == "a"
    assert names(await chosen((0.9, 0.8), costs=(5, 5), max_tokens=10)) == "ab"


async def test_pinned_tools_are_paid_for_first_and_only_once() -> None:
    made = await chosen((0.9, 0.8, 0.7), costs=(4, 4, 4), max_tokens=8, pinned=("c",))
    assert (names(made), made.chosen) == ("ac", ("a", "c"))
    dear = await chosen((0.9, 0.8, 0.7), costs=(4, 4, 9), max_tokens=8, pinned=("c",))
    assert dear.chosen == ("a", "b", "c"), "what is too dear is shown all the same, and costs nothing"


async def test_pinned_and_used_tools_are_chosen_once_and_unknown_ones_are_told_once() -> None:
    used = ToolRequest(("ask",), (1.0,), ("d", "a", "gone"))
    made = await chosen((0.9, 0.1, 0.1, 0.1), request=used, min_score=0.5, pinned=("c", "lost", "c", "lost"))
    assert made.chosen == ("a", "c", "d")
    assert made.unknown_pinned == ("lost",)
    assert made.total == 4


async def test_where_nothing_is_relevant_the_best_are_chosen_unless_something_is_pinned_or_nothing_is_fine() -> (
    None
):
    scores = (0.1, 0.3, 0.2)
    assert names(await chosen(scores, min_score=0.5, max_tools=2)) == "bc"
    assert (await chosen(scores, min_score=0.5, allow_empty=True)).chosen == ()
    assert (await chosen(scores, min_score=0.5, pinned=("a",))).chosen == ("a",)


async def test_what_was_said_before_closes_a_part_of_what_is_missing_to_one() -> None:
    both = ToolRequest(("ask", "before"), (1.0, 0.25), ())
    made = await chosen((0.5, 0.4, 0.0), (0.0, 0.8, 0.4), request=both)
    assert made.relevant == (("b", 0.52), ("a", 0.5), ("c", 0.1))


async def test_without_anything_to_rank_on_the_tools_stand_as_they_came() -> None:
    made = await chosen((0.1, 0.9), request=ToolRequest((), (), ()), max_tools=1)
    assert made.relevant == (("a", 0.0),)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def asked(*items: Any) -> ToolRequest:
    return request_of(Context.parse(list(items)))


def test_a_request_of_four_words_speaks_for_itself_and_a_shorter_one_leans_on_what_was_before() -> None:
    assert asked(user("Plan a trip"), user("book it for me")).weights == (1.0, 0.25)
    assert asked(user("Plan a trip"), user("yes go ahead")).weights == (1.0, 0.75)
    assert asked(user("yes")).weights == (1.0,)


def test_without_a_request_of_the_user_what_was_said_counts_in_full() -> None:
    made = asked({"role": "assistant", "content": "Shall I book it?"})
    assert (made.texts, made.weights) == (("Shall I book it",), (1.0,))
    assert asked().texts == ()


def test_what_was_before_is_told_the_latest_first_and_results_of_tools_half_as_long() -> None:
    result = {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "word " * 100}]}
    made = asked(
        user("first"), {"role": "assistant", "content": "then second"}, result, user("now do it all")
    )
    assert made.texts[0] == "now do it all"
    words = made.texts[1]
    assert words.startswith("word word")
    assert words.endswith("second first")
    assert len(words) == 100 + len(" second first")


def test_of_a_long_request_the_beginning_and_the_end_are_ranked() -> None:
    assert asked(user("a" * 2000)).texts == ("a" * 2000,)
    assert asked(user("a" * 1000 + "-" + "b" * 1000)).texts == ("a" * 1000 + "\n" + "b" * 1000,)


def test_tools_that_were_used_are_named_once_in_order_wherever_they_stand() -> None:
    def call(name: Any) -> dict[str, Any]:
        return {"type": "tool_use", "id": "1", "name": name, "input": {}}

    items = [
        call("b"),
        {"role": "assistant", "content": [call("a"), {"type": "text", "text": "x"}, call("b")]},
        {"role": "assistant", "content": call("c")},
        {"role": "assistant", "content": [call(7)]},
        {"type": "text", "text": "x", "name": "d"},
    ]
    assert asked(*items).used == ("b", "a", "c")


def test_results_of_tools_ask_for_nothing_even_in_a_message_of_the_user() -> None:
    result = {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "Found it."}]}
    made = asked(user("now do it all"), {"role": "user", "content": [result]})
    assert made.texts[0] == "now do it all"


def test_every_handle_is_left_out_of_what_is_ranked() -> None:
    assert asked(user("Ask [PERSON_1] and [PERSON_2] to come")).texts == ("Ask   and   to come",)


def test_what_a_result_of_a_tool_holds_was_not_used() -> None:
    call = {"type": "tool_use", "id": "1", "name": "a", "input": {}}
    assert asked({"type": "tool_result", "toolUseId": "1", "content": [call]}).used == ()
