"""A provider in the shapes that OpenAI and Anthropic answer in, on loopback; it keeps every byte that it gets."""

import asyncio
import gzip
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web

KEY = "sk-of-the-provider-0123456789"
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass(frozen=True)
class Arrived:
    """One request as the provider got it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Provider:
    """What arrived, and how the next answers look.

    ``pieces``: into parts of how many characters a streamed text is cut. ``left``: how many clients went away while
    they were answered.
    """

    url: str = ""
    arrived: list[Arrived] = field(default_factory=list)
    pieces: int = 3
    pause_s: float = 0
    left: int = 0
    answer: "Callable[[web.Request, Any], Any] | None" = None

    @property
    def last(self) -> Arrived:
        return self.arrived[-1]

    def everything(self) -> bytes:
        """Return all bytes of all requests."""
        return b"\n".join(
            request.path.encode() + json.dumps(request.headers).encode() + request.body
            for request in self.arrived
        )

    def parts(self, text: str) -> list[str]:
        """Return ``text`` in pieces."""
        return [text[start : start + self.pieces] for start in range(0, len(text), self.pieces)]


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a provider in a thread of its own."""
    found = Provider()
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", partial(_answered, found))
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


async def _answered(found: Provider, request: web.Request) -> web.StreamResponse:
    body = await request.read()
    found.arrived.append(Arrived(request.method, request.path_qs, dict(request.headers), body))
    value = json.loads(body) if body else {}
    try:
        if found.answer is not None:
            answer = await found.answer(request, value)
            if answer is not None:
                return answer
        return await _ANSWERS.get((request.method, request.path), _unknown)(found, request, value)
    except (asyncio.CancelledError, ConnectionResetError):
        found.left += 1
        raise


async def events(
    found: Provider, request: web.Request, lines: Sequence[str] | AsyncIterator[str], **headers: str
) -> web.StreamResponse:
    """Send an event stream, each entry as one write."""
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", **headers})
    await answer.prepare(request)
    for line in lines:
        await answer.write(line.encode())
        await asyncio.sleep(found.pause_s)
    await answer.write_eof()
    return answer


def data(value: Any) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def named(kind: str, **members: Any) -> str:
    return f"event: {kind}\n" + data({"type": kind, **members})


def said(value: Any) -> str:
    """Return what the last message of the user says, which the fake models repeat."""
    messages = value.get("messages") or value.get("input") or []
    if isinstance(messages, str):
        return messages
    texts = [_text(message.get("content", message.get("output", ""))) for message in messages]
    return next((text for text in reversed(texts) if text), "")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(_text(part.get("text") or part.get("content") or "") for part in parts)


def chat_chunk(delta: dict[str, Any], *, index: int = 0, finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": "gpt-5-mini",
        "system_fingerprint": "fp_1",
        "choices": [{"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}],
        "usage": None,
    }


async def _chat(found: Provider, request: web.Request, value: Any) -> web.StreamResponse:
    text, count = f"You said: {said(value)}", value.get("n") or 1
    headers = {"x-request-id": "req_of_the_provider", "x-ratelimit-remaining-requests": "99"}
    tools = value.get("tools") or []
    last = value["messages"][-1]
    calls = tools and last["role"] == "user"
    arguments = [json.dumps({"text": said(value), "number": number}) for number in range(2)]
    if value.get("stream"):
        lines = [data(chat_chunk({"role": "assistant", "content": ""}, index=each)) for each in range(count)]
        if calls:
            for number in range(len(arguments)):
                head = {"index": number, "id": f"call_{number}", "type": "function"}
                lines.append(
                    data(
                        chat_chunk({"tool_calls": [{**head, "function": {"name": "note", "arguments": ""}}]})
                    )
                )
            # The two calls arrive interleaved, as parallel ones may.
            for pair in zip(*(found.parts(text_of) for text_of in arguments), strict=True):
                for number, part in enumerate(pair):
                    lines.append(
                        data(chat_chunk({"tool_calls": [{"index": number, "function": {"arguments": part}}]}))
                    )
            lines.append(data(chat_chunk({}, finish="tool_calls")))
        else:
            lines += [
                data(chat_chunk({"content": part}, index=each))
                for part in found.parts(text)
                for each in range(count)
            ]
            lines += [data(chat_chunk({}, index=each, finish="stop")) for each in range(count)]
        if (value.get("stream_options") or {}).get("include_usage"):
            lines.append(data({**chat_chunk({}), "choices": [], "usage": USAGE}))
        return await events(found, request, [*lines, "data: [DONE]\n\n"], **headers)
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    if calls:
        message["content"] = None
        message["tool_calls"] = [
            {"id": f"call_{number}", "type": "function", "function": {"name": "note", "arguments": text_of}}
            for number, text_of in enumerate(arguments)
        ]
    finish = "tool_calls" if calls else "stop"
    choices = [
        {"index": each, "message": message, "logprobs": None, "finish_reason": finish}
        for each in range(count)
    ]
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1790000000, "model": "gpt-5-mini"}
    return web.json_response({**body, "choices": choices, "usage": USAGE}, headers=headers)


async def _messages(found: Provider, request: web.Request, value: Any) -> web.StreamResponse:
    text = f"You said: {said(value)}"
    headers = {"request-id": "req_of_the_provider", "anthropic-ratelimit-requests-remaining": "99"}
    usage = {"input_tokens": 11, "output_tokens": 7}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": value["model"]}
    ends = {"stop_sequence": None, "usage": usage}
    calls = value.get("tools") and _text(value["messages"][-1]["content"]) and not _results(value)
    arguments = {"text": said(value), "number": 1}
    if not value.get("stream"):
        content: list[Any] = [{"type": "text", "text": text}]
        if calls:
            content.append({"type": "tool_use", "id": "toolu_1", "name": "note", "input": arguments})
        reason = "tool_use" if calls else "end_turn"
        return web.json_response({**head, "content": content, "stop_reason": reason, **ends}, headers=headers)
    lines = [
        named("message_start", message={**head, "content": [], "stop_reason": None, **ends}),
        named("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        'event: ping\ndata: {"type": "ping"}\n\n',
        *(
            named("content_block_delta", index=0, delta={"type": "text_delta", "text": part})
            for part in found.parts(text)
        ),
        named("content_block_stop", index=0),
    ]
    if calls:
        block = {"type": "tool_use", "id": "toolu_1", "name": "note", "input": {}}
        lines.append(named("content_block_start", index=1, content_block=block))
        lines += [
            named("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": part})
            for part in found.parts(json.dumps(arguments))
        ]
        lines.append(named("content_block_stop", index=1))
    reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    lines += [
        named("message_delta", delta=reason, usage={"output_tokens": 7}),
        named("message_stop"),
    ]
    return await events(found, request, lines, **headers)


def _results(value: Any) -> bool:
    content = value["messages"][-1]["content"]
    return isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)


