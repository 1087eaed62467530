"""The service with the proposal's server behind it, its concerns declared, and hosts that configure them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.core.catalog.concerns import ConcernDefinition, ConcernMapping
from app.core.contracts.policy import Policy
from app.services.access.access import HOST
from app.services.catalog.concerns import ConcernService
from tests.protocol.aggregated_service import aggregated
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import HANDSHAKE, Reply, Wire, client
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

HANDLE = "dev.sluice/session"
ASKED = "dev.sluice/concerns"
WARNINGS = "dev.sluice/warnings"
OPERATOR = Caller(DEFAULT_TENANT, "00000000", frozenset({Role.OPERATOR}))
SECURITY = {
    "name": "security",
    "description": "Security level required for the operation",
    "values": ["high", "medium", "low"],
    "default": "medium",
}
COST = {
    "name": "cost",
    "description": "What an operation may cost",
    "values": ["minimal", "moderate", "any"],
    "default": "any",
}
PERFORMANCE = {
    "name": "performance",
    "description": "How fast an operation should be",
    "values": ["fast", "balanced", "thorough"],
    "default": "balanced",
}
DECLARED = [COST, PERFORMANCE, SECURITY]
"""In the order in which they are told."""

MAPPING = {
    "encryptData": {"security": "high", "cost": "minimal"},
    "logData": {"security": "medium"},
    "validateData": {},
}


def _is_done(task: "asyncio.Task[None]") -> bool:
    return task.done()


@dataclass
class Concerned:
    """The service, and what its operator does."""

    url: str
    app: FastAPI
    script: ScriptedServer

    @property
    def concerns(self) -> ConcernService:
        found: ConcernService = self.app.state.services.concerns
        return found

    async def settled(self) -> None:
        """Wait until open streams have been told of all that the operator and the servers did so far."""
        catalogs = self.app.state.services.catalogs
        await catalogs.get(DEFAULT_TENANT)
        async with asyncio.timeout(20):
            while catalogs._stale or catalogs._building or not all(map(_is_done, catalogs._soon.values())):
                await asyncio.sleep(0.01)

    async def declare(self, *definitions: Mapping[str, Any]) -> None:
        for one in definitions:
            await self.concerns.put(OPERATOR, ConcernDefinition.model_validate(one))

    async def map(self, kind: str, name: str, concerns: Mapping[str, Any]) -> None:
        mapping = {"kind": kind, "name": name, "concerns": dict(concerns)}
        await self.concerns.put_mapping(OPERATOR, ConcernMapping.model_validate(mapping))

    async def policy(self, **members: Any) -> None:
        await self.app.state.services.policies.put(OPERATOR, None, Policy.model_validate(members))

    async def key(self, *roles: Role) -> str:
        made = await self.app.state.services.access.create_key(
            HOST, list(roles) or [Role.INVOKER], tenant=DEFAULT_TENANT
        )
        return str(made.key)

    @contextlib.asynccontextmanager
    async def host(self, revision: str, key: str | None = None) -> AsyncIterator["Host"]:
        async with client(self.url, revision, key or str(KEY)) as wire:
            yield Host(wire)


@dataclass
class Host:
    """A client that sends its handle back, as hosts of the modern revision do."""

    wire: Wire
    handle: str | None = None

    async def call(self, method: str, meta: Mapping[str, Any] | None = None, **params: Any) -> Reply:
        sent = {**({HANDLE: self.handle} if self.handle else {}), **(meta or {})}
        headers = {"mcp-name": params["name"]} if self.wire.modern and method == "tools/call" else {}
        return await self.wire.call(method, meta=sent, headers=headers, **params)

    async def update(self, concerns: Any, *, method: str = "concerns/update", **params: Any) -> Reply:
        reply = await self.call(method, concerns=concerns, **params)
        if "result" in reply.message:
            self.handle = reply.result.get("_meta", {}).get(HANDLE)
        return reply

    async def names(self, method: str = "tools/list", **meta: Any) -> list[str]:
        return names_of(await self.call(method, meta=meta))

    async def initialize(
        self, *, initialize: Any = None, initialized: Any = None, asked: bool = False
    ) -> Reply:
        """Begin another session whose handshake configures concerns; ``asked``: one that servers may ask."""
        params: dict[str, Any] = {
            "protocolVersion": HANDSHAKE,
            "capabilities": {"elicitation": {}} if asked else {},
            "clientInfo": {"name": "tests", "version": "1"},
        }
        if initialize is not None:
            params["concerns"] = initialize
        self.wire.session = None
        reply = await self.wire.call("initialize", **params)
        self.wire.session = reply.headers["mcp-session-id"]
        said = {} if initialized is None else {"concerns": initialized}
        assert (await self.wire.notify("notifications/initialized", **said)).status == 202
        return reply


def names_of(reply: Reply) -> list[str]:
    members = ("tools", "prompts", "resources", "resourceTemplates")
    (listed,) = [reply.result[member] for member in members if member in reply.result]
    return [one.get("uriTemplate") or one.get("uri") or one["name"] for one in listed]


def scripted_crypto() -> ScriptedServer:
    """Return the server of the proposal's example; encryptData says itself what it is mapped to."""
    script = ScriptedServer("crypto")
    script.tools.clear()
    for name in MAPPING:
        script.add_tool(name)
    script.tools["encryptData"]["_meta"] = {"concerns": dict(MAPPING["encryptData"]), "vendor/kept": 1}
    return script


@contextlib.asynccontextmanager
async def concerned(folder: Path, *, more: int = 0) -> AsyncIterator[Concerned]:
    """Serve the example and ``more`` tools, its concerns declared and its tools mapped."""
    script = scripted_crypto()
    for number in range(more):
        script.add_tool(f"more{number:03}")
    with serving_http(script) as url:
        entry = {"crypto": {"url": url, "namespace": False}}
        async with aggregated(folder, entry) as (mcp_url, app):
            served = Concerned(mcp_url, app, script)
            await served.declare(*DECLARED)
            for name, mapped in MAPPING.items():
                await served.map("tool", name, mapped)
            yield served
