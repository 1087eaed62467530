"""A client of the handshake revision that answers what servers ask it, and keeps everything that it is told."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from tests.protocol.mcp_wire import HANDSHAKE, Reply, Wire, client

EVERYTHING: dict[str, Any] = {
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
    "roots": {"listChanged": True},
}
SAMPLED = {
    "role": "assistant",
    "content": {"type": "text", "text": "Paris"},
    "model": "m",
    "x-more": [1, None],
}
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}
ROOTS = {"roots": [{"uri": "file:///home/ada"}]}
ANSWERS: dict[str, Any] = {
    "sampling/createMessage": SAMPLED,
    "elicitation/create": ACCEPTED,
    "roots/list": ROOTS,
}


class Answering:
    """Calls methods over ``wire``; ``asked`` are the requests that servers made, ``told`` what stood on the stream."""

    def __init__(self, wire: Wire, answers: Mapping[str, Any] = ANSWERS) -> None:
        self.wire = wire
        self.answers = answers
        self.asked: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        self.ended = asyncio.Event()

    async def call(self, method: str, meta: dict[str, Any] | None = None, **params: Any) -> Reply:
        """Send a request and answer what comes back on its stream before its result."""
        body = self.wire.body(method, params, meta)
        headers = {**self.wire.headers(method), "content-type": "application/json"}
        async with self.wire.http.stream(
            "POST", self.wire.url, content=json.dumps(body), headers=headers
        ) as response:
            messages = [message async for message in self._messages(response, until=body["id"])]
        return Reply(response.status_code, response.headers, "", messages)

    async def tool(self, name: str, meta: dict[str, Any] | None = None, **arguments: Any) -> Reply:
        """Call a tool."""
        return await self.call("tools/call", meta, name=name, arguments=arguments)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Keep the standing stream open meanwhile, and answer what is asked there."""
        opened = asyncio.Event()

        async def listen() -> None:
            headers = {"mcp-session-id": self.wire.session or "", "accept": "text/event-stream"}
            async with self.wire.http.stream("GET", self.wire.url, headers=headers) as response:
                assert response.status_code == 200
                opened.set()
                async for message in self._messages(response):
                    self.told.append(message)
            self.ended.set()

        task = asyncio.create_task(listen())
        async with asyncio.timeout(10):
            await opened.wait()
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def heard(
        self, method: str, *, matching: Callable[[dict[str, Any]], bool] = bool
    ) -> dict[str, Any]:
        """Wait for a message of that method on the standing stream."""
        async with asyncio.timeout(10):
            while True:
                for message in self.told:
                    if message.get("method") == method and matching(message):
                        return message
                await asyncio.sleep(0.01)

    async def _messages(self, response: Any, until: Any = None) -> AsyncIterator[dict[str, Any]]:
        if response.headers.get("content-type", "").startswith("application/json"):
            yield json.loads(await response.aread())
            return
        async for line in response.aiter_lines():
            if not line.startswith("data:") or not line[5:].strip():
                continue
            message = json.loads(line[5:])
            if "method" in message and "id" in message:
                self.asked.append(message)
                await self._answer(message)
                continue
            yield message
            if until is not None and message.get("id") == until:
                return

    async def _answer(self, message: dict[str, Any]) -> None:
        given = self.answers.get(message["method"])
        answer = {"error": {"code": -1, "message": "No."}} if given is None else {"result": given}
        reply = await self.wire.post({"jsonrpc": "2.0", "id": message["id"], **answer}, self.wire.headers(""))
        assert reply.status == 202, reply.text


@contextlib.asynccontextmanager
async def answering(
    url: str,
    key: str | None,
    capabilities: Mapping[str, Any] = EVERYTHING,
    answers: Mapping[str, Any] = ANSWERS,
) -> AsyncIterator[Answering]:
    """Yield a client that declared ``capabilities``, after the handshake."""
    async with client(url, HANDSHAKE, None) as wire:
        if key is not None:
            wire.http.headers["authorization"] = f"Bearer {key}"
        await wire.open(dict(capabilities))
        yield Answering(wire, answers)
