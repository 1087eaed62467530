"""Redaction conceals what is found, reports what it may not change, and refuses what it is told to refuse."""

from typing import Any

import pytest

from app.core.content.context import Context
from app.core.contracts.middleware import Outcome
from app.core.errors import BlockedByPolicyError, InvalidArgumentsError, UnscannableContentError
from app.middlewares.pii_redaction.middleware import PiiRedaction, PiiRedactionArguments
from tests.fakes import MemoryVault, engines


async def outcome_of(items: list[Any], **arguments: Any) -> Outcome:
    return await PiiRedaction(engines()).apply(Context.parse(items), PiiRedactionArguments(**arguments))


async def redacted(items: list[Any], **arguments: Any) -> list[Any]:
    return MemoryVault().settle((await outcome_of(items, **arguments)).context).to_json()


async def test_equal_values_share_a_handle_and_others_do_not() -> None:
    text = "John Doe (a@b.cd) met Jane Smith and John Doe, 123-45-6789"
    assert await redacted([text]) == ["[PERSON_1] ([EMAIL_1]) met [PERSON_2] and [PERSON_1], [SSN_1]"]


CANARY = "canary@example.com"
POSITIONS: dict[str, tuple[Any, bool]] = {
    "bare string": (CANARY, True),
    "text": ({"type": "text", "text": f"x {CANARY} y"}, True),
    "message string": ({"role": "user", "content": CANARY}, True),
    "message with type": ({"type": "message", "role": "assistant", "content": CANARY}, True),
    "system message": ({"role": "system", "content": CANARY}, True),
    "message with one block": ({"role": "user", "content": {"type": "text", "text": CANARY}}, True),
    "message with blocks": ({"role": "user", "content": [{"type": "text", "text": CANARY}, CANARY]}, True),
    "tool message": ({"role": "tool", "tool_call_id": "1", "content": CANARY}, True),
    "tool calls beside the content": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"arguments": f'{{"a":"{CANARY}"}}'}}],
        },
        True,
    ),
    "resource text": ({"type": "resource", "resource": {"uri": "f:///a", "text": CANARY}}, True),
    "resource blob": (
        {
            "type": "resource",
            "resource": {"uri": "f:///a", "mimeType": "text/plain", "blob": "Y2FuYXJ5QGV4YW1wbGUuY29t"},
        },
        True,
    ),
    "link title": ({"type": "resource_link", "uri": "f:///a", "name": "n", "title": CANARY}, True),
    "link description": (
        {"type": "resource_link", "uri": "f:///a", "name": "n", "description": CANARY},
        True,
    ),
    "tool input": ({"type": "tool_use", "id": "1", "name": "n", "input": {"a": [{"b": CANARY}]}}, True),
    "tool input as text": ({"type": "tool_use", "id": "1", "name": "n", "input": CANARY}, True),
    "tool result string": ({"type": "tool_result", "toolUseId": "1", "content": CANARY}, True),
    "tool result blocks": (
        {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": CANARY}]},
        True,
    ),
    "tool result of unknown shape": ({"type": "tool_result", "content": [{"rows": [[CANARY]]}]}, True),
    "structured content": (
        {"type": "tool_result", "content": [], "structuredContent": {"a": {"b": CANARY}}},
        True,
    ),
    "bare tool result": ({"content": [{"type": "text", "text": CANARY}], "isError": False}, True),
    "JSON in text": ({"type": "text", "text": f'{{"mail": "{CANARY}"}}'}, True),
    "JSON in JSON in text": ({"type": "text", "text": f'{{"a": "{{\\"mail\\": \\"{CANARY}\\"}}"}}'}, True),
    "escaped in JSON in text": ({"type": "text", "text": '{"mail": "canary\\u0040example.com"}'}, True),
    "JSON in tool input": ({"type": "tool_use", "name": "n", "input": {"body": f'["{CANARY}"]'}}, True),
    "uri": ({"type": "resource_link", "uri": f"mailto:{CANARY}", "name": "n"}, False),
    "resource uri": ({"type": "resource", "resource": {"uri": f"x:{CANARY}", "text": ""}}, False),
    "object key": ({"type": "tool_use", "name": "n", "input": {CANARY: 1}}, False),
    "key of JSON in text": ({"type": "text", "text": f'{{"{CANARY}": 1}}'}, False),
    "number": ({"type": "tool_use", "name": "n", "input": {"a": 4111111111111111}}, True),
    "link name": ({"type": "resource_link", "uri": "f:///a", "name": CANARY}, True),
    "meta": ({"type": "text", "text": "x", "_meta": {"a": CANARY}}, True),
    "annotations": ({"type": "text", "text": "x", "annotations": {"a": [CANARY]}}, True),
    "unknown field": ({"type": "text", "text": "x", "note": CANARY}, True),
    "image field": ({"type": "image", "data": "aGk=", "mimeType": "image/png", "alt": CANARY}, True),
}


