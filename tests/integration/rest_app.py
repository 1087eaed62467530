"""The REST surface on real services and a SQLite file, with the fake detector in the place of the model."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient, Response

import app.middlewares
from app.api.auth import RouteServices
from app.api.surface import OPENAPI_PATH, SURFACES, install_rest, rest_routers
from app.core.access import SYSTEM_TENANT, Role
from app.core.contracts.registry import Registry
from app.core.errors import ConflictError
from app.edge.guard import EdgeGuard
from app.edge.health import Readiness
from app.edge.lifespan_state import Drain, Served
from app.edge.limits import DeclaredLimits, EdgeLimits
from app.edge.observability import Metrics
from app.services.access.access import HOST
from app.services.access.policies import PolicyService, argument_check
from app.services.access.sessions import SessionService
from app.services.access.tenants import TenantService
from app.services.access.traffic import Traffic
from app.services.catalog.catalogs import CatalogService
from app.services.catalog.concerns import ConcernService
from app.services.catalog.descriptions import DescriptionService
from app.services.catalog.group_trees import GroupTrees
from app.services.catalog.groups import GroupService
from app.services.catalog.listing import ListingService
from app.services.documents.collections import CollectionService
from app.services.documents.ingestion import IngestionService
from app.services.documents.retrieval import RetrievalService
from app.services.documents.trials import SearchTrials
from app.services.gateway.doors import GatewayService
from app.services.gateway.providers import ProviderService
from app.services.invoke.explaining import ExplainService
from app.services.invoke.invoke import InvokeService
from app.services.invoke.pipelines import PipelineService
from app.services.previews.catalogs import ClientCatalogs
from app.services.servers.grant_starts import GrantStarts
from app.services.servers.server_admin import ServerService
from app.services.servers.upstream_tokens import UpstreamTokens
from app.services.servers.upstreams import UpstreamService
from app.services.servers.user_grants import UserGrants
from app.services.vault.tenant_erasure import TenantErasure
from app.store.database import Database
from app.upstream.grants import GrantClient
from app.upstream.issuers import IssuerClient
from app.upstream.providers.client import ProviderClient
from tests.factories import PATIENT, Vault, access_service, open_vault
from tests.fakes import FakeDetector, FakeEmbedder, FakeMasker, engines


@dataclass(frozen=True)
class Rest:
    """The surface, a tenant of its own and a client that is the tenant's only user."""

    guard: EdgeGuard
    app: FastAPI
    services: RouteServices
    vault: Vault
    http: AsyncClient
    tenant: str
    keys: dict[str, str] = field(default_factory=dict)

    async def key(self, *roles: Role | str, tenant: str | None = None) -> str:
        """Return a key that holds ``roles`` (none: all of them)."""
        target = tenant or self.tenant
        name = f"{target} {' '.join(sorted(roles))}"
        if name not in self.keys:
            granted = list(roles) or list(Role)
            made = await self.services.access.create_key(HOST, granted, tenant=target, override_unions=True)
            self.keys[name] = str(made.key)
        return self.keys[name]

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        roles: Iterable[Role | str] = (),
        tenant: str | None = None,
        headers: dict[str, str] | None = None,
        **options: Any,
    ) -> Response:
        """Send a request under a key with ``roles``."""
        key = await self.key(*roles, tenant=tenant)
        sent = {"authorization": f"Bearer {key}", **(headers or {})}
        if body is not None:
            options["json"] = body
        return await self.http.request(method, path, headers=sent, **options)

    async def put_policy(self, policy: Any, *, roles: Iterable[Role | str] = ()) -> Response:
        """Replace the tenant's policy, whichever version holds."""
        version, _ = await self.services.policies.get(self.tenant)
        path = f"/api/v1/policies?expected_version={version}"
        return await self.call("PUT", path, policy, roles=roles)

    async def invoke(
        self, name: str, context: Any, arguments: Any = None, *, roles: Iterable[Role | str] = ()
    ) -> Response:
        """Invoke a middleware."""
        body = {"context": context} if arguments is None else {"arguments": arguments, "context": context}
        return await self.call("POST", f"/api/v1/middleware/{name}/invoke", body, roles=roles)


