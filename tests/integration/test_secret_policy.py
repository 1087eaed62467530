"""Who gets secrets back is the tenant's policy, wherever originals are restored; tools' results are searched, too."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.content.handles import Handle
from app.services.forward.tool_hooks import HookScope
from tests.catalogs import tool
from tests.integration.forwarding_setup import Desk, desk_on

BOTH = (Role.INVOKER, Role.RESTORER)
SAID = "John Doe has aws!k1"
HIDDEN = "[PERSON_1] has [SECRET_AWS_1]"


@pytest.fixture
async def desk(database: Any, tenant: str) -> AsyncIterator[Desk]:
    async with desk_on(database, tenant) as opened:
        opened.offer(tool("crm", "find"))
        yield opened


async def invoke(desk: Desk, caller: Caller, name: str, text: str, **arguments: Any) -> Any:
    asked = desk.asked()
    return await desk.forwarding.invoke.invoke(
        caller, name, {"scope": "s", **arguments}, [{"type": "text", "text": text}], asked.request
    )


async def redact(desk: Desk) -> None:
    caller = desk.caller(*BOTH)
    made = await invoke(desk, caller, "pii_redaction", SAID)
    made = await invoke(desk, caller, "secret_redaction", made.content[0]["text"], handles_in_input="keep")
    assert made.content[0]["text"] == HIDDEN
    assert made.metadata["engine"]["name"] == "fake"


async def restored(desk: Desk, caller: Caller) -> tuple[str, int]:
    made = await invoke(desk, caller, "pii_restoration", HIDDEN)
    return made.content[0]["text"], made.metadata["unresolved"]


async def streamed(desk: Desk, caller: Caller) -> str:
    async def chunks() -> AsyncIterator[str]:
        for start in range(0, len(HIDDEN), 5):
            yield HIDDEN[start : start + 5]

    invoke = desk.forwarding.invoke
    request = desk.asked().request
    return "".join([text async for text in invoke.restore_stream(caller, {"scope": "s"}, chunks(), request)])


async def test_without_a_policy_whoever_restores_gets_secrets_too(desk: Desk) -> None:
    await redact(desk)
    assert await restored(desk, desk.caller(*BOTH)) == (SAID, 0)
    assert await streamed(desk, desk.caller(*BOTH)) == SAID


@pytest.mark.parametrize(
    ("policy", "roles", "key", "given"),
    [
        ({"restorable_by": []}, BOTH, "0000000a", False),
        ({"restorable_by": ["operator"]}, BOTH, "0000000a", False),
        ({"restorable_by": ["operator"]}, (*BOTH, Role.OPERATOR), "0000000a", True),
        ({"keys": ["0000000b"]}, BOTH, "0000000a", False),
        ({"keys": ["0000000b"]}, BOTH, "0000000b", True),
    ],
)
async def test_the_policy_keeps_secrets_from_callers_who_may_restore_the_rest(
    desk: Desk, policy: dict[str, Any], roles: tuple[Role, ...], key: str, given: bool
) -> None:
    await redact(desk)
    await desk.allow(secrets=policy)
    caller = desk.caller(*roles, key=key)
    expected = SAID if given else "John Doe has [SECRET_AWS_1]"
    assert await restored(desk, caller) == (expected, 0 if given else 1)
    assert await streamed(desk, caller) == expected
    vault = desk.forwarding.invoke.vault
    held = {one.handle: one.original for one in (await vault.entries(caller, "s", originals=True)).items}
    assert held[Handle("PERSON", 1)] == "John Doe"


async def test_results_of_tools_are_searched_for_secrets_and_keep_the_handles_of_the_first_redaction(
    desk: Desk,
) -> None:
    steps = [{"name": "pii_redaction"}, {"name": "secret_redaction"}]
    await desk.allow(passages=[{"names": ["crm__find"], "results": steps}])

    async def answer(_method: str, _params: Any, _hooks: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": SAID}], "structuredContent": {"key": "github!k2"}}

    desk.server("crm", answer=answer)
    made = await desk.call("crm__find", {}, scope=HookScope("s", from_caller=True))
    assert made["content"] == [{"type": "text", "text": HIDDEN}]
    assert made["structuredContent"] == {"key": "[SECRET_GITHUB_1]"}
    assert [event.middleware for event in await desk.events("passage.invoke")] == [
        "pii_redaction",
        "secret_redaction",
    ]
