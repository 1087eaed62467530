"""Open what events keep sealed: with two roles and a reason, and never without a record."""

import hmac
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_FAILED, OUTCOME_OK
from app.core.errors import InternalError, NotFoundError
from app.core.offload import off_loop
from app.core.request import RequestInfo
from app.engines.cipher import SealBrokenError
from app.services.audit.audit import CONTENT, AuditService, checked_reason
from app.services.audit.leaves import expected_mac
from app.store.audit.audit import find_event

_OPEN: Final = "audit.content"


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
        audit, details = self.audit, {"event": str(event_id)}
        async with audit.refusals(caller, _OPEN, request, details=details):
            caller.require(Role.AUDITOR)
            caller.require(Role.RESTORER)
            details["reason"] = checked_reason(reason)
            async with audit.database.transaction(caller.tenant, write=False) as tx:
                stored = await find_event(tx, caller.tenant, event_id)
            if stored is None or stored.event.sealed is None:
                raise NotFoundError("There is no event with this id that keeps content.")
        sealed = stored.event.sealed
        content: bytes | None
        try:
            content = await off_loop(
                len(sealed), partial(audit.keys.open, own=True), caller.tenant, CONTENT, sealed
            )
        except SealBrokenError:
            content = None
        # The event's MAC shows whether the content was moved here from another event of the tenant.
        if content is None or not hmac.compare_digest(expected_mac(audit.keys, stored), stored.mac):
            error = InternalError(
                "The kept content is not the content that this event was recorded with, or its tenant is erased.",
                details=details,
            )
            failed = audit.new_event(
                caller, _OPEN, OUTCOME_FAILED, request, details=details, error_code=error.code
            )
            await audit.record(failed)
            raise error
        await audit.record(audit.new_event(caller, _OPEN, OUTCOME_OK, request, details=details))
        return content
