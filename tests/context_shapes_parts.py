"""Rows of the tables for interfaces whose blocks have no type, of MCP's blocks, and shapes that nobody knows."""

from typing import Any, Final

from tests.context_shapes import ANTHROPIC, OPENAI, Make, assistant, user
from tests.planting import Planter

_SVG: Final = '<svg xmlns="http://www.w3.org/2000/svg"><text>', "</text></svg>"


def _tool_result(*content: Any) -> dict[str, Any]:
    return user({"toolResult": {"toolUseId": "tooluse_1", "status": "success", "content": list(content)}})


def _bedrock_search(p: Planter) -> dict[str, Any]:
    return {"searchResult": {"source": p.text(), "title": p.text(), "content": [{"text": p.text()}]}}


def _bedrock_citations(p: Planter) -> dict[str, Any]:
    citation = {
        "title": p.text(),
        "source": p.text(),
        "sourceContent": [{"text": p.text()}],
        "location": {"web": {"url": p.kept_address()}},
    }
    return {"citationsContent": {"content": [{"text": p.text()}], "citations": [citation]}}


BEDROCK: Final[dict[str, Make]] = {
    "text": lambda p: user({"text": p.text()}),
    "text alone": lambda p: {"text": p.text()},
    "image": lambda p: user({"image": {"format": "png", "source": {"bytes": p.picture()}}}),
    "document bytes": lambda p: user(
        {"document": {"name": p.text(), "format": "txt", "source": {"bytes": p.code()}}}
    ),
    "document text": lambda p: user(
        {"document": {"name": p.text(), "context": p.text(), "source": {"text": p.text()}}}
    ),
    "document content": lambda p: user(
        {"document": {"name": p.text(), "source": {"content": [{"text": p.text()}]}}}
    ),
    "document s3": lambda p: user(
        {"document": {"name": p.text(), "source": {"s3Location": {"uri": "s3://b/k"}}}}
    ),
    "video": lambda p: user({"video": {"format": "mp4", "source": {"bytes": p.picture()}}}),
    "toolUse": lambda p: assistant(
        {"toolUse": {"toolUseId": "tooluse_1", "name": "send_mail", "input": p.data()}}
    ),
    "toolResult": lambda p: _tool_result({"json": p.data()}, {"text": p.text()}, _bedrock_search(p)),
    "toolResult image": lambda p: _tool_result(
        {"image": {"format": "png", "source": {"bytes": p.picture()}}}
    ),
    "guardContent": lambda p: user({"guardContent": {"text": {"text": p.text(), "qualifiers": ["query"]}}}),
    "reasoning": lambda p: assistant({"reasoningContent": {"reasoningText": {"text": p.text()}}}),
    "reasoning signed": lambda p: assistant(
        {"reasoningContent": {"reasoningText": {"text": p.kept_text(), "signature": p.picture()}}}
    ),
    "reasoning sealed": lambda p: assistant({"reasoningContent": {"redactedContent": p.picture()}}),
    "citations": lambda p: assistant(_bedrock_citations(p)),
    "searchResult": lambda p: user(_bedrock_search(p)),
}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


GEMINI: Final[dict[str, Make]] = {
    "text": lambda p: {"role": "user", "parts": [{"text": p.text()}, {"text": p.text()}]},
    "without a role": lambda p: {"parts": [{"text": p.text()}]},
    "thought": lambda p: model({"text": p.text(), "thought": True}),
    "thought signed": lambda p: model({"text": p.kept_text(), "thoughtSignature": p.picture()}),
    "call signed": lambda p: model(
        {"functionCall": {"name": "f", "args": {"to": p.kept_text()}}, "thought_signature": p.picture()}
    ),
    "inlineData": lambda p: model(
        {"inlineData": {"mimeType": "image/png", "displayName": p.text(), "data": p.picture()}}
    ),
    "inline text": lambda p: model(
        {"inline_data": {"mime_type": "text/html; charset=utf-16", "data": p.code("utf-16-le")}}
    ),
    "fileData": lambda p: model({"fileData": {"fileUri": p.kept_address(), "displayName": p.text()}}),
    "functionCall": lambda p: model({"functionCall": {"id": "f1", "name": "send_mail", "args": p.data()}}),
    "partial call": lambda p: model(
        {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.to", "stringValue": p.text()}]}}
    ),
    "functionResponse": lambda p: {
        "role": "user",
        "parts": [{"functionResponse": {"name": "send_mail", "response": p.data()}}],
    },
    "snake case": lambda p: model({"function_call": {"name": "f", "args": p.data()}}),
    "executableCode": lambda p: model({"executableCode": {"language": "PYTHON", "code": p.text()}}),
    "codeExecutionResult": lambda p: model(
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": p.text()}}
    ),
    "toolCall": lambda p: model({"toolCall": {"id": "t1", "toolType": "X", "args": p.data()}}),
    "toolResponse": lambda p: model({"toolResponse": {"id": "t1", "response": p.data()}}),
    "partMetadata": lambda p: model({"text": p.text(), "partMetadata": {"note": p.text()}}),
}


def resource(p: Planter, mime: str, code: str, **more: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "file:///a", "mimeType": mime, "blob": code, **more}}


