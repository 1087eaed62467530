"""The end of an answer that cannot go on: the connection breaks, and the log calls nothing a bug that is none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.api.gateway.gateway import ProviderDoor
from app.core.access import Caller, Role
from app.core.errors import AuditUnavailableError
from app.core.gateway.kinds import KINDS
from app.edge.guard import EdgeGuard
from app.services.gateway.answers import DoorAnswer

CALLER = Caller(tenant="default", key_id="k", roles=frozenset({Role.INVOKER}))


class Breaking:
    """A service whose answer ends in an error after its first bytes."""

    def __init__(self, error: Exception, *, after: asyncio.Event) -> None:
        self.error, self.after = error, after

    @asynccontextmanager
    async def answered(self, *_: Any) -> AsyncIterator[DoorAnswer]:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"data: 1\n\n"
            await self.after.wait()
            raise self.error

        try:
            yield DoorAnswer(200, [("Content-Type", "text/event-stream")], chunks(), streams=True)
        except asyncio.CancelledError:
            # What records the end may fail, too, when a client has left.
            raise self.error from None


async def anyone(*_: Any) -> Caller:
    return CALLER


async def themselves(caller: Caller, *_: Any) -> Caller:
    return caller


async def answered(error: Exception, *, leaves: bool) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return what was sent, and what was logged as a bug."""
    broke, sent = asyncio.Event(), []
    services = SimpleNamespace(
        gateway=Breaking(error, after=broke),
        authenticator=SimpleNamespace(authenticate=anyone, acting=themselves),
    )
    guard = EdgeGuard(ProviderDoor(KINDS["openai"]))

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        while len(sent) < 2:
            await asyncio.sleep(0)
        if leaves:
            return {"type": "http.disconnect"}
        broke.set()
        await asyncio.Event().wait()
        raise AssertionError

    scope = {"type": "http", "method": "GET", "path": "/openai/v1/responses/r1", "query_string": b""}
    scope |= {"headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "state": {}}
    scope["app"] = SimpleNamespace(state=SimpleNamespace(route_services=services))
    with capture_logs() as logs:
        await asyncio.wait_for(guard(scope, receive, send), 5)
    return sent, [entry for entry in logs if entry["event"] == "bug"]


@pytest.mark.parametrize("leaves", [False, True])
async def test_an_answer_that_cannot_go_on_has_no_end_and_is_no_bug(leaves):
    sent, bugs = await answered(AuditUnavailableError("No record."), leaves=leaves)
    assert [message.get("body") for message in sent] == [None, b"data: 1\n\n"]
    assert sent[-1]["more_body"] and not bugs


async def test_what_nobody_expected_is_a_bug_once():
    sent, bugs = await answered(KeyError("x"), leaves=False)
    assert sent[-1]["more_body"] and [bug["exception"] for bug in bugs] == ["KeyError"]
