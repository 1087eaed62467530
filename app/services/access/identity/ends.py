"""Identities that have ended: what an issuer gave somebody before they signed out counts no more."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from app.core.access import SYSTEM_TENANT
from app.core.events import Changed
from app.services.audit.audit import AuditService
from app.store.access.identity_marks import add_spent, set_ended
from app.store.audit.audit import Transaction
from app.store.changes import announce

IDENTITY_ENDED: Final = "identity"
"""The kind of ``Changed`` when an identity ended; its name is one of ``marks_of``."""
_SUBJECT, _SESSION, _ONCE = b"subject of an issuer\0", b"session of an issuer\0", b"once\0"


@dataclass(frozen=True, slots=True)
class IdentityEnds:
    """Notes who has ended, for every tenant at once: which tenant a subject belongs to is a matter of rules."""

    audit: AuditService

    async def marks_of(self, issuer: str, claims: Mapping[str, Any]) -> frozenset[str]:
        """Return the keyed digests under which the subject and the session of these claims would have ended."""
        await self.audit.keys.ready(SYSTEM_TENANT)
        named = {_SUBJECT: claims.get("sub"), _SESSION: claims.get("sid")}
        return frozenset(
            self._digest(kind, issuer, name) for kind, name in named.items() if isinstance(name, str)
        )

    async def spend(self, tx: Transaction, issuer: str, name: str, ends: float) -> bool:
        """Return whether ``name`` of an issuer is used for the first time; it is remembered until ``ends``."""
        await self.audit.keys.ready(SYSTEM_TENANT)
        return await add_spent(tx, self._digest(_ONCE, issuer, name), ends, _moment(ends))

    async def end(self, tx: Transaction, marks: Collection[str], at: float, ends: float) -> None:
        """Let what was issued under ``marks`` until ``at`` count no more; everybody is told with the commit.

        ``ends`` is when nothing issued before can count any more. Both are in seconds since 1970.
        """
        for mark in sorted(marks):
            await set_ended(tx, mark, at, _moment(ends))
            await announce(tx, Changed(IDENTITY_ENDED, None, mark))

    def _digest(self, kind: bytes, issuer: str, name: str) -> str:
        named = kind + issuer.encode() + b"\0" + name.encode("utf-8", "surrogatepass")
        return self.audit.digest(SYSTEM_TENANT, named)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
