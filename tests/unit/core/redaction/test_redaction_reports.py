"""What redaction counts: found, reported, in a place that may not change, masked; and what it refuses for it."""

from typing import Any

import pytest

from app.core.content.context import Context
from app.core.content.handles import Handle
from app.core.content.shapes.definitions import REQUEST_TYPE
from app.core.contracts.engines import Span
from app.core.errors import BlockedByPolicyError, UnscannableContentError
from app.core.redaction.plan import Mode, Numbers, RedactionArguments, RedactionPlan
from app.core.redaction.redaction import conceal_edits

LINK = {"type": "resource_link", "uri": "https://x/Jane", "name": "n"}


def number(value: float) -> dict[str, Any]:
    return {"type": "tool_use", "id": "1", "name": "t", "input": {"v": value}}


async def planned(
    item: Any,
    found: str,
    *,
    label: str = "PERSON",
    mode: Mode = "handle",
    numbers: Numbers = "report",
    **arguments: Any,
) -> tuple[RedactionPlan, Context]:
    """Plan one finding: the text ``found`` wherever it stands."""
    context = Context.parse([item])
    spans = [
        [Span(leaf.text.index(found), leaf.text.index(found) + len(found), label, 0.9)]
        if found in leaf.text
        else []
        for leaf in context.leaves
    ]
    plan = RedactionPlan(RedactionArguments(numbers=numbers, **arguments), {"": mode}, "personal data")
    return plan, await plan.edited(context, spans)


async def test_a_finding_that_was_to_be_reported_is_none_that_could_not_be_changed() -> None:
    for item, found in ((LINK, "Jane"), (number(1234567), "1234567"), ("Jane", "Jane")):
        plan, edited = await planned(item, found, mode="report", numbers="block", unscanned="block")
        assert edited.to_json() == [item]
        assert plan.fixed.total() == 0
        assert sum(plan.reported.values()) == plan.counts.total() == 1


@pytest.mark.parametrize("mode", ["handle", "mask", "hash", "remove"])
async def test_a_place_that_may_not_change_is_refused_where_it_was_to_be_changed(mode: Mode) -> None:
    with pytest.raises(UnscannableContentError) as refused:
        await planned(LINK, "Jane", mode=mode, unscanned="block")
    assert refused.value.details == {"places": {"uri": 1}}
    with pytest.raises(UnscannableContentError) as refused:
        await planned(number(1234567), "1234567", mode=mode, numbers="block")
    assert refused.value.details == {"numbers": 1}
    plan, _ = await planned(LINK, "Jane", mode=mode, numbers="block")
    assert plan.metadata(Context.parse([]))["reported"] == [
        {"type": "person", "place": "uri", "item": 0, "count": 1}
    ]


async def test_a_blocked_finding_is_neither_reported_nor_changed() -> None:
    with pytest.raises(BlockedByPolicyError) as refused:
        await planned("Jane and Jane", "Jane", mode="block")
    assert refused.value.details == {"types": {"person": 1}}


@pytest.mark.parametrize("mode", ["handle", "report"])
async def test_an_end_users_id_is_counted_where_it_is_masked_and_where_it_is_reported(mode: Mode) -> None:
    context = Context.parse([{"type": REQUEST_TYPE, "members": {"user": "customer-4711"}}])
    plan = RedactionPlan(RedactionArguments(), {"": mode}, "personal data", digests_users=True)
    edited = await plan.edited(context, [[] for _ in context.leaves])
    assert plan.counts == {"USER_ID": 1}
    assert (
        plan.metadata(Context.parse([]))
        == {
            "handle": {"masked": [{"type": "user_id", "mode": "digest", "count": 1}]},
            "report": {"reported": [{"type": "user_id", "place": "user", "item": 0, "count": 1}]},
        }[mode]
    )
    assert [mask.text for mask in edited.masks] == (["customer-4711"] if mode == "handle" else [])


async def test_half_a_number_becomes_a_string_as_a_whole() -> None:
    plan, edited = await planned(number(1234567), "345", mode="mask", numbers="string")
    (mask,) = edited.masks
    assert mask.text == "1234567"
    assert plan.metadata(Context.parse([])) == {"masked": [{"type": "person", "mode": "mask", "count": 1}]}


async def test_of_findings_in_one_number_the_longest_names_it() -> None:
    context = Context.parse([number(1234567890123)])
    spans = [
        [Span(0, 4, "A", 0.9), Span(4, 13, "B", 0.5)] if leaf.place == "number" else []
        for leaf in context.leaves
    ]
    plan = RedactionPlan(RedactionArguments(), {"": "handle"}, "personal data")
    edited = await plan.edited(context, spans)
    assert [(one.label, one.original.text) for one in edited.conceals] == [("B", "1234567890123")]


async def test_uris_are_changed_only_where_that_is_asked_for() -> None:
    _, edited = await planned(LINK, "Jane", uris="change", unscanned="block")
    assert [one.original.text for one in edited.conceals] == ["Jane"]


TOKEN = "16C7e42F292c6912E7710c838347Ae4H2Y7G"


@pytest.mark.parametrize("scores", [(0.4, 0.8), (0.8, 0.4)])
async def test_findings_that_share_a_token_become_one_with_the_label_of_the_surer(
    scores: tuple[float, float],
) -> None:
    context = Context.parse([f"key {TOKEN} now"])
    spans = [[Span(6, 10, "A", scores[0]), Span(20, 25, "B", scores[1])]]
    plan = RedactionPlan(RedactionArguments(), {"": "handle"}, "personal data")
    edited = await plan.edited(context, spans)
    surer = "A" if scores[0] > scores[1] else "B"
    assert [(one.label, one.original.text) for one in edited.conceals] == [(surer, TOKEN)]


