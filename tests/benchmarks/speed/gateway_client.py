"""A client of the gateways that are measured: their addresses, and streams that are read line by line."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.benchmarks.speed.processes import Measured
from tests.benchmarks.speed.wire import request

CHAT = "/v1/chat/completions"
NAME = "Maria Keller"


@dataclass(frozen=True)
class Through:
    """A gateway that is measured, and its address of chat completions."""

    server: Measured
    path: str = CHAT

    def asked(self, messages: list[Any], *, stream: bool = False) -> bytes:
        body = {"model": "gpt-5-mini", "messages": messages, "stream": stream}
        return request(self.server, self.path, body)


def url(through: Through) -> str:
    """Return the address of chat completions."""
    return f"http://127.0.0.1:{through.server.port}{through.path}"


def headers_in(head: bytes) -> dict[str, str]:
    """Return the headers of a request as bytes, but for those that the client writes itself."""
    lines = head.decode().split("\r\n")[1:]
    pairs = (line.partition(": ") for line in lines)
    return {name: value for name, _, value in pairs if name not in {"Host", "Content-Length"}}


@dataclass
class Streamed:
    """When the name and the end of a stream arrived (``time.monotonic``), and its text."""

    first: float = 0.0
    end: float = 0.0
    text: str = ""


async def stream(
    session: aiohttp.ClientSession, through: Through, text: str, began: Callable[[], object] = bool
) -> Streamed:
    """Read one stream; note when the first character of its text and its end arrived; call ``began`` at its begin."""
    seen = Streamed()
    data = through.asked([{"role": "user", "content": f"My name is {NAME}. {text}"}], stream=True)
    head, _, body = data.partition(b"\r\n\r\n")
    async with session.post(url(through), data=body, headers=headers_in(head)) as answer:
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {(await answer.read())[:300]!r}")
        parts = []
        async for line in answer.content:
            if not parts:
                began()
            if not seen.first and NAME[:5].encode() in line:
                seen.first = time.monotonic()
            parts.append(line)
    seen.end = time.monotonic()
    for line in parts:
        if line.startswith(b"data: {"):
            event = json.loads(line[6:])
            if "choices" not in event:
                raise RuntimeError(f"an error in the stream: {line[:300]!r}")
            for choice in event["choices"]:
                seen.text += choice["delta"].get("content") or ""
    return seen
