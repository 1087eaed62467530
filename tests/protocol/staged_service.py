"""The service with a server whose tools are described in two stages, and hosts that use it as such."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.core.catalog.primitives import Primitive, PrimitiveKind
from app.core.contracts.policy import Policy
from app.core.tools.disclosure import ToolDescription
from app.services.access.access import HOST
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import Reply, Wire, client
from tests.unit.core.tools.test_disclosure import GET_DATA
from tests.upstreams.scripted import ScriptedServer, text

URI = "resource:///tool_descriptions"
HANDLE = "dev.sluice/disclosure"
OPERATOR = Caller(DEFAULT_TENANT, "00000000", frozenset({Role.OPERATOR}))
LONG = """Sends a message to a person.

Args:
    to: the address

Example:
    send(to="name@example.com")
"""


async def answer(_context: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    return text(json.dumps(arguments))


@dataclass
class Staged:
    """The service with one server whose tools are staged, and what tests do with it."""

    url: str
    app: FastAPI
    script: ScriptedServer

    async def offers(self, wanted: Callable[[Mapping[str, Primitive]], bool]) -> None:
        """Wait until the catalog of the tools is as it is ``wanted``."""
        async with asyncio.timeout(30):
            while not wanted(
                (await self.app.state.services.catalogs.get(DEFAULT_TENANT)).of(PrimitiveKind.TOOL)
            ):
                await asyncio.sleep(0.02)

    async def key(self, *roles: Role) -> str:
        made = await self.app.state.services.access.create_key(
            HOST, list(roles) or [Role.INVOKER], tenant=DEFAULT_TENANT
        )
        return str(made.key)

    async def policy(self, **members: Any) -> None:
        await self.app.state.services.policies.put(OPERATOR, None, Policy.model_validate(members))

    async def describe(self, name: str, **members: Any) -> None:
        await self.app.state.services.descriptions.put(
            OPERATOR, name, ToolDescription.model_validate(members)
        )

    @contextlib.asynccontextmanager
    async def client(self, revision: str, key: str | None = None) -> AsyncIterator["Host"]:
        async with client(self.url, revision, key or str(KEY)) as wire:
            yield Host(wire)


@dataclass
class Host:
    """A client that sends its handle back, as hosts of the modern revision do."""

    wire: Wire
    handle: Any = None

    async def read(self, query: str, **meta: Any) -> Reply:
        uri = URI + query
        meta = {**({HANDLE: self.handle} if self.handle else {}), **meta}
        headers = {"mcp-name": quote(uri, safe=":/?=,%&")} if self.wire.modern else {}
        reply = await self.wire.call("resources/read", meta=meta, headers=headers, uri=uri)
        if "result" in reply.message:
            self.handle = reply.result.get("_meta", {}).get(HANDLE, self.handle)
        return reply

    async def entries(self, query: str) -> dict[str, Any]:
        reply = await self.read(query)
        (contents,) = reply.result["contents"]
        assert (contents["uri"], contents["mimeType"]) == (URI + query, "application/json")
        found: dict[str, Any] = json.loads(contents["text"])
        return found

    async def call(self, name: str, arguments: Any = None, **meta: Any) -> Reply:
        meta = {**({HANDLE: self.handle} if self.handle else {}), **meta}
        headers = {"mcp-name": name} if self.wire.modern else {}
        return await self.wire.call(
            "tools/call", meta=meta, headers=headers, name=name, arguments=arguments or {}
        )

    async def is_refused(self, name: str, **meta: Any) -> bool:
        """Return whether a call is held at the gate; any other answer must be the tool's own."""
        result = (await self.call(name, **meta)).result
        if result.get("isError"):
            assert json.loads(result["content"][0]["text"])["error"]["code"] == "TOOL_DESCRIPTION_REQUIRED"
            return True
        assert result["content"] == [{"type": "text", "text": "{}"}]
        return False

    async def tools(self) -> dict[str, dict[str, Any]]:
        return {tool["name"]: tool for tool in (await self.wire.call("tools/list")).result["tools"]}

    async def uris(self) -> list[str]:
        return [one["uri"] for one in (await self.wire.call("resources/list")).result["resources"]]


def scripted_data() -> ScriptedServer:
    """Return a server with the proposal's tool and two more."""
    script = ScriptedServer("data")
    script.tools.clear()
    script.add_tool("get_data", answer, schema=GET_DATA["inputSchema"])
    script.tools["get_data"]["description"] = GET_DATA["description"]
    schema = {
        "type": "object",
        "properties": {
            "to": {"type": "string", "format": "email"},
            "count": {"type": "integer", "maximum": 5},
        },
        "required": ["to"],
    }
    script.add_tool(
        *("send", answer), schema=schema, title="Send", annotations={"readOnlyHint": False}, _meta={"x/y": 1}
    )
    script.tools["send"]["description"] = LONG
    script.add_tool("measure", answer, outputSchema={"type": "object", "required": ["value"]})
    return script
