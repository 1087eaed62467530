"""Who asks, under which conditions: what every route needs before it calls a service."""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.core.access import Caller
from app.core.contracts.policy import Limits
from app.core.errors import InvalidArgumentsError
from app.core.request import RequestInfo
from app.edge.facts import RequestFacts, facts_of
from app.services.access.access import AccessService
from app.services.access.credentials import Authenticator
from app.services.access.identity.issuers import IssuerService
from app.services.access.policies import PolicyService
from app.services.access.tenants import TenantService
from app.services.access.traffic import Traffic
from app.services.audit.audit import AuditService
from app.services.catalog.concerns import ConcernService
from app.services.catalog.descriptions import DescriptionService
from app.services.catalog.groups import GroupService
from app.services.documents.collections import CollectionService
from app.services.documents.ingestion import IngestionService
from app.services.documents.trials import SearchTrials
from app.services.gateway.doors import GatewayService
from app.services.gateway.providers import ProviderService
from app.services.invoke.explaining import ExplainService
from app.services.invoke.invoke import InvokeService
from app.services.invoke.pipelines import PipelineService
from app.services.previews.catalogs import ClientCatalogs
from app.services.servers.server_admin import ServerService
from app.services.servers.upstreams import UpstreamService
from app.services.servers.user_grants import UserGrants
from app.services.vault.tenant_erasure import TenantErasure
from app.services.vault.vault import VaultService

_BEARER = HTTPBearer(
    auto_error=False, description="An API key: `slc_<8 hex digits>_<43 characters of base64url>`."
)
OPEN_STREAMS = 1024


@dataclass(frozen=True, slots=True)
class RouteServices:
    """What the routes call.

    ``streams`` admits open streams, which mostly wait, apart from the requests that compute; ``requests`` counts
    those that are no invocation.
    """

    authenticator: Authenticator
    access: AccessService
    issuers: IssuerService
    tenants: TenantService
    tenant_erasure: TenantErasure
    invoke: InvokeService
    policies: PolicyService
    groups: GroupService
    concerns: ConcernService
    upstreams: UpstreamService
    servers: ServerService
    grants: UserGrants
    providers: ProviderService
    client_catalogs: ClientCatalogs
    gateway: GatewayService
    vault: VaultService
    audit: AuditService
    pipelines: PipelineService
    descriptions: DescriptionService
    collections: CollectionService
    ingestion: IngestionService
    trials: SearchTrials
    explaining: ExplainService
    streams: Traffic = field(default_factory=lambda: Traffic(slots=OPEN_STREAMS))
    requests: Traffic = field(default_factory=Traffic)


class _EdgeRequest(Request):
    """A request whose JSON was parsed at the edge, strictly and once."""

    async def json(self) -> Any:
        return facts_of(self.scope).json


class EdgeRoute(APIRoute):
    """A route that takes the JSON value from the edge instead of parsing the body again."""

    def get_route_handler(self) -> Any:
        """Return the handler, given the request in the edge's form."""
        handle = super().get_route_handler()

        async def with_edge(request: Request) -> Any:
            return await handle(_EdgeRequest(request.scope, request.receive))

        return with_edge


def services_of(request: Request) -> RouteServices:
    """Return what the application was built with."""
    return cast("RouteServices", request.app.state.route_services)


async def authenticated(
    request: Request, credential: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Caller:
    """Turn the bearer key into the caller, or refuse; where a body was read, the edge has done it already."""
    bearer = credential.credentials if credential is not None else None
    facts = facts_of(request.scope)
    return facts.caller or await admitted(services_of(request), facts, bearer)


async def admitted(services: RouteServices, facts: RequestFacts, key: str | None) -> Caller:
    """Return who presents ``key``, for the end user whom the request names, and note it in the request's record."""
    caller = await services.authenticator.authenticate(key, facts.address)
    caller = await services.authenticator.acting(caller, facts.end_users, facts.info(math.inf))
    facts.admit(caller)
    return caller


def info_of(request: Request) -> RequestInfo:
    """Return what records say of a request without a time limit of its own."""
    return facts_of(request.scope).info(math.inf)


async def _services(request: Request) -> RouteServices:
    return services_of(request)


async def _info(request: Request) -> RequestInfo:
    return info_of(request)


# Coroutines, because FastAPI runs plain functions in threads, which costs more than the rest of a request.
CallerDep = Annotated[Caller, Depends(authenticated)]
ServicesDep = Annotated[RouteServices, Depends(_services)]
InfoDep = Annotated[RequestInfo, Depends(_info)]


async def counted(caller: CallerDep, services: ServicesDep) -> None:
    """Hold a tenant to its rate where no invocation is asked for, which counts itself."""
    await services.requests.count(caller.tenant)


def new_router(prefix: str, tag: str, *, invokes: bool = False) -> APIRouter:
    """Return a router for one feature under ``/api/v1``; ``invokes``: its routes count their requests themselves."""
    return APIRouter(
        prefix=f"/api/v1{prefix}",
        tags=[tag],
        route_class=EdgeRoute,
        dependencies=[] if invokes else [Depends(counted)],
    )


async def limits_of(services: RouteServices, caller: Caller) -> Limits:
    """Return the limits that the caller's tenant has now."""
    _, policy = await services.policies.get(caller.tenant)
    return policy.limits


def json_object(request: Request, allowed: frozenset[str]) -> dict[str, Any]:
    """Return the JSON object of the body as the edge parsed it, with no member but the ``allowed``."""
    value = facts_of(request.scope).json
    if not isinstance(value, dict):
        raise InvalidArgumentsError("The body must be a JSON object.", details={"pointer": ""})
    if not allowed.issuperset(value):
        raise InvalidArgumentsError(
            f"The body has a member that this route does not take; it takes {', '.join(sorted(allowed))}.",
            details={"pointer": "", "allowed": sorted(allowed)},
        )
    return value
