"""Access, audit, policies and sessions wired as main wires them, on a clock that the test moves."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import event

from app.core.access import Caller, Role
from app.core.audit import AuditEvent
from app.engines.cipher import KeyKeeper, RecordKeys
from app.services.access.access import HOST, AccessService, NewKey
from app.services.access.credentials import Authenticator
from app.services.access.policies import ArgumentFault, PolicyService
from app.services.access.sessions import SessionService
from app.services.access.tenants import TenantService
from app.services.audit.audit import AuditQuery, AuditService
from app.services.audit.canonical import event_code
from app.services.caching import ShortMemory
from app.services.vault.keyring import KeyringService
from app.store.audit.writer import GroupWriter
from app.store.changes import Changes
from app.store.database import Database
from app.store.dialects import IDENTITY
from tests.factories import TEST_RING

AUDITOR = frozenset({Role.AUDITOR})


class Clock:
    """The time of day and the monotonic time, moved together."""

    def __init__(self) -> None:
        self.moment = datetime.now(UTC).replace(microsecond=123456)
        self.seconds = 0.0

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
        self.seconds += seconds


def known_arguments(name: str, arguments: Mapping[str, Any]) -> ArgumentFault | None:
    """Know one middleware, ``echo``, with one argument, ``mode``."""
    if name != "echo":
        return ArgumentFault("", "There is no middleware of that name.")
    unknown = sorted(set(arguments) - {"mode"})
    return ArgumentFault(f"/{unknown[0]}", "There is no such argument.") if unknown else None


@dataclass
class Replica:
    """One process of the service, as far as these tests need it."""

    database: Database
    clock: Clock
    keys: RecordKeys
    writer: GroupWriter
    audit: AuditService
    access: AccessService
    tenants: TenantService
    policies: PolicyService
    sessions: SessionService
    changes: Changes
    statements: list[str] = field(default_factory=list)

    async def key(self, tenant: str, *roles: Role, **options: Any) -> NewKey:
        """Make a key of ``tenant`` on the host."""
        return await self.access.create_key(HOST, roles or [Role.INVOKER], tenant=tenant, **options)

    async def caller(self, tenant: str, *roles: Role) -> Caller:
        """Return an authenticated caller of ``tenant``."""
        return await self.access.authenticator.authenticate(str((await self.key(tenant, *roles)).key), None)

    async def events(self, tenant: str, **asked: Any) -> list[AuditEvent]:
        """Return the record of ``tenant``, oldest first."""
        auditor = Caller(tenant, "ffffffff", AUDITOR)
        return list(reversed((await self.audit.query(auditor, AuditQuery(**asked), limit=1000)).items))


@asynccontextmanager
async def replica_on(
    database: Database, clock: Clock | None = None, *, hears: bool = True, follows: bool = False
) -> AsyncIterator[Replica]:
    """Run one process on ``database``; with ``hears=False`` it misses what others announce.

    With ``follows`` it keeps what it read while it hears everything, as the whole service does.
    """
    clock = clock or Clock()
    keys = await KeyringService(database, TEST_RING).start()
    changes = Changes(database)
    async with GroupWriter(database, KeyKeeper(TEST_RING), partial(event_code, keys)) as writer:
        audit = AuditService(database, writer, keys, clock.now)
        memory: ShortMemory[str, Any] = ShortMemory(ttl_s=5, size=1000, clock=clock.monotonic)
        policy_memory: ShortMemory[str, Any] = ShortMemory(ttl_s=5, size=1000, clock=clock.monotonic)
        authenticator = Authenticator(database, audit, now=clock.now, memory=memory)
        access = AccessService(database, audit, authenticator, clock.now)
        policies = PolicyService(
            database, audit, known_arguments, access.authority, clock.now, memory=policy_memory
        )
        sessions = SessionService(database, 3600, clock.now)
        replica = Replica(
            *(database, clock, keys, writer, audit, access, TenantService(access), policies, sessions),
            changes,
        )
        event.listen(
            database._engine.sync_engine,
            "before_cursor_execute",
            lambda *given: replica.statements.append(given[2]) if given[2] != IDENTITY else None,
        )
        if hears:
            changes.subscribe(authenticator.changed)
            changes.subscribe(policies.changed)
        if follows:
            memory.follow(changes.heard)
            policy_memory.follow(changes.heard)
        async with changes.running():
            yield replica
