"""Put the REST surface together: routes, error handlers and the OpenAPI document."""

from typing import Final

from fastapi import FastAPI

from app.api import (
    access,
    audit,
    audit_log,
    collections,
    concerns,
    descriptions,
    gateway,
    groups,
    invoke,
    litellm,
    mappings,
    pii,
    pipelines,
    policies,
    providers,
    servers,
    stream,
    tenants,
    vault,
)
from app.api.errors import install_error_handlers
from app.api.openapi import document_of
from app.edge.health import Readiness, health_router
from app.edge.limits import DeclaredLimits
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
    audit.router,
    audit_log.router,
    access.router,
    tenants.router,
    pipelines.router,
    policies.router,
    groups.router,
    concerns.router,
    mappings.router,
    servers.router,
    providers.router,
    descriptions.router,
    collections.router,
    pipelines.runs,
    litellm.router,
)

SURFACES: Final = (*gateway.SURFACES, litellm.SURFACE)
"""Paths whose clients speak another API than ours; the EdgeGuard is given them."""


def install_rest(app: FastAPI, readiness: Readiness, metrics: Metrics | None) -> DeclaredLimits:
    """Add the whole REST surface to ``app``, before it starts: afterwards error handlers come too late.

    Wrap ``app`` in an EdgeGuard with the limits that are returned, on which the routes rely, and set
    ``app.state.route_services`` (RouteServices) before the first request. Without ``metrics`` there is no ``/metrics``.
    """
    install_error_handlers(app)
    for router in _ROUTERS:
        app.include_router(router)
    health = health_router(readiness, metrics)
    app.include_router(health)
    app.openapi = lambda: document_of(app)  # type: ignore[method-assign]
    routed = (route for router in (*_ROUTERS, health) for route in router.routes)
    return DeclaredLimits.of([*routed, *app.routes])
