"""Answers of 10 MB, whole and streamed: every original is back, and the service holds no more than it must."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.gateway.provider import chat_chunk, data, named
from tests.gateway.test_chat import PLANTED, TEXT, assert_nothing_arrived
from tests.gateway.test_faults import streamed

MESSAGES = "/anthropic/v1/messages"
RESPONSES = "/openai/v1/responses"
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


def sent(path: str, text: str, stream: bool) -> Any:
    """Return the whole answer of a family, or the events of its stream, in odd sizes so that handles are cut."""
    parts = [text[start : start + 4093] for start in range(0, len(text), 4093)]
    if path == MESSAGES:
        block = {"type": "text", "text": "" if stream else text}
        whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
        if not stream:
            return {**whole, "content": [block], "stop_reason": "end_turn"}
        deltas = [{"type": "text_delta", "text": part} for part in parts]
        return [
            named("message_start", message=whole),
            named("content_block_start", index=0, content_block=block),
            *(named("content_block_delta", index=0, delta=delta) for delta in deltas),
            named("content_block_stop", index=0),
            named("message_stop"),
        ]
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    spoken = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [spoken]}
    whole = {"id": "resp_large", "object": "response", "status": "completed", "output": [item]}
    if not stream:
        return whole
    kinds = [
        ("response.created", {"response": {**whole, "status": "in_progress", "output": []}}),
        *(("response.output_text.delta", {**at, "delta": part}) for part in parts),
        ("response.output_text.done", {**at, "text": text}),
        ("response.completed", {"response": whole}),
    ]
    return [named(kind, sequence_number=each, **members) for each, (kind, members) in enumerate(kinds)]


def texts(path: str, event: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of an answer or event, each with what it is: streamed, or said as a whole."""
    if path == MESSAGES:
        yield "delta", (event.get("delta") or {}).get("text", "")
        for block in event.get("content") or []:
            yield "whole", block["text"]
    else:
        yield "delta", event.get("delta", "")
        yield "whole", event.get("text") or ""
        for item in (event.get("response") or event).get("output", []):
            yield "whole", item["content"][0]["text"]


# A whole text is in memory several times while it is changed; a stream of Responses repeats it twice at its end.
MOST = {MESSAGES: (300 * MIB, 48 * MIB), RESPONSES: (300 * MIB, 300 * MIB)}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", MOST)
def test_an_answer_of_the_other_families_does_so_too(gateway, conversation, path, stream):
    async def tells(request, value):
        person = re.search(r"\[PERSON_\d+\]", json.dumps(value))[0]
        answer = sent(path, text_with(person), stream)
        if not stream:
            return web.json_response(answer)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in answer:
            await response.write(event.encode())
        return response

    body = {**streamed(path), "stream": stream}
    gateway.post(path, {**body, "stream": False}, headers=conversation)
    gateway.provider.answer = tells
    before = forget(gateway)
    digests: dict[str, Any] = {}
    headers = {**conversation, "authorization": f"Bearer {gateway.key}"}
    with gateway.http.stream("POST", path, json=body, headers=headers) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines() if stream else [answer.read().decode()]
        for line in lines:
            if stream and not line.startswith("data: {"):
                continue
            for kind, text in texts(path, json.loads(line.removeprefix("data: "))):
                if text:
                    # What is said as a whole, more than once, is digested by itself.
                    name = kind if kind == "delta" else f"whole {len(digests)}"
                    digests.setdefault(name, hashlib.sha256()).update(text.encode())
    expected = hashlib.sha256(text_with(PLANTED[0]).encode()).hexdigest()
    # Not the texts, which a failure would print.
    assert len(digests) == (3 if stream and path == RESPONSES else 1)
    assert {digest.hexdigest() for digest in digests.values()} == {expected}
    assert peak(gateway) - before < MOST[path][stream]
    assert_nothing_arrived(gateway)
