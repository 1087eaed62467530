"""A model provider with the shapes of OpenAI and Anthropic, as recorded: it repeats the handles that it is sent."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANDLE = re.compile(r"\[PERSON_[12]\]")
PIECE = 3


class Provider:
    """What the provider was sent, and where it listens."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[str] = []

    def was_sent(self, *values: str) -> bool:
        return any(value in body for body in self.bodies for value in values)


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a provider for the time of a block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    server.provider = Provider(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    try:
        yield server.provider  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.provider.bodies.append(json.dumps(json.loads(raw), ensure_ascii=False))  # type: ignore[attr-defined]
        body = json.loads(raw)
        handles = sorted(set(HANDLE.findall(raw)))
        answers = {
            "/v1/chat/completions": (chat, chat_events),
            "/v1/responses": (response, response_events),
            "/v1/messages": (message, message_events),
            "/v1/embeddings": (embedding, None),
            "/v1/messages/count_tokens": (lambda *_: {"input_tokens": 7}, None),
        }
        whole, streamed = answers[self.path]
        if body.get("stream") and streamed is not None:
            self._send("text/event-stream", "".join(streamed(handles, bool(body.get("tools")))))
        else:
            self._send("application/json", json.dumps(whole(handles, bool(body.get("tools")))))

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        for piece in pieces(text) if kind == "text/event-stream" else [text]:
            self.wfile.write(piece.encode())


def said(handles: list[str]) -> str:
    return f"Dear {' and '.join(handles)}, all is well."


def arguments(handles: list[str]) -> str:
    return json.dumps({"to": handles, "n": 1})


CHUNK: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def chat(handles: list[str], tools: bool) -> dict[str, Any]:
    call = {"id": "t1", "type": "function", "function": {"name": "mail", "arguments": arguments(handles)}}
    answer = {"role": "assistant", "content": said(handles), "refusal": None}
    if tools:
        answer["tool_calls"] = [call]
    choice = {"index": 0, "message": answer, "finish_reason": "stop", "logprobs": None}
    return {**CHUNK, "object": "chat.completion", "choices": [choice], "usage": USAGE}


def chat_events(handles: list[str], tools: bool) -> Iterator[str]:
    def chunk(index: int, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": index, "delta": delta, "finish_reason": reason, "logprobs": None}
        return f"data: {json.dumps({**CHUNK, 'choices': [choice]})}\n\n"

    for index in range(2):
        yield chunk(index, {"role": "assistant", "content": ""})
    for piece in pieces(said(handles)):  # two choices, interleaved
        yield chunk(0, {"content": piece})
        yield chunk(1, {"content": piece})
    if tools:
        for number, name in enumerate(("mail", "other")):
            function = {"name": name, "arguments": ""}
            call = {"index": number, "id": f"t{number}", "type": "function", "function": function}
            yield chunk(0, {"tool_calls": [call]})
        for piece in pieces(arguments(handles)):  # two calls, interleaved
            for number in range(2):
                yield chunk(0, {"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield chunk(0, {}, "stop")
    yield chunk(1, {}, "stop")
    yield f"data: {json.dumps({**CHUNK, 'choices': [], 'usage': USAGE})}\n\n"
    yield "data: [DONE]\n\n"


def response(handles: list[str], tools: bool, *, status: str = "completed") -> dict[str, Any]:
    content = [{"type": "output_text", "text": said(handles), "annotations": []}]
    output: list[dict[str, Any]] = [
        {"id": "m1", "type": "message", "role": "assistant", "status": status, "content": content}
    ]
    if tools:
        output.append(called(handles))
    return {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-x",
        "status": status,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def called(handles: list[str]) -> dict[str, Any]:
    call = {"id": "f1", "type": "function_call", "call_id": "t1", "name": "mail", "status": "completed"}
    return {**call, "arguments": arguments(handles)}


def response_events(handles: list[str], tools: bool) -> Iterator[str]:
    numbers = iter(range(1000))

    def event(kind: str, **members: Any) -> str:
        value = {"type": kind, "sequence_number": next(numbers), **members}
        return f"event: {kind}\ndata: {json.dumps(value)}\n\n"

    place = {"item_id": "m1", "output_index": 0, "content_index": 0}
    yield event("response.created", response={**response([], False, status="in_progress"), "output": []})
    for piece in pieces(said(handles)):
        yield event("response.output_text.delta", **place, delta=piece, logprobs=[])
    yield event("response.output_text.done", **place, text=said(handles), logprobs=[])
    whole = response(handles, tools)
    yield event("response.output_item.done", output_index=0, item=whole["output"][0])
    if tools:
        begun = {**called(handles), "arguments": "", "status": "in_progress"}
        yield event("response.output_item.added", output_index=1, item=begun)
        place = {"item_id": "f1", "output_index": 1}
        for piece in pieces(arguments(handles)):
            yield event("response.function_call_arguments.delta", **place, delta=piece)
        yield event(
            "response.function_call_arguments.done", **place, arguments=arguments(handles), name="mail"
        )
        yield event("response.output_item.done", output_index=1, item=whole["output"][1])
    yield event("response.completed", response=whole)


def message(handles: list[str], tools: bool) -> dict[str, Any]:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": f"About {handles}", "signature": "c2lnbmVk"},
        {"type": "text", "text": said(handles)},
    ]
    if tools:
        given = json.loads(arguments(handles))
        content.append({"type": "tool_use", "id": "t1", "name": "mail", "input": given})
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": content,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }


def message_events(handles: list[str], tools: bool) -> Iterator[str]:
    def event(kind: str, **members: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n"

    yield event("message_start", message={**message([], False), "content": [], "stop_reason": None})
    yield event("ping")
    blocks: list[tuple[dict[str, Any], str, str]] = [
        ({"type": "text", "text": ""}, "text", said(handles)),
    ]
    if tools:
        begun = {"type": "tool_use", "id": "t1", "name": "mail", "input": {}}
        blocks.append((begun, "partial_json", arguments(handles)))
    for index, (block, member, text) in enumerate(blocks):
        yield event("content_block_start", index=index, content_block=block)
        kind = {"text": "text_delta", "partial_json": "input_json_delta"}[member]
        for piece in pieces(text):
            yield event("content_block_delta", index=index, delta={"type": kind, member: piece})
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2})
    yield event("message_stop")


def embedding(*_: Any) -> dict[str, Any]:
    item = {"object": "embedding", "index": 0, "embedding": [0.1, 0.2]}
    return {"object": "list", "data": [item], "model": "e", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
