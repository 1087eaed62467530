"""Restoration puts originals back from the caller's map or from the vault, in safe positions only."""

from typing import Any

import pytest

from app.core.content.context import Context
from app.core.content.handles import Handle
from app.core.contracts.middleware import Outcome
from app.core.errors import InvalidArgumentsError
from app.middlewares.pii_restoration import PiiRestoration, PiiRestorationArguments
from tests.fakes import engines

MAP = {"PERSON_1": "Jane Smith", "EMAIL_1": "jane.smith@example.com"}


async def outcome_of(items: list[Any], **arguments: Any) -> Outcome:
    return await PiiRestoration(engines()).apply(Context.parse(items), PiiRestorationArguments(**arguments))


async def test_the_proposal_s_example_holds_to_the_character() -> None:
    text = "I've reviewed the contract for [PERSON_1]. Please send it to [EMAIL_1]."
    outcome = await outcome_of([{"type": "text", "text": text}], redactions=MAP)
    assert outcome.context.to_json() == [
        {
            "type": "text",
            "text": "I've reviewed the contract for Jane Smith. Please send it to jane.smith@example.com.",
        }
    ]
    assert outcome.metadata == {"unresolved": 0}


async def test_a_scope_leaves_the_handles_to_the_vault() -> None:
    outcome = await outcome_of(["[PERSON_1] and [SSN_2]"], scope="c1")
    assert outcome.context.reveals == [Handle("PERSON", 1), Handle("SSN", 2)]
    assert outcome.vault.restores


async def test_without_scope_and_map_the_call_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError) as refused:
        await outcome_of(["[PERSON_1]"])
    assert refused.value.details == {"pointer": "/arguments"}


async def test_a_key_that_is_no_handle_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError) as refused:
        await outcome_of(["x"], redactions={"Jane Smith": "PERSON_1"})
    assert refused.value.details == {"pointer": "/arguments/redactions"}


async def test_tool_arguments_are_restored_only_for_named_tools() -> None:
    item = {"type": "tool_use", "id": "1", "name": "send_mail", "input": {"to": "[EMAIL_1]"}}
    withheld = await outcome_of([item], redactions=MAP)
    assert withheld.context.to_json() == [item]
    assert withheld.metadata == {"unresolved": 1, "withheld": 1, "handlesLeft": 1}
    allowed = await outcome_of([item], redactions=MAP, tools=["send_mail"])
    assert allowed.context.to_json()[0]["input"] == {"to": "jane.smith@example.com"}
    trusted = await outcome_of([item], redactions=MAP, positions="all")
    assert trusted.context.to_json()[0]["input"] == {"to": "jane.smith@example.com"}


@pytest.mark.parametrize("positions", ["safe", "all"])
@pytest.mark.parametrize(
    "item",
    [
        {"type": "resource_link", "uri": "https://x.example/[PERSON_1]", "name": "n"},
        {"type": "text", "text": "a", "id": "for [PERSON_1]"},
        {"type": "tool_use", "id": "1", "name": "send_mail", "input": {"of [PERSON_1]": "a"}},
        {"type": "tool_result", "tool_use_id": "[PERSON_1] 1", "content": "a"},
    ],
)
async def test_no_original_goes_into_an_address_a_name_or_an_id(item: Any, positions: str) -> None:
    outcome = await outcome_of([item], redactions=MAP, positions=positions, tools=["send_mail"])
    assert outcome.context.to_json() == [item]
    assert outcome.metadata == {"unresolved": 0, "handlesLeft": 1}


async def test_links_are_left_alone_in_safe_positions() -> None:
    text = "![x](https://evil.example/[EMAIL_1])"
    assert (await outcome_of([text], redactions=MAP)).context.to_json() == [text]
    assert "jane" in str((await outcome_of([text], redactions=MAP, positions="all")).context.to_json())


async def test_a_value_is_escaped_inside_json() -> None:
    outcome = await outcome_of(['{"q": "[PERSON_1]"}'], redactions={"PERSON_1": 'Jane "JJ" Smith'})
    assert outcome.context.to_json() == ['{"q": "Jane \\"JJ\\" Smith"}']