async def _count(_found: Provider, _request: web.Request, _value: Any) -> web.StreamResponse:
    return web.json_response({"input_tokens": 42})


async def _embeddings(_found: Provider, _request: web.Request, value: Any) -> web.StreamResponse:
    texts = value["input"] if isinstance(value["input"], list) else [value["input"]]
    entries = [
        {"object": "embedding", "index": number, "embedding": [0.5, 0.25]} for number in range(len(texts))
    ]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return web.json_response({"object": "list", "data": entries, "model": value["model"], "usage": usage})


async def _models(_found: Provider, _request: web.Request, _value: Any) -> web.StreamResponse:
    names = ("gpt-5-mini", "o9-internal")
    entries = [{"id": name, "object": "model", "created": 1, "owned_by": "them"} for name in names]
    return web.json_response({"object": "list", "data": entries})


async def _anthropic_models(_found: Provider, _request: web.Request, _value: Any) -> web.StreamResponse:
    entry = {"type": "model", "id": "claude-x", "display_name": "X", "created_at": "2026-01-01T00:00:00Z"}
    return web.json_response(
        {"data": [entry], "has_more": False, "first_id": "claude-x", "last_id": "claude-x"}
    )


async def _response(found: Provider, request: web.Request, value: Any) -> web.StreamResponse:
    text = f"You said: {said(value)}"
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    number = sum(each.path == request.path_qs for each in found.arrived)
    head: dict[str, Any] = {"id": f"resp_{number}", "object": "response", "created_at": 1790000000}
    head |= {"model": value["model"], "error": None, "incomplete_details": None, "instructions": None}
    head |= {"metadata": {}, "parallel_tool_calls": True, "tools": [], "tool_choice": "auto"}
    whole = {**head, "status": "completed", "output": [item], "usage": usage}
    if not value.get("stream"):
        return web.json_response(whole)
    started = {**head, "status": "in_progress", "output": [], "usage": None}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    empty = {**item, "status": "in_progress", "content": []}
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": started}),
        ("response.in_progress", {"response": started}),
        ("response.output_item.added", {"output_index": 0, "item": empty}),
        ("response.content_part.added", {**place, "part": {**part, "text": ""}}),
        *(
            ("response.output_text.delta", {**place, "delta": each, "logprobs": []})
            for each in found.parts(text)
        ),
        ("response.output_text.done", {**place, "text": text, "logprobs": []}),
        ("response.content_part.done", {**place, "part": part}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    ]
    lines = [named(kind, sequence_number=each, **members) for each, (kind, members) in enumerate(kinds)]
    return await events(found, request, lines)


async def _unknown(_found: Provider, _request: web.Request, _value: Any) -> web.StreamResponse:
    return web.json_response({"error": {"message": "no such path", "type": "x", "code": "404"}}, status=404)


_ANSWERS: dict[tuple[str, str], Any] = {
    ("POST", "/v1/chat/completions"): _chat,
    ("POST", "/v1/responses"): _response,
    ("POST", "/v1/embeddings"): _embeddings,
    ("GET", "/v1/models"): _models,
    ("POST", "/a/v1/messages"): _messages,
    ("POST", "/a/v1/messages/count_tokens"): _count,
    ("GET", "/a/v1/models"): _anthropic_models,
}


def zipped(value: Any) -> web.Response:
    """Return a JSON answer in gzip, as a provider may that does not heed what it is asked."""
    body = gzip.compress(json.dumps(value).encode(), mtime=0)
    return web.Response(body=body, headers={"Content-Type": "application/json", "Content-Encoding": "gzip"})
