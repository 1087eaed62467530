"""The service with one server behind it whose primitives are in groups."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.core.catalog.groups import GroupDefinition
from app.core.contracts.policy import Policy
from app.services.access.access import HOST
from tests.protocol.aggregated_service import aggregated, serving_era
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import Wire, client
from tests.upstreams.scripted import ScriptedServer

OPERATOR = Caller(DEFAULT_TENANT, "00000000", frozenset({Role.OPERATOR}))
GROUPS_META = "io.modelcontextprotocol/groups"
NARROWING = "dev.sluice/groups"
GROUPS = [
    {
        "name": "work",
        "title": "Work",
        "members": [{"kind": "group", "name": "numbers"}, {"kind": "group", "name": "letters"}],
    },
    {"name": "letters", "members": [{"kind": "tool", "name": "alpha__echo"}]},
    {
        "name": "numbers",
        "description": "Everything that counts.",
        "members": [
            {"kind": "tool", "name": "alpha__add"},
            {"kind": "prompt", "name": "*", "server": "alpha"},
            {"kind": "resource", "name": "memo://one"},
            {"kind": "template", "name": "memo://{name}"},
            {"kind": "middleware", "name": "pii_*"},
        ],
    },
    {"name": "other", "members": [{"kind": "tool", "name": "alpha__add"}]},
]


@dataclass
class Grouped:
    """The running service and the server behind it."""

    url: str
    app: FastAPI
    script: ScriptedServer

    def at(self, group: str | None) -> str:
        """Return the address of the endpoint of a group."""
        return self.url if group is None else f"{self.url}/groups/{quote(group)}"

    @contextlib.asynccontextmanager
    async def client(
        self, revision: str, group: str | None = None, key: str | None = None
    ) -> AsyncIterator[Wire]:
        """Yield a client at the endpoint of a group, or at /mcp."""
        async with client(self.at(group), revision, key or str(KEY)) as wire:
            yield wire

    async def put(self, *groups: dict[str, Any]) -> None:
        for one in groups:
            await self.app.state.services.groups.put(OPERATOR, GroupDefinition.model_validate(one))

    async def policy(self, **members: Any) -> None:
        await self.app.state.services.policies.put(OPERATOR, None, Policy(**members))

    async def key(self) -> str:
        """Return a new key of an invoker."""
        made = await self.app.state.services.access.create_key(HOST, [Role.INVOKER], tenant=DEFAULT_TENANT)
        return str(made.key)


@contextlib.asynccontextmanager
async def grouped(
    folder: Path, script: ScriptedServer | None = None, groups: Any = GROUPS, **settings: Any
) -> AsyncIterator[Grouped]:
    """Serve ``script`` as alpha, with ``groups`` in the declarative file."""
    script = script or ScriptedServer("alpha")
    with serving_era(script) as upstream:
        server = {"alpha": {"url": upstream, **settings}}
        async with aggregated(folder, server, declared={"groups": groups}) as (url, app):
            yield Grouped(url, app, script)


async def listed(wire: Wire, method: str = "tools/list", *groups: str) -> dict[str, dict[str, Any]]:
    """Return a whole list by name, narrowed to ``groups`` if any are given."""
    meta = {NARROWING: list(groups)} if groups else None
    reply = await wire.call(method, meta=meta)
    assert "nextCursor" not in reply.result
    (found,) = [value for value in reply.result.values() if isinstance(value, list)]
    return {one.get("uriTemplate") or one.get("uri") or one["name"]: one for one in found}


def name(wire: Wire, value: str) -> dict[str, str]:
    """Return the header that repeats what a request names, where the revision has one."""
    return {"mcp-name": value} if wire.modern else {}


@contextlib.asynccontextmanager
async def stream(wire: Wire) -> AsyncIterator["asyncio.Queue[dict[str, Any]]"]:
    """Yield the notifications that a client hears from now on."""
    heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    opened = asyncio.Event()

    async def read() -> None:
        if wire.modern:
            wanted = {f"{kind}ListChanged": True for kind in ("tools", "prompts", "resources", "groups")}
            body = wire.body("subscriptions/listen", {"notifications": wanted})
            request = wire.http.stream(
                "POST", wire.url, json=body, headers=wire.headers("subscriptions/listen")
            )
        else:
            request = wire.http.stream("GET", wire.url, headers=wire.headers(""))
        async with request as response:
            assert response.status_code == 200
            async for line in response.aiter_lines():
                if not wire.modern:
                    opened.set()
                if line.startswith("data:") and line[5:].strip():
                    message = json.loads(line[5:])
                    opened.set()
                    if message.get("method") != "notifications/subscriptions/acknowledged":
                        heard.put_nowait(message)

    task = asyncio.create_task(read())
    try:
        await asyncio.wait_for(opened.wait(), 20)
        yield heard
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def heard_methods(heard: "asyncio.Queue[dict[str, Any]]", wanted: set[str]) -> set[str]:
    """Return the methods of what is heard until all that are ``wanted`` are among them."""
    methods: set[str] = set()
    async with asyncio.timeout(30):
        while not wanted <= methods:
            methods.add((await heard.get())["method"])
    return methods
