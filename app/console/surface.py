"""Put the console together: its routers, and what the edge is told of it."""

from typing import Final

from fastapi import APIRouter

from app.console import doors, grants, identity, sign_in
from app.console.pages import (
    access,
    audit,
    catalogs,
    collections,
    conversations,
    gateway,
    identities,
    overview,
    pipelines,
    playground,
    policies,
    servers,
    subjects,
)
from app.console.rendering import refusal_page
from app.console.visits import SIGN_IN, session_of
from app.edge.surfaces import ForeignSurface

CONSOLE: Final = ForeignSurface(
    prefix="/console/",
    credential=session_of,
    page=refusal_page,
    open_paths=frozenset({SIGN_IN, identity.LOGOUT}),
)
"""Its credential is a session; the EdgeGuard is given it, and ``Served.gates`` who knows the sessions."""


def console_routers() -> tuple[APIRouter, ...]:
    """Return the routers of all pages; they rely on ``app.state.console_services``."""
    return (
        doors.router,
        sign_in.router,
        identity.router,
        overview.router,
        playground.router,
        conversations.router,
        audit.router,
        subjects.router,
        policies.router,
        pipelines.router,
        catalogs.router,
        servers.router,
        collections.router,
        gateway.router,
        access.router,
        identities.router,
        grants.router,
        doors.rest,
    )
