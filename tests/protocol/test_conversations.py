"""Conversations as chat applications and agents have them, by default arguments, at every door."""

import asyncio
import json
from typing import Any

import httpx2

from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client

DOORS = ("rest", HANDSHAKE, MODERN)
SYSTEM = (
    "You are a clerk. Never change placeholders such as [PERSON_1] or [EMAIL_2]: repeat them as they stand."
)
ASKED = "My name is Ruth Okafor, mail ruth.okafor@harbour.example. Please write to our lawyer Miguel Serrano."
AGAIN = "Thanks. Now the same for Ingrid Halvorsen, and tell Ruth Okafor."


class Door:
    """Redacts and restores at one door, and fails on any other answer than a result."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.url = name, url

    async def invoke(self, middleware: str, context: list[Any], **arguments: Any) -> dict[str, Any]:
        if self.name != "rest":
            async with client(self.url, self.name, str(KEY)) as wire:
                params = {"name": middleware, "context": context, "arguments": arguments}
                result: dict[str, Any] = (await wire.call("middleware/invoke", **params)).result
                return result
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=60) as http:
            path = self.url.replace("/mcp", f"/api/v1/middleware/{middleware}/invoke")
            answer = await http.post(path, json={"arguments": arguments, "context": context})
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
            return found

    async def redact(self, context: list[Any], scope: str, **arguments: Any) -> list[Any]:
        made = await self.invoke("pii_redaction", context, scope=scope, **arguments)
        content: list[Any] = made["content"]
        return content

    async def restore(self, context: list[Any], scope: str, **arguments: Any) -> tuple[list[Any], Any]:
        made = await self.invoke("pii_restoration", context, scope=scope, **arguments)
        return made["content"], made["metadata"]


async def test_conversations_come_out_right_by_default(tmp_path: Any) -> None:
    async with service(f"sqlite:///{tmp_path}/sluice.db", warm=True) as (url, _):
        await until_warm(url)
        for name in DOORS:
            door = Door(name, url)
            await chat(door, f"{name}-restored", keeps_handles=False)
            await chat(door, f"{name}-handles", keeps_handles=True)
            await agent(door, f"{name}-agent")
            await instructions(door, f"{name}-fresh")
            await other_scopes(door, f"{name}-one", f"{name}-two")
            await handles_that_are_left(door, f"{name}-left")


async def until_warm(url: str) -> None:
    """Wait until the detector has read a text: on a busy machine its first call can run into the time limit."""
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=60) as http:
        path = url.replace("/mcp", "/api/v1/middleware/pii_redaction/invoke")
        for _ in range(20):
            if (await http.post(path, json={"context": [ASKED]})).is_success:
                return
            await asyncio.sleep(0.5)
    raise AssertionError("the detector is not warm")


async def chat(door: Door, scope: str, *, keeps_handles: bool) -> None:
    """Hold two turns; the application keeps either what the user saw or what the model said."""
    history: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASKED}]
    sent = await door.redact(history, scope)
    assert sent[0] == history[0], "the model reads its instructions as they were written"
    assert sent[1]["content"] == (
        "My name is [PERSON_1], mail [EMAIL_1]. Please write to our lawyer [PERSON_2]."
    )
    said = {"role": "assistant", "content": "Dear [PERSON_2],\n\n[PERSON_1] asks for advice ([EMAIL_1])."}
    (shown,), metadata = await door.restore([said], scope)
    assert shown["content"] == (
        "Dear Miguel Serrano,\n\nRuth Okafor asks for advice (ruth.okafor@harbour.example)."
    )
    assert metadata == {"unresolved": 0}
    history = [*(sent if keeps_handles else history), said if keeps_handles else shown]
    again = await door.redact([*history, {"role": "user", "content": AGAIN}], scope)
    assert again[:2] == sent, "the prefix of a conversation stays, so that caches stay warm"
    assert again[2] == said
    assert again[3]["content"] == "Thanks. Now the same for [PERSON_3], and tell [PERSON_1]."
    answer = {"role": "assistant", "content": "Done: [PERSON_3], [PERSON_1] and [PERSON_2] know."}
    (shown,), metadata = await door.restore([answer], scope)
    assert shown["content"] == "Done: Ingrid Halvorsen, Ruth Okafor and Miguel Serrano know."
    assert metadata == {"unresolved": 0}


async def agent(door: Door, scope: str) -> None:
    """Let the model call a tool with handles; the call and its result go to the model again, as APIs have them."""
    asked = {"role": "user", "content": "Find the order of Ruth Okafor (ruth.okafor@harbour.example)."}
    (sent,) = await door.redact([asked], scope)
    wanted = {"customer": "[PERSON_1]", "mail": "[EMAIL_1]"}
    blocks = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": wanted}],
    }
    function = {"name": "find", "arguments": json.dumps(wanted)}
    calls = {"role": "assistant", "tool_calls": [{"id": "t1", "type": "function", "function": function}]}
    original = {"customer": "Ruth Okafor", "mail": "ruth.okafor@harbour.example"}
    for called in (blocks, calls):
        (withheld,), metadata = await door.restore([called], scope)
        assert withheld == called and metadata["withheld"] == 2
        (given,), _ = await door.restore([called], scope, tools=["find"])
        assert json.dumps(original) in json.dumps(given).replace("\\", "")
        told = json.dumps({"order": 7, "customer": "Ruth Okafor", "for": "[PERSON_1]"})
        result = {"type": "tool_result", "toolUseId": "t1", "content": told}
        read = await door.redact([sent, called, result], scope)
        assert read[:2] == [sent, called]
        assert json.loads(read[2]["content"]) == {"order": 7, "customer": "[PERSON_1]", "for": "[PERSON_1]"}
    (shown,), _ = await door.restore([{"role": "assistant", "content": "Order 7 is [PERSON_1]'s."}], scope)
    assert shown["content"] == "Order 7 is Ruth Okafor's."


async def instructions(door: Door, scope: str) -> None:
    """Check that instructions stay as written before and after the scope has such handles; a user's text does not."""
    system = [{"role": role, "content": SYSTEM} for role in ("system", "developer")]
    assert await door.redact(system, scope) == system
    typed = await door.redact([{"role": "user", "content": "What is [PERSON_1]?"}], scope)
    assert typed[0]["content"] == "What is [LITERAL_1]?"
    await door.redact(["Miguel Serrano called."], scope)
    assert await door.redact(system, scope) == system
    hidden = await door.redact([{"role": "system", "content": "[PERSON_1] is Ruth Okafor's name."}], scope)
    assert hidden[0]["content"] == "[PERSON_1] is [PERSON_2]'s name."
    escaped = await door.redact(system, scope, handles_in_input="escape")
    assert "[PERSON_1]" not in json.dumps(escaped)