MCP: Final[dict[str, Make]] = {
    "bare": lambda p: p.text(),
    "json": lambda p: p.json(),
    "text": lambda p: {"type": "text", "text": p.text(), "note": p.text(), "_meta": {"a": p.data()}},
    "image": lambda p: {"type": "image", "data": p.picture(), "mimeType": "image/png"},
    "image svg": lambda p: {
        "type": "image",
        "mimeType": "image/svg+xml",
        "data": p.code("utf-8", *_SVG),
    },
    "resource text": lambda p: {"type": "resource", "resource": {"uri": "file:///a", "text": p.text()}},
    "blob utf-8": lambda p: resource(p, "text/plain", p.code()),
    "blob mark": lambda p: resource(p, "text/plain", p.code("utf-8-sig")),
    "blob latin-1": lambda p: resource(p, "text/csv", p.code("latin-1")),
    "blob charset": lambda p: resource(p, "text/plain; charset=windows-1252", p.code("cp1252")),
    "blob utf-16": lambda p: resource(p, "text/plain", p.code("utf-16")),
    "blob utf-16 without a mark": lambda p: resource(p, "text/plain", p.code("utf-16-be")),
    "blob utf-32": lambda p: resource(p, "text/markdown", p.code("utf-32")),
    "blob xml": lambda p: resource(
        p, "application/xml", p.code("latin-1", '<?xml version="1.0" encoding="iso-8859-1"?><a>', "</a>")
    ),
    "blob json": lambda p: resource(p, "application/vnd.api+json", p.code("utf-8", '{"a": "', '"}')),
    "blob without a type": lambda p: {"type": "resource", "resource": {"uri": "x://1", "blob": p.code()}},
    "blob picture": lambda p: resource(p, "application/octet-stream", p.picture(), title=p.text()),
    "resource_link": lambda p: {
        "type": "resource_link",
        "uri": p.kept_address(),
        "name": p.text(),
        "title": p.text(),
        "description": p.text(),
        "_meta": {"example.org/note": p.text(), "seen": [p.text()]},
    },
    "tool_use": lambda p: {"type": "tool_use", "id": "1", "name": "n", "input": p.data()},
    "picture in data": lambda p: {
        "type": "tool_result",
        "content": [],
        "structuredContent": {"note": p.text(), "shot": p.picture()},
    },
    "picture in text": lambda p: {
        "role": "user",
        "content": f"{p.text()} ![](data:image/png;base64,{p.picture()})",
    },
    "tool_result": lambda p: {
        "type": "tool_result",
        "toolUseId": "1",
        "content": [{"type": "text", "text": p.text()}],
        "structuredContent": p.data(),
    },
    "result": lambda p: {"content": [{"type": "text", "text": p.text()}], "structuredContent": p.data()},
}

UNKNOWN: Final[dict[str, Make]] = {
    "type": lambda p: {"type": "hologram", "beam": p.text(), "deep": [{"caption": p.text(), "id": "h1"}]},
    "block": lambda p: user({"type": "hologram", "beam": {"words": [p.text(), [p.text()]]}}),
    "call": lambda p: assistant({"type": "quantum_call", "name": "q", "wanted": p.json()}),
    "result": lambda p: user({"type": "quantum_result", "found": [p.text()], "note": p.text()}),
    "no type": lambda p: {"name": p.text(), "notes": {"a": [p.text()]}},
    "no type in a message": lambda p: user({"whatever": p.text()}),
    "member of a message": lambda p: {"role": "user", "content": p.text(), "memo": {"x": p.text()}},
    "encoded": lambda p: {"type": "hologram", "payload": {"mimeType": "text/plain", "data": p.code()}},
    "picture": lambda p: {
        "type": "hologram",
        "caption": p.text(),
        "mimeType": "image/x",
        "data": p.picture(),
    },
}

SHAPES: Final[dict[str, Make]] = {
    f"{api}: {name}": make
    for api, rows in {
        "openai": OPENAI,
        "anthropic": ANTHROPIC,
        "bedrock": BEDROCK,
        "gemini": GEMINI,
        "mcp": MCP,
        "unknown": UNKNOWN,
    }.items()
    for name, make in rows.items()
}
"""All rows, each under its interface and name."""
