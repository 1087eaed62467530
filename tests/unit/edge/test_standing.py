"""What takes long ends with its credential: whoever streams, whoever has yet to answer, and nothing else."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from app.core.access import Caller, Role
from app.core.errors import ForbiddenError, OverloadedError, UnauthenticatedError
from app.core.request import RequestInfo
from app.edge.facts import facts_of
from app.edge.guard import EdgeGuard
from app.edge.lifespan_state import Served

ADA = Caller("acme", "sub-1", frozenset({Role.INVOKER, Role.AUDITOR}), grants=frozenset({"support"}))


@dataclass
class Gate:
    """Knows one caller; ``now`` may be another one later, or an error."""

    now: Caller | Exception = ADA
    acted: Exception | None = None
    asked: list[str | None] = field(default_factory=list)

    async def authenticate(self, bearer: str | None, address: str | None) -> Caller:
        self.asked.append(bearer)
        if isinstance(self.now, Exception):
            raise self.now
        return self.now

    async def acting(self, caller: Caller, names: Sequence[bytes], request: RequestInfo) -> Caller:
        if self.acted is not None:
            raise self.acted
        return caller

    async def refuse(self, *_: Any) -> None: ...


@dataclass
class Wire:
    """What a client sends, and what it was sent."""

    sent: list[Message] = field(default_factory=list)

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def receive(self) -> Message:
        if self.sent:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": b"{}", "more_body": False}


async def streaming(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(500):
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await asyncio.sleep(0.01)
    await send({"type": "http.response.body", "body": b"whole"})


async def silent(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(1)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"whole"})


async def orderly(scope: Scope, receive: Receive, send: Send) -> None:
    facts_of(scope).ends_itself = True
    await silent(scope, receive, send)


def scope_of(*, method: str = "POST", user: bytes | None = None) -> Scope:
    headers = [(b"authorization", b"Bearer key"), (b"content-type", b"application/json")]
    headers += [(b"content-length", b"2"), (b"host", b"localhost")]
    headers += [(b"x-sluice-user", user)] if user is not None else []
    path = {"path": "/echo", "raw_path": b"/echo", "query_string": b"", "client": ("127.0.0.1", 1)}
    return {"type": "http", "http_version": "1.1", "method": method, "headers": headers, **path}


async def served(
    app: Any, gate: Gate, then: Callable[[Gate], None], *, user: bytes | None = None
) -> list[Message]:
    """Serve one request, and let ``then`` happen on the way."""
    guard, wire = EdgeGuard(app, served=Served(gate=gate), recheck_s=0.05), Wire()
    serving = asyncio.create_task(guard(scope_of(user=user), wire.receive, wire.send))
    await asyncio.sleep(0.12)
    then(gate)
    async with asyncio.timeout(10):
        await serving
    return wire.sent


def ended(gate: Gate) -> None:
    gate.now = UnauthenticatedError("ended")


def without(**less: Collection[Any]) -> Callable[[Gate], None]:
    def narrow(gate: Gate) -> None:
        gate.now = replace(ADA, **less)  # type: ignore[arg-type]

    return narrow


def elsewhere(gate: Gate) -> None:
    gate.now = replace(ADA, tenant="globex")


def forbidden(gate: Gate) -> None:
    gate.now = ForbiddenError("no rule")


def faulty(gate: Gate) -> None:
    gate.now = RuntimeError("a bug")


@pytest.mark.parametrize(
    "then",
    [
        ended,
        forbidden,
        faulty,
        elsewhere,
        without(roles=frozenset({Role.INVOKER})),
        without(grants=frozenset()),
    ],
)
async def test_a_stream_is_cut_once_its_credential_gives_less(then: Callable[[Gate], None]) -> None:
    sent = await served(streaming, Gate(), then)
    assert sent[0]["status"] == 200
    assert all(message["more_body"] for message in sent[1:])
    assert 5 < len(sent) < 60


async def test_who_has_not_been_answered_yet_is_refused() -> None:
    sent = await served(silent, Gate(), ended)
    assert [message.get("status") for message in sent] == [401, None]
    assert b"whole" not in sent[1]["body"] and b"counts no more" in sent[1]["body"]


async def test_whoever_acts_for_somebody_is_let_go_with_them() -> None:
    def leaves(gate: Gate) -> None:
        gate.acted = ForbiddenError("gone")

    assert len(await served(streaming, Gate(), leaves, user=b"grace")) < 60
    assert (await served(silent, Gate(), leaves))[0]["status"] == 200


def nothing(gate: Gate) -> None: ...


def away(gate: Gate) -> None:
    gate.now = OverloadedError("the issuer is away")


def more(gate: Gate) -> None:
    gate.now = replace(ADA, roles=ADA.roles | {Role.ERASER}, grants=ADA.grants | {"more"})


@pytest.mark.parametrize("then", [nothing, away, more])
async def test_a_request_goes_on_while_its_credential_counts(then: Callable[[Gate], None]) -> None:
    gate = Gate()
    sent = await served(silent, gate, then)
    assert [message.get("status") for message in sent] == [200, None]
    assert len(gate.asked) > 8
    await asyncio.sleep(0.12)
    looked_at = len(gate.asked)
    await asyncio.sleep(0.12)
    assert len(gate.asked) == looked_at, "nothing is looked at any more once it was answered"


async def test_what_ends_itself_in_good_order_is_left_alone() -> None:
    assert (await served(orderly, Gate(), ended))[-1]["body"] == b"whole"


async def test_another_cancellation_goes_on() -> None:
    guard, wire = EdgeGuard(streaming, served=Served(gate=Gate()), recheck_s=0.05), Wire()
    serving = asyncio.create_task(guard(scope_of(), wire.receive, wire.send))
    await asyncio.sleep(0.12)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_nobody_is_looked_at_where_nobody_is_known() -> None:
    """Whoever serves a path that is open to all is left alone, and so is what brings no body and asks for no caller."""
    gate, wire = Gate(), Wire()
    guard = EdgeGuard(silent, served=Served(gate=gate), recheck_s=0.05)
    await guard(scope_of(method="GET"), wire.receive, wire.send)
    assert (wire.sent[0]["status"], gate.asked) == (200, [])
    wire = Wire()
    await EdgeGuard(silent, recheck_s=0.05)(scope_of(), wire.receive, wire.send)
    assert wire.sent[0]["status"] == 200


async def test_what_is_answered_in_time_is_not_looked_at() -> None:
    async def quick(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"whole"})

    gate = Gate()
    await EdgeGuard(quick, served=Served(gate=gate), recheck_s=0.05)(scope_of(), Wire().receive, Wire().send)
    await asyncio.sleep(0.12)
    assert len(gate.asked) == 1