async def other_scopes(door: Door, one: str, two: str) -> None:
    """Check that a handle which another scope gave, or nobody, is a literal: no original comes back for it."""
    await door.redact(["Ruth Okafor and Miguel Serrano"], one)
    await door.redact(["Ingrid Halvorsen"], two)
    text = "I saw [PERSON_2] and [SSN_4] and Person_2."
    (sent,) = await door.redact([text], two)
    assert sent == "I saw [LITERAL_1] and [LITERAL_2] and [LITERAL_3]."
    (shown,), metadata = await door.restore([sent], two)
    assert shown == text
    assert metadata == {"unresolved": 0, "handlesLeft": 3}
    made = await door.invoke("pii_redaction", ["[PERSON_1] met Ruth Okafor"])
    assert made["content"] == ["[LITERAL_1] met [PERSON_1]"], "a new scope has given no handle"
    (shown,), _ = await door.restore(made["content"], made["metadata"]["scope"])
    assert shown == "[PERSON_1] met Ruth Okafor"


async def handles_that_are_left(door: Door, scope: str) -> None:
    """Check that a result says whether it still has text like a handle, wherever that came from."""
    await door.redact(["Ruth Okafor"], scope)
    answer = "[PERSON_1] [PERSON_9] https://x.example/?q=[PERSON_1]"
    (shown,), metadata = await door.restore([answer], scope)
    assert shown == "Ruth Okafor [PERSON_9] https://x.example/?q=[PERSON_1]"
    assert metadata == {"unresolved": 2, "withheld": 1, "handlesLeft": 2}
    (shown,), metadata = await door.restore(["person_1 [person_1]"], scope, exact=True)
    assert (shown, metadata) == ("person_1 [person_1]", {"unresolved": 0, "handlesLeft": 1})
    _, metadata = await door.restore(["[PERSON_1]"], scope)
    assert metadata == {"unresolved": 0}
