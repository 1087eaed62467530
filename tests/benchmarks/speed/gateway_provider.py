"""The provider behind the gateways that are measured: OpenAI's chat completions, the cheapest honest one in Python.

The last message of the request says what it does: ``events=N`` streams N short pieces after the handle or name that
stands first in it; ``gate=M`` waits until M requests stand at the gate, ``pause=S`` sleeps between pieces.
``GET /sent`` says when (``time.monotonic``) the handle went out last.
"""

import asyncio
import contextlib
import json
import re
import sys
import time
from typing import Any

from aiohttp import web

_PATIENCE_S = 120
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
HEAD = {"id": "chatcmpl-1", "created": 1790000000, "model": "gpt-5-mini"}
FIRST = re.compile(r"My name is (\[[A-Z]+_[0-9]+\]|\w+ \w+)")
MEMBER = re.compile(r"(events|gate|pause)=([0-9.]+)")


class Provider:
    """The routes, and what they remember."""

    def __init__(self) -> None:
        self.sent = 0.0
        self.waiting = 0
        self.opened = asyncio.Event()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer with the name that the last message begins with."""
        body = await request.json()
        text = body["messages"][-1]["content"]
        named = FIRST.search(text)
        name = named[1] if named else "nobody"
        if not body.get("stream"):
            message = {"role": "assistant", "content": f"Dear {name}, thank you."}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            return web.json_response(
                {**HEAD, "object": "chat.completion", "choices": choices, "usage": USAGE}
            )
        how = {key: float(value) for key, value in MEMBER.findall(text)}
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(_chunk({"role": "assistant", "content": ""}))
        await self._gate(int(how.get("gate", 0)))
        await asyncio.sleep(0.02)
        self.sent = time.monotonic()
        await answer.write(_chunk({"content": name}))
        for number in range(int(how.get("events", 0))):
            if pause := how.get("pause"):
                await asyncio.sleep(pause)
            await answer.write(_chunk({"content": f" word{number % 10}"}))
        await answer.write(_chunk({}, "stop"))
        await answer.write(b"data: [DONE]\n\n")
        return answer

    async def _gate(self, width: int) -> None:
        if not width:
            return
        self.waiting += 1
        if self.waiting == width:
            opened, self.opened, self.waiting = self.opened, asyncio.Event(), 0
            opened.set()
        else:
            with contextlib.suppress(TimeoutError):  # some may have been refused on the way
                await asyncio.wait_for(self.opened.wait(), _PATIENCE_S)

    async def last(self, _request: web.Request) -> web.Response:
        """Say when the handle went out last."""
        return web.json_response(self.sent)


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    body = json.dumps({**HEAD, "object": "chat.completion.chunk", "choices": choices})
    return f"data: {body}\n\n".encode()


def main() -> None:
    """Serve on the port that the command line names."""
    provider, app = Provider(), web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", provider.chat)
    app.router.add_get("/sent", provider.last)
    port = int(sys.argv[1])
    web.run_app(
        app,
        host="127.0.0.1",
        port=port,
        print=None,
        access_log=None,
        backlog=2048,
        shutdown_timeout=1,
    )


if __name__ == "__main__":
    main()
