"""Services wired for a test as main wires them, on a database that is already migrated."""

import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from sqlalchemy import make_url, text

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.content.handles import Handle, Original
from app.core.contracts.middleware import VaultOptions
from app.engines.cipher import KeyKeeper, KeyRing
from app.services.access.access import AccessService
from app.services.access.credentials import Authenticator
from app.services.audit.audit import AuditService
from app.services.audit.canonical import event_code
from app.services.vault.erasure import ErasureSink
from app.services.vault.keyring import KeyringService
from app.services.vault.vault import VaultReceipt, VaultService, VaultWrite
from app.store.audit.writer import GroupWriter
from app.store.database import Database
from app.store.dialects import Patience, prepare_file
from app.store.migrate import upgrade
from app.store.vault.erasure_files import ErasureFile

PATIENT = Patience(connect_s=30, statement_s=30, pool_s=10)
"""For tests that are about something else: a busy machine may keep a database waiting for seconds."""
TEST_RING = KeyRing({1: bytes.fromhex("8f1c2e5ad0937b64c1e8f20a55d3b7964e0f8a2b6c9d1e37f4a5b08c7d6e9f12")}, 1)
"""The ring of every test, so that tests can share a database: its audit key hangs on one ring."""

ALL_ROLES = frozenset(Role)


def with_schema(url: str) -> str:
    """Return ``url``; where it names a file that is not there yet, copy one that is migrated and empty.

    For tests about something else than the first start: a copy takes a hundredth of the migrations' time.
    """
    parsed = make_url(url)
    file = Path(parsed.database or "")
    if parsed.get_backend_name() == "sqlite" and not file.exists():
        prepare_file(parsed)
        file.write_bytes(_empty_file())
    return url


@cache
def _empty_file() -> bytes:
    with tempfile.TemporaryDirectory(prefix="sluice-schema-") as folder:
        file = Path(folder) / "empty.db"
        upgrade(f"sqlite:///{file}")
        return file.read_bytes()


def caller_of(tenant: str, *roles: Role) -> Caller:
    """Return a caller of ``tenant``; without roles it has all of them."""
    return Caller(tenant, "0a1b2c3d", frozenset(roles) or ALL_ROLES)


@dataclass(frozen=True, slots=True)
class Vault:
    """A vault service with its parts, and the shortest way to use it."""

    service: VaultService
    database: Database
    writer: GroupWriter
    custodian: KeyKeeper
    audit: AuditService

    async def store(
        self,
        caller: Caller,
        scope: str | None,
        *values: str | tuple[str, str] | tuple[str, Original],
        options: VaultOptions | None = None,
        ttl_s: int | None = None,
        request_id: str | None = None,
        owner: str | None = None,
        above: int = 0,
    ) -> VaultReceipt:
        """Conceal ``values`` (label PERSON unless given) and record it."""
        originals = [_labelled(value) for value in values]

        def events(_receipt: VaultReceipt) -> Sequence[AuditEvent]:
            event = self.audit.new_event(caller, "middleware.invoke", OUTCOME_OK, None)
            return [event if request_id is None else with_request(event, request_id)]

        write = VaultWrite(
            scope, originals, options or VaultOptions(), events, ttl_s, owner=owner, above=above
        )
        return await self.service.commit(caller, write)

    async def texts(self, caller: Caller, scope: str, handles: Sequence[Handle]) -> list[str | None]:
        """Return the originals of ``handles`` in their order, None where there is none."""
        found = await self.service.read(caller, scope, handles)
        return [found[handle].text if handle in found else None for handle in handles]


def with_request(event: AuditEvent, request_id: str) -> AuditEvent:
    """Return ``event`` under the id of a request."""
    return replace(event, request_id=request_id)


def _labelled(value: str | tuple[str, str] | tuple[str, Original]) -> tuple[str, Original]:
    label, given = ("PERSON", value) if isinstance(value, str) else value
    return label, given if isinstance(given, Original) else Original(given)


def erasure_sink(file: Path | None) -> ErasureSink:
    """Return what notes erasures in a file; None: nowhere."""
    return ErasureSink(None if file is None else ErasureFile(file))


@asynccontextmanager
async def open_vault(
    database: Database,
    *,
    ring: KeyRing = TEST_RING,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sink: Path | None = None,
) -> AsyncIterator[Vault]:
    """Return a running vault on ``database``."""
    keys = await KeyringService(database, ring).start()
    custodian = KeyKeeper(ring)
    async with GroupWriter(database, custodian, partial(event_code, keys), now) as writer:
        audit = AuditService(database, writer, keys)
        service = VaultService(database, writer, custodian, audit, erasure_sink(sink), now=now)
        yield Vault(service, database, writer, custodian, audit)


def access_service(database: Database, audit: AuditService) -> AccessService:
    """Return what administers keys, with an authenticator of its own."""
    return AccessService(database, audit, Authenticator(database, audit))


def random_ring() -> KeyRing:
    """Return a ring of one new key."""
    return KeyRing({1: secrets.token_bytes(32)}, 1)


async def as_owner(database: Database, statement: str, **values: object) -> None:
    """Run a statement past roles and row-level security, as somebody with the database's password would."""
    async with database.connection(write=True) as tx:
        await tx.execute(text(statement), values)
        await tx.commit()
