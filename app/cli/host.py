"""Shared by commands on the host: the services without an HTTP server, and the caller they act as."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from app.assembly import Services, opened
from app.cli.terminal import fail, note
from app.core.access import COMMAND_LINE, DEFAULT_TENANT, SYSTEM_TENANT, Caller, Role
from app.core.errors import NotFoundError
from app.edge.logs import configure_logging
from app.services.access.bootstrap import bootstrap
from app.settings import Settings, load
from app.store import migrate

T = TypeVar("T")
ACTOR = COMMAND_LINE
"""Actor in the audit log; the host's own log knows which person ran the command."""


def caller_for(tenant: str) -> Caller:
    """Return the caller for work in ``tenant``, with all roles: access to the database needs no grant."""
    return Caller(tenant, ACTOR, frozenset(Role))


async def tenant_caller(host: Services, tenant: str) -> Caller:
    """Return the caller for work in ``tenant``, or raise NotFoundError where there is no such tenant."""
    await host.tenants.get(caller_for(SYSTEM_TENANT), tenant)
    return caller_for(tenant)


def on_host(work: Callable[[Services], Awaitable[T]], *, begins: bool = False) -> T:
    """Run ``work`` with the services of this host's settings, and say which database that is.

    ``begins``: the command makes sense on a new installation, whose key ring it may create. None creates a database:
    a mistyped address would pass for an empty one.
    """
    settings = load()
    configure_logging("error", settings.telemetry.log_format)
    name = settings.database.display_name
    _require_file(settings, name)
    note(f"sluice: on this host, {name}")
    _require_schema(settings, name)
    if not begins:
        _require_ring(settings)
    return asyncio.run(_worked(settings, work))


def ring_file() -> Path:
    """Return the file of the key ring, or end the command if the ring is not a file."""
    settings = load()
    if settings.keys.ring is not None:
        fail(
            "The key ring is in SLUICE_KEYS__RING, not in a file. Add a comma and 2:<base64 of 32 random bytes> there."
        )
    return settings.key_file


def _require_file(settings: Settings, name: str) -> None:
    """End the command where its database is a file that is not there."""
    file = settings.database.sqlite_file
    if file is not None and not file.is_file():
        fail(
            f"There is no {name}, and this command creates none: set SLUICE_DATABASE__URL to the database that the "
            "service uses, or make a new one with `sluice db upgrade`."
        )


def _require_schema(settings: Settings, name: str) -> None:
    """End the command where its database has another schema than this release's."""
    if not migrate.is_head(settings.database.owner_url):
        fail(f"The schema of {name} is not this release's: run `sluice db upgrade` first.")


def _require_ring(settings: Settings) -> None:
    """End the command where it would have to create the keys of what it is about to read."""
    if settings.keys.ring is None and not settings.key_file.is_file():
        fail(
            f"There is no key ring at {settings.key_file}, and this command creates none: set SLUICE_KEYS__FILE or "
            "SLUICE_KEYS__RING to the one that the service uses."
        )


async def _worked(settings: Settings, work: Callable[[Services], Awaitable[T]]) -> T:
    async with opened(settings) as services:
        try:
            await services.tenants.get(caller_for(SYSTEM_TENANT), DEFAULT_TENANT)
        except NotFoundError:
            # No service has started yet: create the tenants of every installation, but no key.
            await bootstrap(services.access, None, "production")
        return await work(services)
