"""The end of an answer that cannot go on: the connection breaks, and the log calls nothing a bug that is none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.api.gateway.gateway import ProviderDoor, doors
from app.core.access import Caller, Role
from app.core.errors import AuditUnavailableError
from app.core.gateway.kinds import KINDS
from app.edge.facts import facts_of
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


@pytest.mark.parametrize(
    ("method", "root_path", "own"),
    [("GET", "", True), ("POST", "", True), ("TRACE", "", False), ("GET", "/below", False)],
)
async def test_what_a_door_does_not_know_goes_the_general_way(method, root_path, own):
    went: list[str] = []

    async def general(scope: Any, _receive: Any, _send: Any) -> None:
        went.append(scope["method"])

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        await asyncio.Event().wait()

    sent: list[Any] = []
    door = doors(SimpleNamespace(), general)[f"{KINDS['openai'].prefix}/"]
    scope = {"type": "http", "method": method, "path": "/openai/v1/nothing", "root_path": root_path}
    scope |= {"headers": [], "client": ("127.0.0.1", 1), "query_string": b""}
    await door(scope, receive, send)
    assert (went == []) is own
    assert [message["status"] for message in sent[:1]] == ([404] if own else [])


class Keeping:
    """A service that is cancelled while it answers, cannot record the end and sees what the request still holds."""

    def __init__(self) -> None:
        self.began, self.body = asyncio.Event(), b""

    @asynccontextmanager
    async def answered(self, _caller: Any, incoming: Any, _info: Any) -> AsyncIterator[DoorAnswer]:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"data: 1\n\n"
            self.began.set()
            await asyncio.Event().wait()

        self.body = incoming.body
        try:
            yield DoorAnswer(200, [("Content-Type", "text/event-stream")], chunks(), streams=True)
        except asyncio.CancelledError:
            raise AuditUnavailableError("No record.") from None


async def test_a_stream_keeps_no_request_and_ends_cancelled_even_where_that_cannot_be_recorded():
    service = Keeping()
    authenticator = SimpleNamespace(recognizes=lambda _: False)
    door = ProviderDoor(KINDS["openai"], SimpleNamespace(gateway=service, authenticator=authenticator))

    async def send(_message: Any) -> None:
        """Send nothing."""

    async def receive() -> Any:
        await asyncio.Event().wait()

    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/openai/v1/chat/completions"}
    scope |= {"headers": [], "client": ("127.0.0.1", 1), "query_string": b""}
    facts = facts_of(scope)
    facts.body, facts.json, facts.caller = b"{}", {}, CALLER
    serving = asyncio.ensure_future(door(scope, receive, send))
    await asyncio.wait_for(service.began.wait(), 2)
    assert (service.body, facts.body, facts.json) == (b"{}", None, None)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_what_follows_the_last_bytes_is_done_although_the_server_says_that_the_client_has_gone():
    ended, done = asyncio.Event(), []

    class Ending:
        @asynccontextmanager
        async def answered(self, *_: Any) -> AsyncIterator[DoorAnswer]:
            async def chunks() -> AsyncIterator[bytes]:
                await asyncio.sleep(0.1)  # so long that the client is watched
                yield b"data: 1\n\n"

            yield DoorAnswer(200, [("Content-Type", "text/event-stream")], chunks(), streams=True)
            await asyncio.sleep(0.05)
            done.append("recorded")

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            ended.set()

    async def receive() -> dict[str, Any]:
        await ended.wait()
        return {"type": "http.disconnect"}

    authenticator = SimpleNamespace(recognizes=lambda _: False)
    door = ProviderDoor(KINDS["openai"], SimpleNamespace(gateway=Ending(), authenticator=authenticator))
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/openai/v1/responses/r1"}
    scope |= {"headers": [], "client": ("127.0.0.1", 1), "query_string": b""}
    facts_of(scope).caller = CALLER
    await asyncio.wait_for(door(scope, receive, send), 2)
    assert done == ["recorded"]
