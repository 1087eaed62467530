"""What a server says when no request runs may be about one that a policy guards: it shows no original either."""

import asyncio
import contextlib
import json

import mcp_types as types
import pytest

from tests.protocol.aggregated_service import OnlyHandshake, aggregated, serving_era
from tests.protocol.mcp_wire import HANDSHAKE, Wire
from tests.protocol.passing_service import call, opened, put_policy
from tests.upstreams.scripted import ScriptedServer

SSN = "123-45-6789"
GUARD = {
    "names": ["late__tell"],
    "kinds": ["tool"],
    "restore_arguments": True,
    "results": [{"name": "pii_redaction"}],
}


class Late(ScriptedServer):
    """Answers at once, and speaks of it when it is told to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.add_tool("tell", self.remember)
        self.add_tool("open", self.remember)
        self.known: list[tuple[object, str]] = []

    async def remember(self, context, arguments):
        self.known.append((context.session, arguments["who"]))
        return {"content": [{"type": "text", "text": "ok"}]}

    async def speak(self) -> None:
        session, who = self.known[-1]
        params = types.LoggingMessageNotificationParams(level="error", data={"who": who}, logger="x")
        await session.send_notification(types.LoggingMessageNotification(params=params))
        form = {"type": "object", "properties": {}}
        with contextlib.suppress(Exception):
            await session.elicit_form(f"Is it {who}?", form)

    def now(self) -> None:
        asyncio.run_coroutine_threadsafe(self.speak(), self.loop).result(20)


@contextlib.asynccontextmanager
async def hearing(wire: Wire):
    """Yield what comes on the standing stream of a session; questions are answered with no."""
    heard: list[dict[str, object]] = []
    there = asyncio.Event()

    async def hear() -> None:
        headers = {**wire.headers("get"), "accept": "text/event-stream"}
        async with wire.http.stream("GET", wire.url, headers=headers) as stream:
            there.set()
            async for line in stream.aiter_lines():
                if line.startswith("data:") and line[5:].strip():
                    heard.append(message := json.loads(line[5:]))
                    if "id" in message:
                        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"action": "decline"}}
                        await wire.post(answer, wire.headers("answer"))

    task = asyncio.create_task(hear())
    await asyncio.wait_for(there.wait(), 10)
    yield heard
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("guarded", [True, False])
async def test_what_comes_after_a_guarded_call_shows_no_original(tmp_path, guarded):
    late = Late("late")
    with serving_era(late, OnlyHandshake) as upstream:
        async with aggregated(tmp_path, {"late": {"url": upstream}}) as (url, app):
            await put_policy(app, passages=[GUARD] if guarded else [])
            async with opened(url, HANDSHAKE, {"elicitation": {}}) as wire, hearing(wire) as heard:
                who = SSN
                if guarded:
                    redacted = await wire.call(
                        "middleware/invoke",
                        name="pii_redaction",
                        arguments={"scope": "s"},
                        context=[{"type": "text", "text": f"SSN {SSN}"}],
                    )
                    who = redacted.result["content"][0]["text"].removeprefix("SSN ")
                assert (who == SSN) is not guarded
                await call(wire, "late__tell", {"who": who}, meta={"dev.sluice/scope": "s"})
                assert late.known[-1][1] == SSN
                await asyncio.to_thread(late.now)

    assert any(one["method"] == "elicitation/create" for one in heard)
    assert any(one["method"] == "notifications/message" for one in heard) is not guarded
    assert (SSN in str(heard)) is not guarded
