"""Put the REST surface together: routes, error handlers and the OpenAPI document."""

from collections.abc import Iterable, Mapping
from typing import Final

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from app.api.access import issuers, keys, policies, scim, tenants
from app.api.audit import audit, log
from app.api.auth import RouteServices
from app.api.catalog import clients, concerns, descriptions, groups, mappings
from app.api.documents import collections, search
from app.api.errors import install_error_handlers
from app.api.gateway import gateway, litellm, providers, use
from app.api.invoke import invoke, pii, pipelines, stream
from app.api.openapi import document_of
from app.api.servers import grants, servers
from app.api.vault import erasures, subjects, vault
from app.edge.health import Readiness, health_router
from app.edge.observability import Metrics

OPENAPI_PATH: Final = "/api/v1/openapi.json"
# Each request is compared with the routes in this order. Models are asked most often, so their doors come first; the
# stream route comes before the middlewares, since its path would otherwise be the name of one.
_ROUTERS: Final = (
    gateway.router,
    stream.router,
    invoke.router,
    pii.router,
    vault.router,
    subjects.router,
    erasures.router,
    audit.router,
    log.router,
    keys.router,
    tenants.router,
    issuers.router,
    pipelines.router,
    policies.router,
    groups.router,
    concerns.router,
    mappings.router,
    servers.router,
    grants.router,
    providers.router,
    use.router,
    clients.router,
    descriptions.router,
    search.router,
    collections.router,
    pipelines.runs,
    litellm.router,
    scim.router,
)

SURFACES: Final = (*gateway.SURFACES, litellm.SURFACE, scim.SURFACE)
"""Paths whose clients speak another API than ours; the EdgeGuard is given them."""


def rest_routers(readiness: Readiness, metrics: Metrics | None) -> tuple[APIRouter, ...]:
    """Return the routers of the whole REST surface; without ``metrics`` there is no ``/metrics``."""
    return *_ROUTERS, health_router(readiness, metrics)


def own_ways(
    services: RouteServices, general: ASGIApp, *, ordinary: bool
) -> tuple[ASGIApp | None, Mapping[str, ASGIApp]]:
    """Return what serves invocations (None unless ``ordinary``), and the doors of the gateway by their prefix.

    They look for no route; what they do not serve they leave to ``general``.
    """
    invoking = invoke.OrdinaryRoute(services, general) if ordinary else None
    return invoking, gateway.doors(services, general)


def install_rest(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """Add the REST surface to ``app``, before it starts: afterwards error handlers come too late.

    The routes rely on an EdgeGuard around ``app`` that holds the limits which they declare, and on
    ``app.state.route_services`` (RouteServices), to be set before the first request.
    """
    install_error_handlers(app)
    # Our routers have their whole paths. Included, each of their routes would be built a second time, by the first
    # request that is compared with it, and again for each application.
    for router in routers:
        app.router.routes.extend(router.routes)
    app.openapi = lambda: document_of(app)  # type: ignore[method-assign]
