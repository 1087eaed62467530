"""A well-behaved MCP server for tests, on the SDK: both revisions, over stdio and streamable HTTP.

In a test, over HTTP (a thread with a loop of its own; give ``port`` to start again on the same address)::

    script = ScriptedServer("alpha")
    with serving_http(script) as url:            # http://127.0.0.1:<port>/mcp
        ...
        script.add_tool("late")                  # then script.announce("tools"), from any thread
        assert script.calls == [("tools/call", "echo")]

Over stdio: ``stdio_settings()`` gives the members ``command``, ``args`` and ``cwd`` of an entry of ``mcpServers``; by
hand it is ``python -m tests.upstreams.scripted --name alpha``. Legacy SSE: ``serving_sse(script)``.

Tools: echo, add, progress, log, sample, elicit, roots, slow, fail, refuse, environment, region (``x-mcp-header``), grow
(adds a tool and announces it), crash. Prompts: greet. Resources: memo://one, memo://two. Template: memo://{name}.
"""

import argparse
import asyncio
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context = Any
Tool = Callable[[Context, dict[str, Any]], Awaitable[dict[str, Any]]]

OBJECT = {"type": "object"}
REGION = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "count": {"type": "integer"}},
}
MISDECLARED = {"type": "object", "properties": {"region": {"type": "number", "x-mcp-header": "Region"}}}
"""A schema that no client may accept: for a tool that is held back whoever approves it."""

LIST_EVENTS = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}
ROOT = Path(__file__).parents[2]


def whole(handler: Any) -> Any:
    """Add to a handler's results what the modern revision requires."""

    async def handle(context: Context, params: Any) -> dict[str, Any]:
        result = await handler(context, params)
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return result
        cached = {} if context.method == "tools/call" else {"ttlMs": 0, "cacheScope": "private"}
        return {"resultType": "complete", **cached, **result}

    return handle


def text(content: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}]}


@dataclass
class ScriptedServer:
    """What the server offers and what it was asked; change the mappings while it runs, then ``announce``."""

    name: str = "scripted"
    version: str = "1"
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    behaviours: dict[str, Tool] = field(default_factory=dict)
    prompts: dict[str, dict[str, Any]] = field(default_factory=dict)
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    page_size: int = 100
    calls: list[tuple[str, str]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    metas: list[Mapping[str, Any]] = field(default_factory=list)
    needs: dict[str, str] = field(default_factory=dict)
    """Capabilities by tool: the tool is listed, and there, only for clients that declared it."""

    verbatim: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Raw results by method, or by ``tools/call:<name>``, that go out past the SDK's models."""

    def __post_init__(self) -> None:
        for name, behaviour in BEHAVIOURS.items():
            self.add_tool(name, behaviour, schema=REGION if name == "region" else OBJECT)
        self.prompts["greet"] = {
            "name": "greet",
            "description": "Greets.",
            "arguments": [{"name": "who", "required": True}],
        }
        for name in ("one", "two"):
            self.resources[f"memo://{name}"] = {
                "uri": f"memo://{name}",
                "name": name,
                "mimeType": "text/plain",
            }
        self.templates["memo://{name}"] = {"uriTemplate": "memo://{name}", "name": "memo"}
        self._bus = InMemorySubscriptionBus()
        self._sessions: dict[int, Any] = {}
        self._subscribed: set[str] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    def add_tool(
        self, name: str, behaviour: Tool | None = None, *, schema: Any = OBJECT, **more: Any
    ) -> None:
        self.tools[name] = {"name": name, "description": f"Does {name}.", "inputSchema": schema, **more}
        self.behaviours[name] = behaviour or echo

    def announce(self, what: str = "tools") -> None:
        """Tell every client that a list changed, or with a URI that this resource did; from any thread."""
        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(self.announced(what), self.loop).result(10)

    async def announced(self, what: str) -> None:
        await self._bus.publish(LIST_EVENTS.get(what) or ResourceUpdated(uri=what))
        for session in list(self._sessions.values()):
            if what in LIST_EVENTS:
                await getattr(session, f"send_{what.removesuffix('s')}_list_changed")()
            elif what in self._subscribed:
                await session.send_resource_updated(what)

    def server(self) -> Server[Any]:
        """Build the SDK's server around this script."""
        server: Server[Any] = Server(
            self.name,
            version=self.version,
            instructions=f"Ask {self.name} nicely.",
            get_tool_input_schema=lambda name: self.tools.get(name, {}).get("inputSchema"),
            on_list_tools=self._lister("tools", self.tools),
            on_list_prompts=self._lister("prompts", self.prompts),
            on_list_resources=self._lister("resources", self.resources),
            on_list_resource_templates=self._lister("resourceTemplates", self.templates),
            on_call_tool=whole(self._call_tool),
            on_get_prompt=whole(self._get_prompt),
            on_read_resource=whole(self._read_resource),
            on_subscribe_resource=whole(self._subscribe),
            on_unsubscribe_resource=whole(self._unsubscribe),
            on_completion=whole(self._complete),
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        server.middleware.clear()
        server.middleware.append(self._observe)
        return server

    async def _observe(self, context: Context, call_next: Any) -> Any:
        self.loop = asyncio.get_running_loop()
        params = dict(context.params or {})
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            # The connection behind a session is the same for all its requests.
            self._sessions[id(context.session._connection)] = context.session
        if context.method in {"tools/call", "prompts/get", "resources/read"}:
            self.calls.append((context.method, params.get("name") or params.get("uri")))
            self.metas.append(params.get("_meta") or {})
        raw = self.verbatim.get(f"{context.method}:{params.get('name')}", self.verbatim.get(context.method))
        if raw is not None:
            return raw
        result = await call_next(context)
        if context.method in {"initialize", "server/discover"} and isinstance(result, dict):
            for kind in ("tools", "prompts", "resources"):
                result["capabilities"].setdefault(kind, {})["listChanged"] = True
        return result

    def _lister(self, member: str, entries: dict[str, dict[str, Any]]) -> Any:
        async def list_page(context: Context, params: Any) -> dict[str, Any]:
            start = int((params and params.cursor) or 0)
            rows = [row for name, row in entries.items() if self._is_for(context, name)]
            page: dict[str, Any] = {member: rows[start : start + self.page_size]}
            if start + self.page_size < len(rows):
                page["nextCursor"] = str(start + self.page_size)
            return page

        return whole(list_page)

    def _is_for(self, context: Context, name: str) -> bool:
        declared = context.session.client_capabilities
        return name not in self.needs or getattr(declared, self.needs[name], None) is not None

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        behaviour = self.behaviours.get(params.name)
        if behaviour is None or not self._is_for(context, params.name):
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        context.script = self
        try:
            return await behaviour(context, params.arguments or {})
        except asyncio.CancelledError:
            self.cancelled.append(params.name)
            raise

    async def _get_prompt(self, _context: Context, params: types.GetPromptRequestParams) -> dict[str, Any]:
        if params.name not in self.prompts:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
        words = f"Greet {(params.arguments or {}).get('who', 'nobody')}."
        return {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}

    async def _read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> dict[str, Any]:
        uri = str(params.uri)
        if not uri.startswith("memo://"):
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"{self.name} has {uri}"}]}

    async def _subscribe(self, _context: Context, params: types.SubscribeRequestParams) -> dict[str, Any]:
        self._subscribed.add(str(params.uri))
        return {}

    async def _unsubscribe(self, _context: Context, params: types.UnsubscribeRequestParams) -> dict[str, Any]:
        self._subscribed.discard(str(params.uri))
        return {}

    async def _complete(self, _context: Context, params: types.CompleteRequestParams) -> dict[str, Any]:
        values = [name for name in ("one", "two", "three") if name.startswith(params.argument.value)]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}


