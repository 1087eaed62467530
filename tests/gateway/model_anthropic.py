"""The model of the tests in the shape of Anthropic's messages."""

import json
from typing import Any

from aiohttp import web

from tests.gateway.model import Model, Reply, demand, demand_answered, facts_of, filled, reply, signature_of
from tests.gateway.provider import events, named

USAGE = {
    "input_tokens": 11,
    "output_tokens": 7,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 5,
}


async def message(model: Model, request: web.Request, value: Any) -> web.StreamResponse:
    """Answer one request for a message, whole or streamed."""
    demand(request.headers.get("anthropic-version"), "anthropic-version is required")
    demand(isinstance(value.get("max_tokens"), int), "max_tokens is required")
    demand(value["messages"][0]["role"] == "user", "the first message is the user's")
    thinks = (value.get("thinking") or {}).get("type") in {"enabled", "adaptive"}
    _check(value["messages"])
    content = _content(model, value, thinks=thinks)
    calls = any(block["type"] == "tool_use" for block in content)
    head = {"id": model.id("msg"), "type": "message", "role": "assistant", "model": value["model"]}
    ends = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    headers = {"request-id": model.id("req")}
    if not value.get("stream"):
        return web.json_response({**head, "content": content, **ends, "usage": USAGE}, headers=headers)
    started = {**head, "content": [], "stop_reason": None, "stop_sequence": None}
    lines = [named("message_start", message={**started, "usage": {**USAGE, "output_tokens": 1}})]
    for index, block in enumerate(content):
        lines += _streamed(model, index, block)
        lines.append('event: ping\ndata: {"type": "ping"}\n\n')
    lines += [named("message_delta", delta=ends, usage={"output_tokens": 7}), named("message_stop")]
    return await events(model.provider, request, lines, **headers)


def _check(messages: list[Any]) -> None:
    """Refuse what the API refuses of a conversation."""
    waiting: list[str] = []
    for entry in messages:
        blocks = _blocks(entry["content"])
        demand(blocks and all(block.get("text") != "" for block in blocks), "text is empty")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        demand_answered(waiting, results)
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for block in blocks:
            if block["type"] == "tool_use":
                demand(isinstance(block["input"], dict), "input is no object")
            if block["type"] == "thinking":
                demand(
                    block["signature"] == signature_of(block["thinking"]),
                    "Invalid `signature` in `thinking` block",
                )
            if block["type"] == "redacted_thinking":
                demand(
                    block["data"] == signature_of("redacted"), "Invalid `data` in `redacted_thinking` block"
                )
    demand_answered(waiting, [])


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: Any) -> str:
    return "\n".join(block["text"] for block in _blocks(content) if block["type"] == "text")


def _said(messages: list[Any]) -> tuple[str, list[str]]:
    """Return the last text of the user, and what tools returned since."""
    results: list[str] = []
    for entry in reversed(messages):
        if entry["role"] != "user":
            continue
        blocks = _blocks(entry["content"])
        of_tools = [_text(block.get("content", "")) for block in blocks if block["type"] == "tool_result"]
        results = [*of_tools, *results]
        if text := _text(entry["content"]):
            return text, results
    return "", results


def _content(model: Model, value: Any, *, thinks: bool) -> list[dict[str, Any]]:
    text, results = _said(value["messages"])
    tools = {tool["name"]: tool for tool in value.get("tools") or []}
    choice = value.get("tool_choice") or {}
    shape = value.get("output_config") or {}
    form = shape.get("format") or value.get("output_format")
    if choice.get("type") in {"tool", "any"}:
        name = choice.get("name") or next(iter(tools))
        forced = filled(tools[name]["input_schema"], facts_of(text))
        return [{"type": "tool_use", "id": model.id("toolu"), "name": name, "input": forced}]
    if form:
        return [
            {"type": "text", "text": json.dumps(filled(form["schema"], facts_of(text)), ensure_ascii=False)}
        ]
    cited = _cited(value["messages"])
    if cited:
        return cited
    step = reply(text, results, tools=bool(tools))
    return [*(_thoughts(step) if thinks else []), *_blocks_of(model, step, next(iter(tools), ""))]


def _thoughts(step: Reply) -> list[dict[str, Any]]:
    return [
        {"type": "thinking", "thinking": step.thought, "signature": signature_of(step.thought)},
        {"type": "redacted_thinking", "data": signature_of("redacted")},
    ]


def _blocks_of(model: Model, step: Reply, tool: str) -> list[dict[str, Any]]:
    if not step.calls:
        return [{"type": "text", "text": step.text}]
    calls = [
        {"type": "tool_use", "id": f"{model.id('toolu')}_{number}", "name": tool, "input": arguments}
        for number, arguments in enumerate(step.calls)
    ]
    return [{"type": "text", "text": "Let me look."}, *calls]


def _cited(messages: list[Any]) -> list[dict[str, Any]]:
    """Return an answer that cites the last sentence of each document that wants citations."""
    documents = [block for block in _blocks(messages[-1]["content"]) if block["type"] == "document"]
    answer: list[dict[str, Any]] = []
    for number, document in enumerate(documents):
        text = document["source"]["data"]
        start = text.rindex(". ") + 2
        citation = {"type": "char_location", "cited_text": text[start:], "document_index": number}
        citation |= {"document_title": document.get("title"), "file_id": None}
        citation |= {"start_char_index": start, "end_char_index": len(text)}
        answer.append({"type": "text", "text": f"It says: {text[start:]}", "citations": [citation]})
    return answer


def _streamed(model: Model, index: int, block: dict[str, Any]) -> list[str]:
    """Return the events of one block."""
    empty = {
        "text": {"type": "text", "text": ""},
        "thinking": {"type": "thinking", "thinking": "", "signature": ""},
        "tool_use": {**block, "input": {}},
    }.get(block["type"], block)
    if "citations" in block:
        empty = {**empty, "citations": []}
    parts = model.provider.parts
    if block["type"] == "tool_use":
        # The API opens with an empty part.
        texts = ["", *parts(json.dumps(block["input"]))]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in texts]
    elif block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": part} for part in parts(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif block["type"] == "text":
        deltas = [{"type": "citations_delta", "citation": each} for each in block.get("citations", [])]
        deltas += [{"type": "text_delta", "text": part} for part in parts(block["text"])]
    else:
        deltas = []
    return [
        named("content_block_start", index=index, content_block=empty),
        *(named("content_block_delta", index=index, delta=delta) for delta in deltas),
        named("content_block_stop", index=index),
    ]
