"""What commands on the host share: the services without a server, and the caller they act as."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from app.assembly import Services, opened
from app.cli.terminal import fail
from app.core.access import DEFAULT_TENANT, SYSTEM_TENANT, Caller, Role
from app.core.errors import NotFoundError
from app.edge.observability import configure_logging
from app.services.access.bootstrap import bootstrap
from app.settings import Settings, load

T = TypeVar("T")
ACTOR = "cli"
"""The name of this caller in the record; a person on the host is known to the host's own log."""


def caller_for(tenant: str) -> Caller:
    """Return the caller for work in ``tenant``: who reaches the database and the keys needs no role from us."""
    return Caller(tenant, ACTOR, frozenset(Role))


def on_host(work: Callable[[Services], Awaitable[T]]) -> T:
    """Run ``work`` with the services of this host's settings."""
    settings = load()
    configure_logging("error", settings.telemetry.log_format)
    return asyncio.run(_worked(settings, work))


def ring_file() -> Path:
    """Return the file of the key ring, or end the command where the ring is no file."""
    settings = load()
    if settings.keys.ring is not None:
        fail(
            "The key ring is given in SLUICE_KEYS__RING: add 2:<base64 of 32 random bytes> there, after a comma."
        )
    return settings.key_file


async def _worked(settings: Settings, work: Callable[[Services], Awaitable[T]]) -> T:
    async with opened(settings) as services:
        try:
            await services.tenants.get(caller_for(SYSTEM_TENANT), DEFAULT_TENANT)
        except NotFoundError:
            # No service has started yet: make the tenants that every installation has, and no key.
            await bootstrap(services.access, None, "production")
        return await work(services)
