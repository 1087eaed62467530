"""Answers of 10 MB, whole and streamed: every original is back, and the service holds no more than it must."""

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.gateway.provider import chat_chunk, data
from tests.gateway.test_chat import PLANTED, TEXT, assert_nothing_arrived

SIZE = 10 * 1024 * 1024
MIB = 1024 * 1024
FILLER = "The quick brown fox jumps over the lazy dog; nobody minds at all. " * 60


def text_with(person: str) -> str:
    return f"{FILLER}Then {person} came. " * (SIZE // len(FILLER)) + f"The last one is {person}"


def peak(gateway: Any) -> int:
    """Return the most memory that the service's process held since ``forget``, in bytes."""
    status = Path(f"/proc/{gateway.service.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def forget(gateway: Any) -> int:
    Path(f"/proc/{gateway.service.process.pid}/clear_refs").write_text("5")
    return peak(gateway)


@pytest.mark.parametrize(("stream", "most"), [(False, 300 * MIB), (True, 48 * MIB)])
def test_an_answer_of_ten_megabytes_comes_back_in_bounded_memory(gateway, conversation, stream, most):
    async def tells(request, value):
        person = re.search(r"\[PERSON_\d+\]", value["messages"][-1]["content"])[0]
        text = text_with(person)
        if not value.get("stream"):
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
            return web.json_response({"id": "c", "object": "chat.completion", "choices": [choice]})
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        # An odd size, so that handles are cut at every place.
        for start in range(0, len(text), 4093):
            await answer.write(data(chat_chunk({"content": text[start : start + 4093]})).encode())
        await answer.write(data(chat_chunk({}, finish="stop")).encode() + b"data: [DONE]\n\n")
        return answer

    client = gateway.openai(default_headers=conversation)
    ask: Any = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": TEXT}]}
    client.chat.completions.create(**ask)
    gateway.provider.answer = tells
    before = forget(gateway)
    digest = hashlib.sha256()
    if stream:
        for chunk in client.chat.completions.create(**ask, stream=True):
            digest.update((chunk.choices[0].delta.content or "").encode())
    else:
        digest.update(client.chat.completions.create(**ask).choices[0].message.content.encode())
    # Not the two texts, which a failure would print.
    assert digest.hexdigest() == hashlib.sha256(text_with(PLANTED[0]).encode()).hexdigest()
    assert peak(gateway) - before < most
    assert_nothing_arrived(gateway)
