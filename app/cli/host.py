"""Shared by commands on the host: the services without an HTTP server, and the caller they act as."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from app.assembly import Services, opened
from app.cli.terminal import fail
from app.core.access import COMMAND_LINE, DEFAULT_TENANT, SYSTEM_TENANT, Caller, Role
from app.core.errors import NotFoundError
from app.edge.observability import configure_logging
from app.services.access.bootstrap import bootstrap
from app.settings import Settings, load

T = TypeVar("T")
ACTOR = COMMAND_LINE
"""Actor in the audit log; the host's own log knows which person ran the command."""


def caller_for(tenant: str) -> Caller:
    """Return the caller for work in ``tenant``, with all roles: access to the database needs no grant."""
    return Caller(tenant, ACTOR, frozenset(Role))


def on_host(work: Callable[[Services], Awaitable[T]]) -> T:
    """Run ``work`` with the services of this host's settings."""
    settings = load()
    configure_logging("error", settings.telemetry.log_format)
    return asyncio.run(_worked(settings, work))


def ring_file() -> Path:
    """Return the file of the key ring, or end the command if the ring is not a file."""
    settings = load()
    if settings.keys.ring is not None:
        fail(
            "The key ring is in SLUICE_KEYS__RING, not in a file. Add a comma and 2:<base64 of 32 random bytes> there."
        )
    return settings.key_file


async def _worked(settings: Settings, work: Callable[[Services], Awaitable[T]]) -> T:
    async with opened(settings) as services:
        try:
            await services.tenants.get(caller_for(SYSTEM_TENANT), DEFAULT_TENANT)
        except NotFoundError:
            # No service has started yet: create the tenants of every installation, but no key.
            await bootstrap(services.access, None, "production")
        return await work(services)
