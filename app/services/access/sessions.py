"""Sessions of handshake clients: each is a row in the database, so that any replica can serve any request."""

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from app.core.access import Caller
from app.core.errors import NotFoundError
from app.core.events import Changed
from app.services.caching import ShortMemory
from app.store.access.sessions import (
    StoredSession,
    add_session,
    find_session,
    remove_idle_sessions,
    remove_session,
    update_session_data,
    update_session_seen,
)
from app.store.changes import announce
from app.store.database import Database

SESSION_CHANGED = "session"
"""The kind of ``Changed`` when the lists of one session changed; its name is the session's ``session_key``."""

DEFAULT_IDLE_S = 3600.0
SESSION_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""The form of every session's id: `_ID_BYTES` random bytes in URL-safe base64."""

_ID_BYTES = 32
_TOUCH_S = 60.0
_PURGE_BATCH = 500
_CACHED_SESSIONS = 4096
_CACHED_S = 300.0


@dataclass(frozen=True, slots=True)
class Session:
    """A live session of the caller; ``preferences`` are the values stored in it."""

    id: str = field(repr=False)
    revision: str
    preferences: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SessionService:
    """Begins, finds and ends sessions; a session belongs to one tenant and one key.

    On SQLite, which serves one process, sessions are also cached in memory; on PostgreSQL every request reads
    its row, so that changes by another replica apply at once.
    """

    database: Database
    idle_s: float = DEFAULT_IDLE_S
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    memory: ShortMemory[tuple[str, str], StoredSession] = field(
        default_factory=lambda: ShortMemory(ttl_s=_CACHED_S, size=_CACHED_SESSIONS)
    )

    async def start(
        self, caller: Caller, revision: str, preferences: Mapping[str, Any] | None = None
    ) -> Session:
        """Begin a session; its id has 256 random bits, and only a digest of it is stored."""
        session_id = secrets.token_urlsafe(_ID_BYTES)
        moment = self.now()
        stored = StoredSession(
            tenant=caller.tenant,
            id=session_key(session_id),
            principal=caller.key_id,
            revision=revision,
            data=dict(preferences or {}),
            created=moment,
            last_seen=moment,
        )
        async with self.database.transaction(caller.tenant) as tx:
            await add_session(tx, stored)
        return _session(session_id, stored)

    async def resume(self, caller: Caller, session_id: str) -> Session:
        """Return the caller's session and note its use, at most once a minute.

        An id that is unknown, expired or another caller's raises the same NotFoundError.
        """
        digest = session_key(session_id)
        stored = await self._live(caller, digest)
        moment = self.now()
        if (moment - stored.last_seen).total_seconds() >= min(_TOUCH_S, self.idle_s / 4):
            async with self.database.transaction(caller.tenant) as tx:
                alive = await update_session_seen(tx, caller.tenant, digest, moment)
            self.memory.forget((caller.tenant, digest))
            if not alive:
                raise _no_session()
        return _session(session_id, stored)

    async def look(self, caller: Caller, session_id: str) -> Session:
        """Return the caller's session as ``resume`` does, without counting as a use of it."""
        return _session(session_id, await self._live(caller, session_key(session_id)))

    async def remember(self, caller: Caller, session_id: str, preferences: Mapping[str, Any]) -> Session:
        """Merge ``preferences`` into the session, safely beside concurrent changes; None removes a name."""
        return await self.revise(caller, session_id, lambda stored: {**stored, **preferences})

    async def revise(
        self,
        caller: Caller,
        session_id: str,
        change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        *,
        publish: bool = False,
    ) -> Session:
        """Replace the session's preferences by the result of ``change``; concurrent changes run one after the other.

        A name whose value is None is removed. ``publish`` announces SESSION_CHANGED to every process.
        """
        digest = session_key(session_id)
        async with self.database.transaction(caller.tenant) as tx:
            stored = self._checked(caller, await find_session(tx, caller.tenant, digest, lock=True))
            data = {name: value for name, value in change(stored.data).items() if value is not None}
            await update_session_data(tx, caller.tenant, digest, data, self.now())
            if publish:
                await announce(tx, Changed(SESSION_CHANGED, caller.tenant, digest))
        self.memory.forget((caller.tenant, digest))
        return _session(session_id, replace(stored, data=data))

    async def end(self, caller: Caller, session_id: str) -> None:
        """Remove the caller's session, or raise NotFoundError."""
        digest = session_key(session_id)
        async with self.database.transaction(caller.tenant) as tx:
            self._checked(caller, await find_session(tx, caller.tenant, digest, lock=True))
            await remove_session(tx, caller.tenant, digest)
        self.memory.forget((caller.tenant, digest))

    async def purge_idle(self) -> int:
        """Remove the sessions of all tenants that were not used for ``idle_s``; return how many."""
        before = self.now() - timedelta(seconds=self.idle_s)
        total = 0
        while True:
            async with self.database.system_transaction() as tx:
                removed = await remove_idle_sessions(tx, before, limit=_PURGE_BATCH)
            total += removed
            if removed < _PURGE_BATCH:
                return total

    async def _live(self, caller: Caller, digest: str) -> StoredSession:
        return self._checked(caller, await self._find((caller.tenant, digest)))

    async def _find(self, name: tuple[str, str]) -> StoredSession | None:
        return await (self.memory.get(name, self._load) if self.database.embedded else self._load(name))

    async def _load(self, name: tuple[str, str]) -> StoredSession | None:
        tenant, digest = name
        async with self.database.transaction(tenant, write=False) as tx:
            return await find_session(tx, tenant, digest)

    def _checked(self, caller: Caller, stored: StoredSession | None) -> StoredSession:
        if stored is None or stored.tenant != caller.tenant or stored.principal != caller.key_id:
            raise _no_session()
        if (self.now() - stored.last_seen).total_seconds() >= self.idle_s:
            raise _no_session()
        return stored


def session_key(session_id: str) -> str:
    """Return the digest under which a session is stored and announced; it cannot be used as the session's id."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


def _session(session_id: str, stored: StoredSession) -> Session:
    return Session(session_id, stored.revision, MappingProxyType(dict(stored.data)))


def _no_session() -> NotFoundError:
    return NotFoundError("There is no such session; it may have ended.")
