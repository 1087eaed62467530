"""What administrators and auditors do with the audit log: verify it, show and renew its keys; each is on record."""

import base64
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from app.core.access import SYSTEM_TENANT, Caller, Role
from app.core.audit import OUTCOME_FAILED, OUTCOME_OK
from app.core.errors import (
    ForbiddenError,
    InternalError,
    InvalidArgumentsError,
    NotFoundError,
    OverloadedError,
)
from app.core.request import RequestInfo
from app.core.transparency.notes import Checkpoint, Note, VerifierKey
from app.core.transparency.tiles import consistency_proof, wanted
from app.services.audit.audit import AuditService
from app.services.audit.findings import Verification
from app.services.audit.log_keys import LogKeyService
from app.services.audit.proofs import Proofs
from app.services.audit.verification import LogVerifier
from app.store.audit.log import HEADS, SignedCheckpoint, list_heads, list_tiles, newest_checkpoint

MOST_EVENTS: Final = 100_000
"""Events of a tenant and entries of the log of heads that are verified while somebody waits."""
FEW_EVENTS: Final = 1_000
"""Up to as many are compared in this process, in less than a tenth of a second; more in others, beside its requests."""
_PROCESSES: Final = 2


@dataclass(frozen=True, slots=True)
class AuditLogService:
    """The log over a record. Auditors see their own tenant's; those of the tenant ``system`` see all."""

    audit: AuditService

    async def verify(
        self,
        caller: Caller,
        tenant: str | None,
        request: RequestInfo | None = None,
        *,
        since: datetime | None = None,
        anchors: Sequence[str] = (),
        trusted: Sequence[VerifierKey] | None = None,
        processes: int | None = None,
    ) -> Verification:
        """Verify the log of a tenant, or all of them (None); see `LogVerifier`."""
        async with self.audit.refusals(caller, "audit.verify", request):
            caller.require(Role.AUDITOR)
            if caller.tenant not in {tenant, SYSTEM_TENANT}:
                raise ForbiddenError("Only auditors of the tenant system verify the logs of others.")
            verifier = LogVerifier(self.audit, trusted, processes)
            result = await verifier.verify(tenant, since=since, anchors=anchors)
        details = {
            "verified": tenant or "*",
            "events": result.events,
            "checkpoints": result.checkpoints,
            "anchors": result.anchors,
            "findings": len(result.findings),
        }
        outcome = OUTCOME_OK if result.holds else OUTCOME_FAILED
        await self.audit.record(
            self.audit.new_event(caller, "audit.verify", outcome, request, details=details)
        )
        return result

    async def verify_now(self, caller: Caller, request: RequestInfo | None = None) -> Verification:
        """Verify the log of the caller's own tenant while they wait, one at a time in a process.

        Raises OverloadedError while another one is verified, InvalidArgumentsError for a record that is too large,
        NotFoundError for a tenant without a log.
        """
        turn = self.audit.verifying
        async with self.audit.refusals(caller, "audit.verify", request):
            caller.require(Role.AUDITOR)
            if turn.locked():
                raise OverloadedError("This process verifies a log now; try again shortly.", retry_after_s=5)
            async with self.audit.database.system_transaction(write=False) as tx:
                heads = await list_heads(tx, [caller.tenant, HEADS])
            events, entries = (heads[log].size if log in heads else 0 for log in (caller.tenant, HEADS))
            if events + entries > MOST_EVENTS:
                raise InvalidArgumentsError(
                    f"The record has {events} events, and the log of heads {entries} entries. More than {MOST_EVENTS} "
                    f"are verified on the host: sluice audit verify --tenant {caller.tenant}",
                    details={"maximum": MOST_EVENTS},
                )
        async with turn:
            processes = 1 if events <= FEW_EVENTS else _PROCESSES
            return await self.verify(caller, caller.tenant, request, processes=processes)

    async def checkpoint(self, caller: Caller, request: RequestInfo | None = None) -> SignedCheckpoint:
        """Return the newest signed checkpoint, which holds no name and no content; NotFoundError before the first."""
        async with self.audit.refusals(caller, "audit.checkpoint", request):
            caller.require(Role.AUDITOR)
            async with self.audit.database.transaction(caller.tenant, write=False) as tx:
                checkpoint = await newest_checkpoint(tx)
            if checkpoint is None:
                raise NotFoundError("Nothing is sealed yet: a running service seals within ten seconds.")
        return checkpoint

    async def growth(self, caller: Caller, old: int, request: RequestInfo | None = None) -> str:
        """Return the newest checkpoint with the proof that its log continues the one of ``old`` entries.

        As text, as C2SP's tlog-witness has it: the old size, the hashes, an empty line, the checkpoint. Raises
        InvalidArgumentsError where the log never had as many entries, NotFoundError before the first checkpoint.
        """
        newest = await self.checkpoint(caller, request)
        size = Checkpoint.parse(Note.parse(newest.note).text).size
        if not 1 <= old <= size:
            raise InvalidArgumentsError(
                f"The log has {size} entries: one of {old} does not grow into it, unless it was set back or cut off.",
                details={"pointer": "/old", "maximum": size},
            )
        prove = partial(consistency_proof, old, size)
        async with self.audit.database.transaction(caller.tenant, write=False) as tx:
            tiles = (await list_tiles(tx, [(HEADS, place) for place in wanted(prove)])).get(HEADS, {})
        try:
            lines = [base64.b64encode(sibling).decode() for sibling in prove(tiles)]
        except LookupError:
            raise InternalError("Tiles of the log are missing: run sluice audit verify.") from None
        return "\n".join([f"old {old}", *lines, "", newest.note])

    async def prove(
        self,
        caller: Caller,
        tenant: str,
        events: Collection[UUID] | None = None,
        request: RequestInfo | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncIterator[bytes]:
        """Return the lines of a file that proves events of a tenant, or all of them; see `Proofs`."""
        async with self.audit.refusals(caller, "audit.prove", request):
            caller.require(Role.AUDITOR)
            if caller.tenant not in {tenant, SYSTEM_TENANT}:
                raise ForbiddenError("Only auditors of the tenant system prove events of others.")
            proofs = await Proofs.of(self.audit, tenant)
            chosen = await proofs.leaves_of(events) if events is not None else None
        details = {"events": len(events) if events is not None else proofs.entry.size}
        event = self.audit.new_event(
            caller, "audit.prove", OUTCOME_OK, request, tenant=tenant, details=details
        )
        await self.audit.record(event)
        return proofs.lines(chosen, since=since, until=until)

    async def keys(
        self, caller: Caller, request: RequestInfo | None = None
    ) -> Sequence[tuple[VerifierKey, datetime]]:
        """Return the public keys that ever signed checkpoints, oldest first, and when each was made."""
        async with self.audit.refusals(caller, "audit.keys", request):
            caller.require(Role.AUDITOR)
        return await LogKeyService.over(self.audit).public()

    async def renew_key(self, caller: Caller, request: RequestInfo | None = None) -> VerifierKey:
        """Make a new signing key; the checkpoints before it still verify with the earlier ones."""
        async with self.audit.refusals(caller, "audit.renew_key", request):
            caller.require(Role.KEY_CUSTODIAN)
            if caller.tenant != SYSTEM_TENANT:
                raise ForbiddenError("Only key custodians of the tenant system renew the log's key.")
            key = await LogKeyService.over(self.audit).renew()
        details = {"key": str(key)}
        await self.audit.record(
            self.audit.new_event(caller, "audit.renew_key", OUTCOME_OK, request, details=details)
        )
        return key
