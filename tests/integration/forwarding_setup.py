"""Listing, forwarding and passages wired as main wires them, with servers that do what a test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import app.middlewares
from app.core.access import Caller, Role
from app.core.audit import AuditEvent
from app.core.catalog.primitives import Primitive, PrimitiveKind
from app.core.catalog.servers import MCPServerSettings
from app.core.contracts.policy import Policy
from app.core.contracts.registry import Registry
from app.core.request import RequestInfo
from app.core.upstream import NO_HOOKS, Hooks
from app.engines.cipher import KeyKeeper
from app.services.access.access import HOST
from app.services.access.policies import PolicyService, argument_check
from app.services.access.traffic import Traffic
from app.services.audit.audit import AuditService
from app.services.audit.canonical import event_code
from app.services.catalog.listing import CallerView, ListingService
from app.services.forward.forward_record import PrimitiveRequest
from app.services.forward.forwarding import ForwardService
from app.services.forward.tool_hooks import HookScope
from app.services.invoke.invoke import InvokeService
from app.services.vault.erasure import ErasureSink
from app.services.vault.keyring import KeyringService
from app.services.vault.vault import VaultService
from app.store.audit.writer import GroupWriter
from app.store.database import Database
from tests.catalogs import Shelf, catalog_of
from tests.factories import TEST_RING
from tests.fakes import FakeDetector, FakeMasker, engines
from tests.integration.access_setup import Replica, replica_on

Answer = Callable[[str, Mapping[str, Any]], Any]


@dataclass
class Server:
    """A server behind the service: it notes what reaches it and answers as the test says."""

    name: str
    settings: MCPServerSettings = field(
        default_factory=lambda: MCPServerSettings(url="http://127.0.0.1:9/mcp")
    )
    answer: Callable[[str, Mapping[str, Any], Hooks], Awaitable[dict[str, Any]]] | None = None
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    timeouts: list[float | None] = field(default_factory=list)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        hooks: Hooks = NO_HOOKS,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        self.calls.append((method, params or {}))
        self.timeouts.append(timeout_s)
        if self.answer is not None:
            return await self.answer(method, params or {}, hooks)
        return {"content": [{"type": "text", "text": "done"}]}


@dataclass
class Desk:
    """One process with a tenant, its catalog and its servers."""

    replica: Replica
    tenant: str
    shelf: Shelf
    servers: dict[tuple[str, str], Server]
    listing: ListingService
    forwarding: ForwardService
    policies: PolicyService
    traffic: Traffic

    def server(self, name: str, tenant: str | None = None, **options: Any) -> Server:
        made = Server(name, **options)
        self.servers[tenant or self.tenant, name] = made
        return made

    def offer(self, *primitives: Primitive, tenant: str | None = None) -> None:
        self.shelf.catalogs[tenant or self.tenant] = catalog_of(*primitives)

    async def allow(self, **policy: Any) -> None:
        operator = Caller(self.tenant, "0000000f", frozenset({Role.OPERATOR}))
        await self.policies.put(operator, None, Policy.model_validate(policy))

    def caller(self, *roles: Role, key: str = "0000000a", tenant: str | None = None) -> Caller:
        return Caller(tenant or self.tenant, key, frozenset(roles) or frozenset({Role.INVOKER}))

    def asked(self, caller: Caller | None = None, **options: Any) -> PrimitiveRequest:
        """Return a request with ``params`` and more of PrimitiveRequest's fields."""
        params = options.pop("params", {})
        left = options.pop("left_s", 30.0)
        deadline = asyncio.get_running_loop().time() + left
        request = RequestInfo("request-1", None, None, deadline)
        return PrimitiveRequest(
            caller or self.caller(), params, request, scope=options.pop("scope", HookScope()), **options
        )

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Any:
        params = {"name": name, **({} if arguments is None else {"arguments": arguments})}
        gate = options.pop("gate", None)
        params |= options.pop("more", {})
        return await self.forwarding.call_tool(self.asked(params=params, **options), gate)

    async def events(self, action: str) -> list[AuditEvent]:
        return await self.replica.events(self.tenant, action=action)

    async def names(
        self, kind: PrimitiveKind = PrimitiveKind.TOOL, caller: Caller | None = None
    ) -> list[str]:
        view = await self.listing.view(caller or self.caller())
        return [entry.definition["name"] for entry in self.listing.listed(view, kind).entries]

    async def view(self, caller: Caller | None = None) -> CallerView:
        return await self.listing.view(caller or self.caller())


@asynccontextmanager
async def desk_on(database: Database, tenant: str) -> AsyncIterator[Desk]:
    """Open everything for ``tenant``."""
    async with replica_on(database) as replica:
        await replica.tenants.create(HOST, tenant)
        audit: AuditService = replica.audit
        keys = await KeyringService(database, TEST_RING).start()
        custodian = KeyKeeper(TEST_RING)
        registry = Registry.discover(app.middlewares, engines(FakeDetector()))
        policies = PolicyService(database, audit, argument_check(registry), replica.access.authority)
        traffic = Traffic(slots=8)
        async with GroupWriter(database, custodian, partial(event_code, keys)) as writer:
            vault = VaultService(database, writer, custodian, audit, ErasureSink(None))
            invoke = InvokeService(registry, policies, vault, audit, FakeMasker(), traffic, lambda *_: None)
            shelf = Shelf()
            servers: dict[tuple[str, str], Server] = {}
            listing = ListingService(shelf, policies, audit, traffic)
            forwarding = ForwardService(
                listing, invoke, traffic, audit, lambda tenant, name: servers.get((tenant, name))
            )
            yield Desk(replica, tenant, shelf, servers, listing, forwarding, policies, traffic)
