"""The whole service with two scripted servers behind it, and calls that look the same on both revisions."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from fastapi import FastAPI

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.core.contracts.policy import Policy
from tests.protocol.aggregated_service import aggregated
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import Reply, Wire, client
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import BEHAVIOURS, ScriptedServer

OPERATOR = Caller(DEFAULT_TENANT, "0000000f", frozenset({Role.OPERATOR}))
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


async def ask(wire: Wire, method: str, meta: Mapping[str, Any] | None = None, **params: Any) -> Reply:
    """Send a request with the headers that the modern revision wants."""
    headers = {"mcp-name": params[NAMED[method]]} if wire.modern and method in NAMED else {}
    return await wire.call(method, dict(meta or {}), headers, **params)


async def call(wire: Wire, name: str, arguments: Any = None, **options: Any) -> Reply:
    return await ask(wire, "tools/call", name=name, arguments=arguments or {}, **options)


async def listed(wire: Wire, method: str, **params: Any) -> list[dict[str, Any]]:
    """Return all pages of a list."""
    member = {"resources/templates/list": "resourceTemplates"}.get(method, method.partition("/")[0])
    found, cursor = [], {}
    while True:
        result = (await ask(wire, method, **params, **cursor)).result
        found += result[member]
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


async def put_policy(app: FastAPI, **policy: Any) -> None:
    await app.state.services.policies.put(OPERATOR, None, Policy.model_validate(policy))


@contextlib.asynccontextmanager
async def passing(
    folder: Path, *scripts: ScriptedServer, settings: Mapping[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[str, FastAPI]]:
    """Serve everything with ``scripts`` behind it over HTTP, under their own names."""
    with contextlib.ExitStack() as stack:
        servers = {
            script.name: {"url": stack.enter_context(serving_http(script)), **(settings or {})}
            for script in scripts
        }
        async with aggregated(folder, servers, **options) as found:
            yield found


@dataclass
class Passing:
    """A service that the tests of a module share, and the two servers behind it."""

    url: str
    app: FastAPI
    alpha: ScriptedServer
    beta: ScriptedServer

    @classmethod
    @contextlib.asynccontextmanager
    async def shared(cls, folder: Path, alpha: ScriptedServer, beta: ScriptedServer) -> AsyncIterator[Self]:
        async with passing(folder, alpha, beta) as (url, app):
            yield cls(url, app, alpha, beta)

    @contextlib.asynccontextmanager
    async def wire(self, revision: str) -> AsyncIterator[Wire]:
        """Yield a client; afterwards the servers and the policy are as they were."""
        async with opened(self.url, revision) as wire:
            wire.app = self.app
            yield wire
        for script in (self.alpha, self.beta):
            script.behaviours.update(BEHAVIOURS)
            for noted in (script.verbatim, script.calls, script.metas, script.cancelled):
                noted.clear()
        await put_policy(self.app)


@contextlib.asynccontextmanager
async def opened(url: str, revision: str, capabilities: Any = None) -> AsyncIterator[Wire]:
    """Yield a client with the first key."""
    async with client(url, revision, str(KEY)) as wire:
        if capabilities is not None and not wire.modern:
            await wire.open(capabilities)
        yield wire
