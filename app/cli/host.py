"""What commands on the host share: the services without a server, and the caller they act as."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from app.cli.terminal import fail
from app.core.access import DEFAULT_TENANT, SYSTEM_TENANT, Caller, Role
from app.core.errors import NotFoundError
from app.engines.cipher import Custodian, KeyRing, KeyRingError
from app.services.access import AccessService
from app.services.audit import AuditService, event_mac
from app.services.bootstrap import bootstrap
from app.services.erasure import ErasureSink
from app.services.keyring import KeyringService
from app.services.tenants import TenantService
from app.services.vault import VaultService
from app.settings import Settings, load
from app.store import migrate
from app.store.database import Database
from app.store.writer import GroupWriter

T = TypeVar("T")
ACTOR = "cli"
"""The name of this caller in the record; a person on the host is known to the host's own log."""


@dataclass(frozen=True, slots=True)
class Host:
    """The services that commands call."""

    access: AccessService
    tenants: TenantService
    audit: AuditService
    vault: VaultService


def caller_for(tenant: str) -> Caller:
    """Return the caller for work in ``tenant``: who reaches the database and the keys needs no role from us."""
    return Caller(tenant, ACTOR, frozenset(Role))


def on_host(work: Callable[[Host], Awaitable[T]]) -> T:
    """Run ``work`` with the services of this host's settings."""
    settings = load()
    logging.getLogger("sluice").setLevel(logging.ERROR)
    try:
        _bring_forward(settings)
        return asyncio.run(_worked(settings, work))
    except KeyRingError as error:
        fail(str(error))


def ring_file() -> Path:
    """Return the file of the key ring, or end the command where the ring is no file."""
    settings = load()
    if settings.keys.ring is not None:
        fail(
            "The key ring is given in SLUICE_KEYS__RING: add 2:<base64 of 32 random bytes> there, after a comma."
        )
    return settings.key_file


def _bring_forward(settings: Settings) -> None:
    """Migrate an embedded database as the service would; refuse one whose schema is not the newest."""
    url = settings.database.url.get_secret_value()
    if settings.database.sqlite_file is not None and settings.database.migrate == "auto":
        migrate.upgrade(url)
    elif not migrate.is_head(url):
        fail("The database's schema is not the newest: run `sluice db upgrade` first.")


async def _worked(settings: Settings, work: Callable[[Host], Awaitable[T]]) -> T:
    async with _opened(settings) as host:
        return await work(host)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Host]:
    """Build the services without server, detector and background jobs."""
    ring = settings.keys.ring
    provider = KeyRing.parse(ring.get_secret_value()) if ring else KeyRing.create(settings.key_file)
    database = Database(settings.database.url.get_secret_value(), pool_size=2)
    try:
        keys = await KeyringService(database, provider).start()
        custodian = Custodian(provider)
        async with GroupWriter(database, custodian, partial(event_mac, keys)) as writer:
            audit = AuditService(database, writer, keys)
            access = AccessService(database, audit)
            host = Host(
                access,
                TenantService(access),
                audit,
                VaultService(
                    database,
                    writer,
                    custodian,
                    audit,
                    ErasureSink(settings.key_file.with_name("erasures.jsonl")),
                ),
            )
            await _first_tenants(host)
            yield host
    finally:
        await database.close()


async def _first_tenants(host: Host) -> None:
    """Make the tenants that every installation has, where no service has started yet."""
    try:
        await host.tenants.get(caller_for(SYSTEM_TENANT), DEFAULT_TENANT)
    except NotFoundError:
        await bootstrap(host.access, None, "production")
