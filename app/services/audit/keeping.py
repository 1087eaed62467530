"""Open what events keep sealed: with two roles and a reason, and never without a record."""

import hmac
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_FAILED, OUTCOME_OK, Kept
from app.core.errors import InternalError, NotFoundError
from app.core.offload import off_loop
from app.core.request import RequestInfo
from app.engines.cipher import SealBrokenError
from app.services.audit.audit import CONTENT, END_USER, AuditService, checked_reason
from app.services.audit.leaves import expected_mac
from app.store.audit.audit import RecordedEvent, find_event


class _Part(NamedTuple):
    """A part of what events keep: how its opening is called in the record, in messages, and what it is bound to."""

    action: str
    text: str
    bound: bytes

    def of(self, sealed: bytes | None) -> bytes | None:
        """Return the ciphertext of this part."""
        kept = Kept.of(sealed)
        return kept.end_user if self.bound == END_USER else kept.content


_CONTENT: Final = _Part("audit.content", "content", CONTENT)
_END_USER: Final = _Part("audit.end_user", "the name of an end user", END_USER)


@dataclass(frozen=True, slots=True)
class KeptContent:
    """Opens what events of the record keep."""

    audit: AuditService

    async def open(
        self, caller: Caller, event_id: UUID, reason: str, request: RequestInfo | None = None
    ) -> bytes:
        """Return the content that an event keeps sealed; needs both the roles auditor and restorer, and a reason.

        Nothing is opened that is not on record, with the reason.
        """
        return await self._opened(_CONTENT, caller, event_id, reason, request)

    async def end_user(
        self, caller: Caller, event_id: UUID, reason: str, request: RequestInfo | None = None
    ) -> str:
        """Return for whom the actor of an event asked; needs the same as content, and is on record likewise."""
        name = await self._opened(_END_USER, caller, event_id, reason, request)
        return name.decode("utf-8", "surrogatepass")

    async def _opened(
        self, part: _Part, caller: Caller, event_id: UUID, reason: str, request: RequestInfo | None
    ) -> bytes:
        audit, details = self.audit, {"event": str(event_id)}
        async with audit.refusals(caller, part.action, request, details=details):
            caller.require(Role.AUDITOR)
            caller.require(Role.RESTORER)
            details["reason"] = checked_reason(reason)
            async with audit.database.transaction(caller.tenant, write=False) as tx:
                stored = await find_event(tx, caller.tenant, event_id)
            sealed = part.of(stored.event.sealed) if stored is not None else None
            if stored is None or sealed is None:
                raise NotFoundError(f"There is no event with this id that keeps {part.text}.")
        opened = await self._open(part, caller.tenant, stored, sealed)
        if opened is None:
            error = InternalError(
                f"This event was not recorded with {part.text} as it is kept now, or its tenant is erased.",
                details=details,
            )
            failed = audit.new_event(
                caller, part.action, OUTCOME_FAILED, request, details=details, error_code=error.code
            )
            await audit.record(failed)
            raise error
        await audit.record(audit.new_event(caller, part.action, OUTCOME_OK, request, details=details))
        return opened

    async def _open(self, part: _Part, tenant: str, stored: RecordedEvent, sealed: bytes) -> bytes | None:
        """Return what is sealed, None where it cannot be opened or belongs to another event.

        The event's MAC shows whether it was moved here from another event of the tenant.
        """
        keys = self.audit.keys
        try:
            opened = await off_loop(len(sealed), partial(keys.open, own=True), tenant, part.bound, sealed)
        except SealBrokenError:
            return None
        return opened if hmac.compare_digest(expected_mac(keys, stored), stored.mac) else None
