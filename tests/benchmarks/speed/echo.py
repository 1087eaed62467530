"""The upstream of the aggregator's table: a raw ASGI MCP server of ten tools, the cheapest honest one in Python."""

import json
import sys
from typing import Any

import uvicorn

TOOLS = [
    {
        "name": f"tool_{number}" if number else "echo",
        "description": "Echo the text back. " * 5,
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    for number in range(10)
]
JSON = [(b"content-type", b"application/json")]
UNKNOWN = {"code": -32601, "message": "Method not found"}


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of one request."""
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "bench-echo", "version": "1"},
        },
        "tools/list": {"tools": TOOLS},
        "ping": {},
    }
    method, head = message["method"], {"jsonrpc": "2.0", "id": message["id"]}
    if method == "tools/call":
        text = message["params"].get("arguments", {}).get("text", "")
        return {**head, "result": {"content": [{"type": "text", "text": text}], "isError": False}}
    return {**head, "result": results[method]} if method in results else {**head, "error": UNKNOWN}


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer POST with JSON, notifications with 202, everything else with 405 (and GET / with 200, as a probe)."""
    if scope["type"] == "lifespan":
        while (event := (await receive())["type"]) != "lifespan.shutdown":
            await send({"type": f"{event}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    status, sent = 405, b"{}"
    if scope["method"] == "POST":
        message = json.loads(body)
        status = 200 if "id" in message else 202
        sent = json.dumps(answer(message)).encode() if "id" in message else b""
    elif scope["path"] == "/":
        status = 200
    headers = [*JSON, (b"content-length", str(len(sent)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": sent})


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