async def echo(_context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    return {**text(json.dumps(arguments)), "structuredContent": arguments}


async def add(_context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    return text(str(arguments["a"] + arguments["b"]))


async def progress(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    steps = arguments.get("steps", 3)
    for step in range(1, steps + 1):
        await context.session.report_progress(step, steps, f"step {step}")
    return text("done")


async def log(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    params = types.LoggingMessageNotificationParams(
        level="info", data=arguments.get("say", "hello"), logger="x"
    )
    await context.session.send_notification(
        types.LoggingMessageNotification(params=params), context.request_id
    )
    return text("logged")


async def sample(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    message = types.SamplingMessage(
        role="user", content=types.TextContent(type="text", text=arguments.get("ask", "?"))
    )
    request = types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=9)
    )
    related = ServerMessageMetadata(related_request_id=context.request_id)
    answer = await context.session.send_request(request, types.CreateMessageResult, metadata=related)
    return text(f"model said {answer.content.text}")


async def elicit(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    answer = await context.session.elicit_form(
        arguments.get("ask", "Who?"), form, related_request_id=context.request_id
    )
    return text(f"{answer.action} {json.dumps(answer.content)}")


async def roots(context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    related = ServerMessageMetadata(related_request_id=context.request_id)
    answer = await context.session.send_request(
        types.ListRootsRequest(), types.ListRootsResult, metadata=related
    )
    return text(" ".join(str(root.uri) for root in answer.roots))


async def slow(_context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(arguments.get("seconds", 60))
    return text("finally")


async def fail(_context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    return {**text(arguments.get("say", "It broke.")), "isError": True}


async def refuse(_context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    raise MCPError(
        arguments.get("code", -32050), arguments.get("message", "No."), arguments.get("data", {"why": "x"})
    )


async def environment(_context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    return {**text("see structuredContent"), "structuredContent": {"cwd": str(Path.cwd()), **os.environ}}


async def region(context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    headers = getattr(context.request, "headers", None) or {}
    seen = {name: value for name, value in headers.items() if name.startswith("mcp-")}
    return {**text("headers"), "structuredContent": seen}


async def grow(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    script: ScriptedServer = context.script
    script.add_tool(arguments.get("name", "grown"))
    await script.announced("tools")
    return text("grown")


async def crash(_context: Context, _arguments: dict[str, Any]) -> dict[str, Any]:
    os._exit(3)


BEHAVIOURS: dict[str, Tool] = {
    behaviour.__name__: behaviour
    for behaviour in (echo, add, progress, log, sample, elicit, roots, slow, fail, refuse, environment)
} | {"region": region, "grow": grow, "crash": crash}


def stdio_settings(name: str = "scripted", **more: Any) -> dict[str, Any]:
    """Return the members of an entry of ``mcpServers`` that runs this server as a child."""
    return {
        "command": sys.executable,
        "args": ["-m", "tests.upstreams.scripted", "--name", name],
        "cwd": str(ROOT),
        **more,
    }


async def serve_stdio(script: ScriptedServer) -> None:
    server = script.server()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="scripted")
    parser.add_argument("--noise", action="store_true", help="Write lines to stderr as well.")
    given = parser.parse_args()
    if given.noise:
        threading.Thread(target=lambda: sys.stderr.write("secret words\n" * 50_000), daemon=True).start()
    asyncio.run(serve_stdio(ScriptedServer(given.name)))


if __name__ == "__main__":
    main()
