"""Put the REST surface together: routes, error handlers and the OpenAPI document."""

from collections.abc import Iterable
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api import (
    access,
    audit,
    collections,
    concerns,
    descriptions,
    groups,
    invoke,
    litellm,
    mappings,
    pii,
    pipelines,
    policies,
    servers,
    stream,
    tenants,
    vault,
)
from app.api.errors import install_error_handlers
from app.edge.health import Readiness, health_router
from app.edge.limits import DeclaredLimits
from app.edge.observability import Metrics
from app.edge.problems import PROBLEM_TYPE, PROBLEMS

OPENAPI_PATH: Final = "/api/v1/openapi.json"
_METHODS: Final = ("get", "post", "put", "patch", "delete")
_PROBLEM: Final = {
    "type": "object",
    "description": "Problem details (RFC 9457); nothing of the request's content is repeated.",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string", "examples": ["urn:sluice:error:not_found"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "A sentence for people."},
        "code": {"enum": sorted(PROBLEMS), "description": "Stable, for programs."},
        "request_id": {"type": "string", "description": "Also in X-Request-Id and in the log."},
        "pointer": {"type": "string", "description": "JSON pointer to the fault."},
        "details": {"type": "object"},
    },
}

# The stream route comes first: its path would otherwise be a middleware's name.
_ROUTERS: Final = (
    stream.router,
    invoke.router,
    pii.router,
    vault.router,
    audit.router,
    access.router,
    tenants.router,
    pipelines.router,
    policies.router,
    groups.router,
    concerns.router,
    mappings.router,
    servers.router,
    descriptions.router,
    collections.router,
    pipelines.runs,
    litellm.router,
)

SURFACES: Final = (litellm.SURFACE,)
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
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    routed = (route for router in (*_ROUTERS, health) for route in router.routes)
    return DeclaredLimits.of([*routed, *app.routes])


def _document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, made once; every failure has the form of a problem document."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Problem"] = _PROBLEM
        for operation in _operations(document):
            responses = operation["responses"]
            responses.pop("422", None)
            responses["default"] = {
                "description": "Refused or failed.",
                "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }
        app.openapi_schema = document
    return app.openapi_schema


def _operations(document: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for path in document["paths"].values():
        yield from (path[method] for method in _METHODS if method in path)
