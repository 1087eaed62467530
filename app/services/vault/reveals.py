"""Show one original to somebody who says why: the reason is on record before the original is handed out."""

from dataclasses import dataclass
from typing import Final

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.content.handles import Handle
from app.core.errors import ForbiddenError, NotFoundError
from app.core.request import RequestInfo
from app.services.audit.audit import checked_reason
from app.services.vault.vault import VaultService, check_scope

REVEAL: Final = "vault.reveal"


@dataclass(frozen=True, slots=True)
class RevealService:
    """Reveals single originals of the caller's own tenant, each with a reason."""

    vault: VaultService

    async def reveal(
        self, caller: Caller, scope: str, handle: Handle, reason: str, request: RequestInfo | None = None
    ) -> str:
        """Return the original behind a handle; needs the role restorer and a reason, which is on record.

        Raises NotFoundError for a handle that the scope does not have, or no longer, and for a scope that belongs to
        another caller; ForbiddenError where the tenant's policy withholds it.
        """
        audit = self.vault.audit
        reference = audit.scope_ref(caller.tenant, scope)
        details = {"handle": Handle(handle.label, handle.ordinal).name}
        async with audit.refusals(caller, REVEAL, request, scope_ref=reference, details=details):
            caller.require(Role.RESTORER)
            details["reason"] = checked_reason(reason)
            if not await self.vault.readable(caller, [handle]):
                raise ForbiddenError("The policy of this tenant does not restore secrets for this key.")
            originals = await self.vault.read(caller, check_scope(scope), [handle])
            if handle not in originals:
                raise NotFoundError("This scope has no such handle.")
        event = audit.new_event(
            caller,
            REVEAL,
            OUTCOME_OK,
            request,
            scope_ref=reference,
            counts={handle.label: 1},
            details=details,
        )
        await audit.record(event)
        return originals[handle].text