_DOCUMENT: dict[str, Any] = {}


def document_of(rest: Rest) -> dict[str, Any]:
    """Return the OpenAPI document, which all these applications share: it takes half a second to make."""
    if not _DOCUMENT:
        _DOCUMENT.update(rest.app.openapi())
    return _DOCUMENT


@asynccontextmanager
async def open_rest(database_url: str, sink: Path | None = None, **limits: Any) -> AsyncIterator[Rest]:
    """Return the surface on a migrated database; erasures are noted in the file ``sink``."""
    database = Database(database_url, patience=PATIENT)
    async with open_vault(database, sink=sink) as vault:
        drain, metrics = Drain(), Metrics()
        services = _services(database, vault, metrics)
        app_ = FastAPI(title="Sluice", version="0", openapi_url=OPENAPI_PATH)
        routers = rest_routers(Readiness(drain, {"database": database.ping}), metrics)
        routed = [route for router in routers for route in router.routes]
        install_rest(app_, routers)
        declared = DeclaredLimits.of([*routed, *app_.routes])
        app_.state.route_services = services
        served = Served(services.authenticator)
        guard = EdgeGuard(app_, EdgeLimits(**limits), declared, served, drain, metrics, surfaces=SURFACES)
        tenant = f"t-{uuid4().hex[:12]}"
        await services.tenants.create(HOST, tenant)
        with suppress(ConflictError):  # the first test of this database makes it
            await services.tenants.create(HOST, SYSTEM_TENANT)
        transport = ASGITransport(guard, client=("127.0.0.1", 4711))
        async with AsyncClient(transport=transport, base_url="http://localhost:8000") as http:
            yield Rest(guard, app_, services, vault, http, tenant)
        await services.providers.client.aclose()
    await database.close()


def _services(database: Database, vault: Vault, metrics: Metrics) -> RouteServices:
    retriever = RetrievalService(database, FakeEmbedder())
    registry = Registry.discover(app.middlewares, engines(retriever=retriever))
    access = access_service(database, vault.audit)
    policies = PolicyService(database, vault.audit, argument_check(registry), access.authority)
    upstreams = UpstreamService(database, vault.audit)
    tokens = UpstreamTokens(GrantClient(IssuerClient()))
    starts = GrantStarts(tokens.source, SessionService(database), vault.audit.keys, None)
    pipelines = PipelineService(database, vault.audit, registry.middlewares, argument_check(registry))
    invoke = InvokeService(
        *(registry, policies, vault.service, vault.audit, FakeMasker(), Traffic()),
        metrics.invocation,
        pipelines=pipelines,
    )
    providers = ProviderService(database, vault.audit, ProviderClient(), ("127.0.0.0/8",))
    trees, concerns = GroupTrees(database), ConcernService(database, vault.audit, policies)
    descriptions = DescriptionService(database, vault.audit)
    catalogs = CatalogService(upstreams, trees, concerns, descriptions, tuple(registry.middlewares))
    listing = ListingService(catalogs, policies, vault.audit, Traffic())
    return RouteServices(
        authenticator=access.authenticator,
        access=access,
        tenants=TenantService(access),
        tenant_erasure=TenantErasure(TenantService(access), vault.service.sink),
        invoke=invoke,
        pipelines=pipelines,
        policies=policies,
        groups=GroupService(database, vault.audit, trees, registry.middlewares),
        concerns=concerns,
        upstreams=upstreams,
        servers=ServerService(database, vault.audit, upstreams),
        grants=UserGrants(database, vault.audit, tokens, starts),
        providers=providers,
        gateway=GatewayService.over(invoke, providers, vault.service.now, subscribe=lambda _hear: None),
        vault=vault.service,
        audit=vault.audit,
        descriptions=descriptions,
        client_catalogs=ClientCatalogs(access, listing, concerns),
        collections=CollectionService(database, vault.audit),
        ingestion=IngestionService(database, vault.audit, FakeEmbedder()),
        trials=SearchTrials(retriever, access.authenticator, vault.audit),
        explaining=ExplainService(registry, policies, vault.audit, Traffic(), FakeDetector()),
    )
