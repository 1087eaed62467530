"""Answers that go out in one piece have the bytes that the server itself sends in several."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.cli.serve.connections import Signal, protocol_with

JSON = (b"content-type", b"application/json")
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


def head(*headers: tuple[bytes, bytes], status: int = 200) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(data: bytes = b"", *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


def length(number: int) -> tuple[bytes, bytes]:
    return b"content-length", str(number).encode()


class Wire(asyncio.Transport):
    """A connection that keeps what is written to it, one piece each."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.pieces: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.pieces.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def opened(app: Any) -> tuple[HttpToolsProtocol, Wire, ServerState]:
    """Return a connection of ours on which ``app`` serves, its wire and the state of its server."""
    state = ServerState()
    config = Config(app, log_config=None, access_log=False, lifespan="off", ws="none")
    protocol, wire = protocol_with(10.0)(config, state, {}), Wire()
    protocol.connection_made(wire)
    return protocol, wire, state


async def unused(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Serve nothing."""


async def answered(kind: type[HttpToolsProtocol], requests: bytes, messages: Sequence[Message]) -> Wire:
    """Return what a connection of ``kind`` writes for ``requests``, each of which is answered with ``messages``."""

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        for message in messages:
            await send(message)

    config = Config(app, log_config=None, access_log=False, lifespan="off", ws="none")
    state = ServerState()
    state.default_headers = [(b"date", b"today")]
    protocol, wire = kind(config, state, {}), Wire()
    protocol.connection_made(wire)
    protocol.data_received(requests)
    while state.tasks:
        await asyncio.wait(list(state.tasks))
    protocol.connection_lost(None)
    protocol._unset_keepalive_if_required()
    return wire


CASES: dict[str, tuple[bytes, list[Message]]] = {
    "whole": (GET, [head(JSON, length(2)), body(b"{}")]),
    "empty": (GET, [head(length(0), status=204), body()]),
    "names in capitals": (GET, [head((b"Content-Type", b"x/y"), length(1)), body(b"a")]),
    "values beyond ASCII": (GET, [head((b"x-name", "é\t!".encode()), length(1)), body(b"a")]),
    "a length in pieces": (GET, [head(length(4)), body(b"ab", more=True), body(b"cd")]),
    "no length": (GET, [head(JSON), body(b"{}")]),
    "events": (GET, [head((b"content-type", b"text/event-stream")), body(b"a", more=True), body(b"b")]),
    "two lengths": (GET, [head(length(2), length(2)), body(b"{}")]),
    "a body that is too long": (GET, [head(length(1)), body(b"{}")]),
    "a body that is too short": (GET, [head(length(3)), body(b"{}")]),
    "a name that is none": (GET, [head((b"a b", b"c"), length(1)), body(b"a")]),
    "a value with a line of its own": (GET, [head((b"a", b"b\r\nc: d"), length(1)), body(b"a")]),
    "a last answer": (GET, [head((b"connection", b"close"), length(1)), body(b"a")]),
    "chunks with a length": (GET, [head((b"transfer-encoding", b"chunked"), length(1)), body(b"a")]),
    "nothing but a head": (b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n", [head(JSON, length(2)), body(b"{}")]),
    "version 1.0": (b"GET / HTTP/1.0\r\n\r\n", [head(length(1)), body(b"a")]),
    "a last request": (b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n", [head(length(1)), body(b"a")]),
    "two requests at once": (GET * 2, [head(length(1)), body(b"a")]),
    "two heads": (GET, [head(length(1)), head(length(1)), body(b"a")]),
    "a body after the last": (GET, [head(length(1)), body(b"a"), body(b"b")]),
    "a client that waits for leave": (
        b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 0\r\n\r\n",
        [head(length(1)), body(b"a")],
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_each_answer_has_the_bytes_of_the_servers_own(case: str) -> None:
    requests, messages = CASES[case]
    own = await answered(HttpToolsProtocol, requests, messages)
    ours = await answered(protocol_with(10.0), requests, messages)
    assert (b"".join(ours.pieces), ours.closed) == (b"".join(own.pieces), own.closed)


async def test_a_whole_answer_goes_out_at_once_and_events_do_not_wait() -> None:
    kind = protocol_with(10.0)
    whole = await answered(kind, *CASES["whole"])
    assert len(whole.pieces) == 1
    assert len((await answered(HttpToolsProtocol, *CASES["whole"])).pieces) == 2
    events = await answered(kind, *CASES["events"])
    assert [piece[:4] for piece in events.pieces] == [b"HTTP", b"1\r\na", b"1\r\nb"]


async def test_a_head_without_its_body_is_a_failure_of_the_service() -> None:
    wire = await answered(protocol_with(10.0), GET, [head(length(2))])
    assert b"".join(wire.pieces).startswith(b"HTTP/1.1 500 ")


async def test_requests_that_wait_for_an_answer_find_their_whole_body() -> None:
    post = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc"
    seen: list[bytes] = []

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        more = True
        while more:
            message = await receive()
            seen.append(message.get("body", b""))
            more = message.get("more_body", False)
        for message in (head(length(1)), body(b"a")):
            await send(message)

    protocol, wire, state = opened(app)
    protocol.data_received(post * 3)
    while state.tasks:
        await asyncio.wait(list(state.tasks), timeout=2)
    assert b"".join(seen) == b"abc" * 3 and len(wire.pieces) == 3
    protocol.connection_lost(None)


async def test_a_client_that_reads_slowly_holds_its_answer_up() -> None:
    sent: list[int] = []

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(head())
        for number in range(3):
            await send(body(b"a", more=True))
            sent.append(number)

    protocol, _, state = opened(app)
    protocol.pause_writing()
    protocol.data_received(GET)
    await asyncio.sleep(0.01)
    assert not sent
    protocol.resume_writing()
    await asyncio.wait(list(state.tasks), timeout=2)
    assert sent == [0, 1, 2]
    protocol.connection_lost(None)


async def test_a_client_that_leaves_is_told_to_all_who_wait_for_it() -> None:
    ended: list[str] = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        await receive()
        cancelled = asyncio.ensure_future(receive())
        await asyncio.sleep(0)
        cancelled.cancel()
        messages = await asyncio.gather(receive(), receive())
        ended.extend(message["type"] for message in messages)

    protocol, _, state = opened(app)
    protocol.data_received(GET)
    await asyncio.sleep(0.01)
    protocol.connection_lost(None)
    await asyncio.wait(list(state.tasks), timeout=2)
    assert ended == ["http.disconnect"] * 2


async def test_a_signal_holds_until_it_is_cleared() -> None:
    signal = Signal()
    assert not signal.is_set()
    signal.set()
    assert signal.is_set() and await asyncio.wait_for(signal.wait(), 1)
    signal.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(signal.wait(), 0.01)
    waiting = [asyncio.ensure_future(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    signal.set()
    assert await waiting[0] and await waiting[2]


async def test_a_connection_keeps_its_attributes_as_small_as_the_servers_own() -> None:
    protocol, _, _ = opened(unused)
    # Above thirty names Python gives each object a table of its own.
    assert len(vars(protocol)) <= 30