@pytest.mark.parametrize("position", POSITIONS)
async def test_a_canary_in_any_position_is_concealed_or_reported(position: str) -> None:
    item, changed = POSITIONS[position]
    outcome = await outcome_of([item])
    done = MemoryVault().settle(outcome.context).to_json()
    if changed:
        shown = str(done).replace("\\", "")
        assert "canary" not in shown and "Y2FuYXJ5" not in shown and "4111" not in shown
        assert "reported" not in outcome.metadata
    else:
        assert done == [item]
        assert sum(entry["count"] for entry in outcome.metadata["reported"]) == 1
        with pytest.raises(UnscannableContentError):
            await outcome_of([item], unscanned="block")


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"type": "image", "data": "aGk=", "mimeType": "image/png"}, "image"),
        ({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}, "audio"),
        (
            {"type": "resource", "resource": {"uri": "f:///a", "mimeType": "image/png", "blob": "aGk="}},
            "blob",
        ),
        ({"type": "thinking", "thinking": "John Doe", "signature": "s"}, "signed_reasoning"),
        ({"type": "redacted_thinking", "data": "c2ln"}, "reasoning"),
    ],
)
async def test_what_cannot_be_scanned_is_counted_or_refused(item: dict[str, Any], kind: str) -> None:
    outcome = await outcome_of([item])
    assert outcome.context.to_json() == [item]
    assert outcome.metadata["unscanned"] == {kind: 1}
    with pytest.raises(UnscannableContentError):
        await outcome_of([item], unscanned="block")


async def test_modes_are_chosen_for_all_or_per_type() -> None:
    text = "John Doe, a@b.cd, 123-45-6789"
    assert await redacted([text], mode="mask") == ["********, ******, ***********"]
    assert await redacted([text], mode={"person": "remove", "email": "hash"}) == [", #EMAIL, [SSN_1]"]
    outcome = await outcome_of([text], mode={"person": "report"})
    assert outcome.metadata["reported"] == [{"type": "person", "place": "text", "item": 0, "count": 1}]


async def test_block_refuses_the_call_and_says_no_content() -> None:
    with pytest.raises(BlockedByPolicyError) as caught:
        await outcome_of(["John Doe"], mode="block")
    assert caught.value.details == {"types": {"person": 1}}
    assert "John" not in caught.value.message


async def test_numbers_become_strings_and_are_reported_or_refused_where_asked() -> None:
    item = {"type": "tool_use", "name": "n", "input": {"card": 4111111111111111}}
    assert (await redacted([item]))[0]["input"] == {"card": "[CARD_1]"}
    assert await redacted([item], numbers="report") == [item]
    with pytest.raises(UnscannableContentError):
        await outcome_of([item], numbers="block")


async def test_uris_change_where_asked() -> None:
    item = {"type": "resource_link", "uri": "mailto:a@b.cd", "name": "n"}
    assert (await redacted([item], uris="change"))[0]["uri"] == "mailto:[EMAIL_1]"


async def test_types_are_chosen_by_their_public_names() -> None:
    text = "John Doe a@b.cd"
    assert await redacted([text], entities=["person"]) == ["[PERSON_1] a@b.cd"]
    assert await redacted([text], exclude=["person"]) == ["John Doe [EMAIL_1]"]
    with pytest.raises(InvalidArgumentsError) as caught:
        await outcome_of([text], entities=["shoe_size"])
    assert caught.value.details["pointer"] == "/arguments/entities/0"


async def test_types_are_also_known_by_the_engine_s_own_names() -> None:
    text = "John Doe a@b.cd"
    assert await redacted([text], entities=["EMAIL_ADDRESS"]) == ["John Doe [EMAIL_1]"]
    assert await redacted([text], mode={"EMAIL_ADDRESS": "remove"}) == ["[PERSON_1] "]


async def test_the_same_prefix_gives_the_same_bytes() -> None:
    first = await redacted(["John Doe", "a@b.cd"])
    second = await redacted(["John Doe", "a@b.cd", "Jane Smith"])
    assert second[:2] == first