async def test_a_finding_that_goes_on_behind_a_token_keeps_its_end_whatever_begins_inside() -> None:
    text = f"key {TOKEN} Main Street"
    context = Context.parse([text])
    spans = [[Span(10, len(text), "A", 0.9), Span(20, 25, "B", 0.5)]]
    plan = RedactionPlan(RedactionArguments(), {"": "handle"}, "personal data")
    edited = await plan.edited(context, spans)
    assert [one.original.text for one in edited.conceals] == [text[4:]]


def cut_out(text: str, *spans: Span) -> list[tuple[str, str]]:
    """Return what becomes of ``spans``: the label and the original of each handle."""
    context = Context.parse([text])
    edited = context.edited(conceal_edits(context.leaves[0], spans))
    return [(one.label, one.original.text) for one in edited.conceals]


def test_findings_that_overlap_become_one_that_ends_where_the_longer_does() -> None:
    text = "Jane Mary Smith came"
    assert cut_out(text, Span(0, 15, "A", 0.5), Span(5, 9, "B", 0.9)) == [("A", "Jane Mary Smith")]
    assert cut_out(text, Span(0, 9, "A", 0.5), Span(5, 15, "B", 0.9)) == [("A", "Jane Mary Smith")]
    assert cut_out(text, Span(5, 15, "B", 0.9), Span(0, 9, "A", 0.5)) == [("A", "Jane Mary Smith")]
    assert cut_out(text, Span(0, 4, "A", 0.5), Span(4, 9, "B", 0.9)) == [("A", "Jane"), ("B", " Mary")]
    assert cut_out(text, Span(3, 3, "A", 0.5)) == []


def test_a_finding_that_begins_inside_of_what_looks_like_a_handle_gives_its_label() -> None:
    assert cut_out("see [PERSON_1] Jane", Span(12, 19, "NAME", 0.9)) == [("NAME", "[PERSON_1] Jane")]
    assert cut_out("see [PERSON_1] Jane", Span(4, 19, "NAME", 0.9)) == [("NAME", "[PERSON_1] Jane")]
    assert cut_out("see [PERSON_1] Jane") == [("LITERAL", "[PERSON_1]")]


def test_a_finding_ends_where_a_handle_begins_that_may_be_kept() -> None:
    context = Context.parse(["[PERSON_1] Jane [PERSON_2]"])
    edits = conceal_edits(context.leaves[0], [Span(5, 15, "NAME", 0.9)], handles="keep")
    kept = [(one.label, one.original.text, one.keep) for one in context.edited(edits).conceals]
    assert kept == [
        ("LITERAL", "[PERSON_1]", Handle("PERSON", 1)),
        ("NAME", "Jane", None),
        ("LITERAL", "[PERSON_2]", Handle("PERSON", 2)),
    ]


def test_a_bare_handle_in_a_longer_finding_is_part_of_it() -> None:
    context = Context.parse(["ask PERSON_1@acme.test"])
    edits = conceal_edits(context.leaves[0], [Span(4, 22, "EMAIL", 0.9)], handles="keep")
    assert [(one.label, one.keep) for one in context.edited(edits).conceals] == [("EMAIL", None)]


def test_what_looks_like_a_handle_inside_of_a_masked_finding_is_left_to_the_mask() -> None:
    context = Context.parse(["a [PERSON_1] b [PERSON_2]"])
    edits = conceal_edits(context.leaves[0], [], masked=[Span(2, 12, "NAME", 0.9)])
    assert [(edit.start, edit.end) for edit in edits] == [(15, 25)]


async def test_text_like_a_handle_inside_a_masked_finding_goes_with_the_mask() -> None:
    _plan, edited = await planned("ask [PERSON_1] now", "[PERSON_1]", mode="mask")
    assert edited.conceals == []  # of which one would be restored


def test_a_text_whose_rest_would_turn_into_a_handle_is_concealed_as_a_whole() -> None:
    """``[PERSON_1]PERSON_1`` would be restored twice, of which the second was text."""
    text = "see JanePERSON_1"
    leaf = Context.parse([{"type": "text", "text": text}]).leaves[0]
    assert [(edit.start, edit.end) for edit in conceal_edits(leaf, [Span(4, 8, "PERSON", 0.9)])] == [
        (0, len(text))
    ]


@pytest.mark.parametrize(("handles", "kept"), [("keep", Handle("PERSON", 7)), ("escape", None)])
async def test_a_handle_beside_a_finding_is_kept_where_that_is_asked_for(
    handles: str, kept: Handle | None
) -> None:
    _plan, edited = await planned("ask [PERSON_7] or Jane", "Jane", handles_in_input=handles, scope="c1")
    assert [(one.original.text, one.keep) for one in edited.conceals] == [
        ("[PERSON_7]", kept),
        ("Jane", None),
    ]


def test_the_vault_is_told_how_originals_are_to_be_kept() -> None:
    told = RedactionArguments(scope="c1", canonical=True, tagged=True, ttl_s=60, returnMapping=True).vault()
    assert (told.scope, told.conceals, told.return_mapping) == ("c1", True, True)
    assert (told.canonical, told.tagged, told.ttl_s) == (True, True, 60)
    plain = RedactionArguments().vault()
    assert (plain.canonical, plain.tagged, plain.ttl_s, plain.return_mapping) == (False, False, None, False)
