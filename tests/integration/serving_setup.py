"""A process that serves MCP servers, as main wires it: the services, their announcements, a tenant's operator."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from app.core.access import Caller
from app.core.audit import AuditEvent
from app.core.catalog.primitives import PrimitiveKind
from app.core.catalog.servers import MCPServerSettings, ServerEntry
from app.services.access.access import HOST
from app.services.access.tenants import TenantService
from app.services.audit.audit import AuditQuery
from app.services.servers.sealing import SubmittedServer
from app.services.servers.server_admin import ServerService
from app.services.servers.tenant_upstreams import UpstreamRules
from app.services.servers.upstreams import UpstreamService
from app.store.changes import Changes
from app.store.database import Database
from app.store.servers import SERVERS
from tests.factories import PATIENT, Vault, access_service, caller_of, open_vault

LOOPBACK = UpstreamRules(allowed_networks=("127.0.0.0/8",), connect_timeout_s=20)
"""Servers that were added over REST may lie on loopback, where the tests' servers are."""


@dataclass(frozen=True)
class Serving:
    """One process."""

    database: Database
    vault: Vault
    upstreams: UpstreamService
    servers: ServerService
    told: list[str] = field(default_factory=list)

    async def tenant(self, name: str) -> Caller:
        """Make a tenant and return a caller with all roles in it."""
        access = access_service(self.database, self.vault.audit)
        await TenantService(access).create(HOST, name)
        return caller_of(name)

    async def add(self, operator: Caller, name: str, url: str, **settings: Any) -> None:
        """Add a server over HTTP."""
        await self.servers.add(operator, name, SubmittedServer({"url": url, **settings}))

    async def declare(self, operator: Caller, name: str, *, tool_filter: Any = None, **settings: Any) -> bool:
        """Declare a server as a file does."""
        entry = ServerEntry(
            name=name, settings=MCPServerSettings.model_validate(settings), tool_filter=tool_filter
        )
        async with self.database.transaction(operator.tenant) as tx:
            return await self.servers.declare(tx, operator, entry)

    def tools(self, operator: Caller) -> set[str]:
        """Return the tools that are served, as server__tool."""
        offers = self.upstreams.approved(operator.tenant).offers
        return {f"{one.server}__{one.own_name}" for one in offers if one.kind is PrimitiveKind.TOOL}

    def quarantined(self, operator: Caller) -> dict[str, str]:
        """Return what is held back and why."""
        found = self.upstreams.approved(operator.tenant).quarantined
        return {one.name: one.state.value for one in found}

    def connection(self, operator: Caller, name: str) -> str | None:
        """Return the state of the connection to a server."""
        status = self.upstreams.status(operator.tenant, name)
        return status.state if status is not None else None

    async def events(self, operator: Caller, action: str) -> list[AuditEvent]:
        """Return what is on record, oldest first."""
        page = await self.vault.audit.query(operator, AuditQuery(action=action))
        return page.items[::-1]


async def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait for a condition; the limit is there to end a test that would hang."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


async def forget_servers(database_url: str, tenant: str) -> None:
    """Remove a tenant's servers: processes of later tests share the database and would connect to them."""
    async with Database(database_url, patience=PATIENT) as database, database.transaction(tenant) as tx:
        for one in await SERVERS.list(tx, tenant):
            await SERVERS.remove(tx, tenant, one.name)


@asynccontextmanager
async def serving_process(database_url: str, rules: UpstreamRules = LOOPBACK) -> AsyncIterator[Serving]:
    """Run a process on a migrated database."""
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(database_url, patience=PATIENT))
        vault = await stack.enter_async_context(open_vault(database))
        changes = await stack.enter_async_context(Changes(database).running())
        upstreams = UpstreamService(database, vault.audit, rules)
        changes.subscribe(upstreams.changed)
        serving = Serving(database, vault, upstreams, ServerService(database, vault.audit, upstreams))
        upstreams.subscribe(serving.told.append)
        await stack.enter_async_context(upstreams.running())
        yield serving
