"""Streams with every type of event through the door: whatever the provider's writes, the caller gets the same bytes."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from tests.gateway.test_chat import PLANTED, assert_nothing_arrived
from tests.sampling import sample
from tests.unit.core.gateway import recorded

STREAMS: dict[str, tuple[str, bytes]] = {
    "chat": ("/openai/v1/chat/completions", recorded.CHAT_STREAM),
    "responses": ("/openai/v1/responses", recorded.RESPONSE_STREAM),
    "items": ("/openai/v1/responses", recorded.ITEM_STREAM),
    "messages": ("/anthropic/v1/messages", recorded.MESSAGE_STREAM),
    "blocks": ("/anthropic/v1/messages", recorded.BLOCK_STREAM),
}
TOLD = f"I am {PLANTED[0]}."


def body(path: str) -> dict[str, Any]:
    if path.endswith("/responses"):
        return {"model": "gpt-5-mini", "input": TOLD, "stream": True}
    model = "claude-x" if path.startswith("/anthropic") else "gpt-5-mini"
    return {"model": model, "messages": [{"role": "user", "content": TOLD}], "stream": True, "max_tokens": 9}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_the_same_however_it_arrives(gateway, conversation, name):
    path, raw = STREAMS[name]
    cuts: list[int] = []

    async def replays(request, _value):
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
            await answer.write(raw[begin:end])
            await asyncio.sleep(0.002 if len(cuts) < 50 else 0)
        return answer

    gateway.provider.answer = replays

    def heard() -> bytes:
        answer = gateway.post(path, body(path), headers=conversation)
        assert answer.status_code == 200
        return answer.content

    whole = heard()
    assert whole.count(json.dumps(PLANTED[0], ensure_ascii=False)[1:-1].encode()) > 3
    cuts = list(range(1, len(raw)))
    assert heard() == whole
    for attempt in range(2):
        cuts = sample(f"writes of {name} {attempt}", range(1, len(raw)), 40)
        assert heard() == whole
    assert_nothing_arrived(gateway)
