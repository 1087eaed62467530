"""Refused credentials: counted as they come, and on record as sums, so that a flood of them is no flood of writes."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, NamedTuple

from app.core.access import SYSTEM_TENANT, Caller
from app.core.addresses import AddressClass, address_class, network_of
from app.core.audit import OUTCOME_REFUSED, AuditEvent
from app.core.errors import UnauthenticatedError
from app.core.tokens import TokenFault
from app.services.audit.audit import AuditService
from app.services.audit.export import moment_text

ACTION: Final = "access.authenticate"
MOST_SUMS: Final = 500
"""Sums that a process keeps between two records; what would be one more counts as of any network."""
_NOBODY: Final = Caller(SYSTEM_TENANT, "nobody", frozenset())

Reason = Literal["missing", "malformed", "unknown", "secret", "ended", "expired", "address"] | TokenFault
"""Why a credential was refused: none came, it is no key, its id is unknown, its secret is wrong, or the key is over.

Tokens have reasons of their own beside ``ended`` (the tenant is disabled or unknown) and ``address``."""


class Attempt(NamedTuple):
    """What attempts have in common that are one event; ``key`` is the id of the key that they name, if there is one."""

    tenant: str
    reason: Reason
    network: str | None
    address_class: AddressClass | None
    key: str | None


@dataclass(slots=True)
class _Sum:
    number: int
    first: datetime
    last: datetime


@dataclass(slots=True)
class RefusedCredentials:
    """The attempts of this process since the last record, never with what was presented."""

    _sums: dict[Attempt, _Sum] = field(default_factory=dict)

    def note(self, reason: Reason, address: str | None, moment: datetime, key: Caller | None = None) -> None:
        """Count an attempt from an IP address; ``key`` is whose key it names, if that is known."""
        tenant, key_id = (key.tenant, key.key_id) if key is not None else (SYSTEM_TENANT, None)
        attempt = Attempt(tenant, reason, network_of(address), address_class(address), key_id)
        if attempt not in self._sums and len(self._sums) >= MOST_SUMS:
            attempt = Attempt(SYSTEM_TENANT, reason, None, None, None)
        self._add(attempt, _Sum(1, moment, moment))

    async def record(self, audit: AuditService) -> None:
        """Put the sums on record, an event for each; where they cannot be stored, they are kept for the next time."""
        for tenant in sorted({attempt.tenant for attempt in self._sums}):
            own = {attempt: self._sums.pop(attempt) for attempt in [*self._sums] if attempt.tenant == tenant}
            try:
                await audit.record(*(_event(audit, attempt, counted) for attempt, counted in own.items()))
            except BaseException:
                for attempt, counted in own.items():
                    self._add(attempt, counted)
                raise

    def _add(self, attempt: Attempt, counted: _Sum) -> None:
        own = self._sums.setdefault(attempt, _Sum(0, counted.first, counted.last))
        own.number += counted.number
        own.first, own.last = min(own.first, counted.first), max(own.last, counted.last)


def _event(audit: AuditService, attempt: Attempt, counted: _Sum) -> AuditEvent:
    details = {
        "reason": attempt.reason,
        "first": moment_text(counted.first),
        "last": moment_text(counted.last),
    }
    named = {"network": attempt.network, "key": attempt.key}
    event = audit.new_event(
        *(_NOBODY, ACTION, OUTCOME_REFUSED, None),
        tenant=attempt.tenant,
        details=details | {name: value for name, value in named.items() if value is not None},
        counts={"attempts": counted.number},
        error_code=UnauthenticatedError.code,
    )
    return replace(event, address_class=attempt.address_class)
