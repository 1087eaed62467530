"""The whole service with MCP servers behind it: for tests of what passes through, and what comes back."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.main import create_app
from app.services.catalog.catalogs import CatalogService
from app.services.declare.declaration_files import read_file
from app.services.declare.declarations import DeclarationService
from app.services.servers.pins import PinState
from app.settings import UpstreamsSettings
from tests.protocol.mcp_service import listening, settings_of, unchanged_logging
from tests.upstreams.running import serving
from tests.upstreams.scripted import ScriptedServer


@contextlib.asynccontextmanager
async def aggregated(
    folder: Path,
    servers: Mapping[str, Mapping[str, Any]],
    *,
    database_url: str | None = None,
    required: bool = True,
    declared: Mapping[str, Any] | None = None,
    sections: Mapping[str, Any] | None = None,
    **upstreams: Any,
) -> AsyncIterator[tuple[str, FastAPI]]:
    """Serve everything with ``servers`` in its file; yield the URL of /mcp once each server was listed or failed."""
    file = folder / "sluice.json"
    file.write_text(json.dumps({"mcpServers": servers, **(declared or {})}))
    database = database_url or f"sqlite:///{folder}/aggregated.db"
    settings = settings_of(database, required=required)
    # A busy machine may keep a server waiting for seconds.
    upstream = UpstreamsSettings(**{"config": file, "connect_timeout_s": 30, **upstreams})
    settings = settings.model_copy(update={"upstreams": upstream, **(sections or {})})
    with unchanged_logging():
        app = create_app(settings)
        async with listening(app) as url:
            await apply(app, file)
            for name in servers:
                await connection_of(app, name).settled()
            await listed(app)
            yield url, app


async def listed(app: FastAPI) -> None:
    """Wait until what servers of the file offer was approved and stands in the catalog."""
    services = app.state.services
    async with asyncio.timeout(20):
        while True:
            await asyncio.sleep(0.02)
            aggregator = services.upstreams.aggregator(DEFAULT_TENANT)
            names = [name for name, one in aggregator.connections.items() if one.status.state == "ready"]
            reviews = [one for name in names for one in services.upstreams.reviews(DEFAULT_TENANT, name)]
            offered = len(services.upstreams.approved(DEFAULT_TENANT).offers)
            catalog = await services.catalogs.get(DEFAULT_TENANT)
            shown = sum(map(len, catalog.primitives.values())) + len(catalog.shadowed)
            kept = catalog is await services.catalogs.get(DEFAULT_TENANT)
            if kept and shown == offered and not any(one.state == PinState.NEW for one in reviews):
                return


async def apply(app: FastAPI, file: Path) -> None:
    """Apply a declarative file, as `sluice apply` does, and wait until its servers are begun."""
    services = app.state.services
    caller = Caller(DEFAULT_TENANT, "tests", frozenset({Role.OPERATOR}))
    service = DeclarationService(
        *(services.database, services.audit, services.servers, services.pipelines, services.policies),
        services.providers,
    )
    await service.apply(caller, read_file(file))
    names = json.loads(file.read_text())["mcpServers"]
    async with asyncio.timeout(20):
        while any(connection_of(app, name) is None for name in names):
            await asyncio.sleep(0.01)


def connection_of(app: FastAPI, name: str) -> Any:
    aggregator = app.state.services.upstreams.aggregator(DEFAULT_TENANT)
    return aggregator.connections.get(name) if aggregator is not None else None


def catalogs_of(app: FastAPI) -> CatalogService:
    found: CatalogService = app.state.services.catalogs
    return found


class OnlyHandshake:
    """A server that does not know the revision without sessions."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and Request(scope).headers.get("mcp-protocol-version", "") > "2025-11-25":
            error = {"code": -32600, "message": "Bad Request: Unsupported protocol version"}
            await JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


class OnlyModern:
    """A server that knows no handshake."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and Request(scope).headers.get("mcp-protocol-version", "") < "2026-07-28":
            error = {
                "code": -32022,
                "message": "Unsupported protocol version",
                "data": {"supported": ["2026-07-28"], "requested": "2025-11-25"},
            }
            await JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


@contextmanager
def serving_era(script: ScriptedServer, era: Any = None):
    """Serve ``script`` over HTTP in both revisions, or behind ``OnlyHandshake`` or ``OnlyModern``."""
    app = script.server().streamable_http_app()
    with serving(app if era is None else era(app)) as port:
        yield f"http://127.0.0.1:{port}/mcp"
