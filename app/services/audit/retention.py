"""Delete events of the record when their tenant's retention is over, so that what is left still verifies.

First an event states which positions of the tenant's log are deleted, those of earlier times included. Once that
statement is sealed and signed, the events go in batches, each a short transaction. The log's tiles, heads and
checkpoints stay: who verifies finds the statement, and calls what it names pruned and all else missing.
"""

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from app.core.access import HOST_ACTOR, SYSTEM_TENANT, Caller
from app.core.archive import ArchiveError, EventArchive
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.contracts.policy import RetentionPolicy
from app.core.transparency.hashing import HASH_BYTES, leaf_hash
from app.core.transparency.runs import PositionRuns, Run
from app.core.transparency.tiles import TILE_WIDTH, TilePlace
from app.services.audit.audit import AuditService
from app.services.audit.leaves import expected_mac, leaf_of
from app.store.audit.audit import Transaction
from app.store.audit.log import list_leaves, list_tiles
from app.store.audit.retention import (
    PRUNED,
    PURGE,
    Statement,
    aged_size,
    list_positions,
    list_retentions,
    list_statements,
    purge_events,
    signed_size,
)
from app.store.database import Database

STATED: Final = 50_000
"""Events that one statement adds at most; the next one follows when these are deleted."""
BATCH: Final = 500
"""Events deleted in one transaction, during which SQLite's other writers wait."""
_BATCHES: Final = 200
"""Batches of one tenant in one run: others get their turn."""
_PAUSE_S: Final = 0.01
_RUNS: Final = 1000
"""Runs in one statement, whose text stays below 40 KB; small ones between held events wait, or stay."""
_EVERY: Final = timedelta(hours=20)
"""Statements follow each other about daily, unless there is more to state than fits into one."""
_ROUNDS: Final = 40
"""Statements that one run makes of a tenant at most: they name two million events."""
_SEALED_S: Final = 10.0
"""Within this time a statement is sealed, as a rule."""
_LOOKED_AT: Final = 1000
_FULL: Final = "full"
_BEFORE: Final = "before"
_LEAST: Final = timedelta(days=1)
"""No policy keeps events for less."""
_HOST: Final = Caller(SYSTEM_TENANT, HOST_ACTOR, frozenset())

log = logging.getLogger("sluice.audit")


class PurgedRecord(NamedTuple):
    """What one run did for a tenant: events deleted, and positions that a new statement names.

    ``more``: the statement had no room for all that is due. ``waits``: there is an archive, and it does not have all
    that is due.
    """

    tenant: str
    deleted: int
    stated: int
    more: bool = False
    waits: bool = False


@dataclass(slots=True)
class RetentionService:
    """Deletes what tenants' policies do not keep; one process at a time (``Background`` sees to that).

    ``deleted`` counts the events that this process has deleted. Where there is an archive, nothing is stated or deleted
    that it does not have.
    """

    audit: AuditService
    now: Callable[[], datetime]
    deleted: int = 0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    archive: EventArchive | None = None

    @classmethod
    def over(cls, audit: AuditService) -> "RetentionService":
        """Return what deletes from a record."""
        return cls(audit, audit.now)

    async def run(self) -> None:
        """Purge, and again once the statement is sealed, as long as more is due than it had room for."""
        for _ in range(_ROUNDS):
            if not any(record.more for record in await self.purge()):
                break
            await self.sleep(_SEALED_S)

    async def purge(self, tenant: str | None = None) -> list[PurgedRecord]:
        """Delete what sealed statements name and state what is due now, for all tenants or one.

        It may be interrupted and run again at any time.
        """
        async with self.audit.database.system_transaction(write=False) as tx:
            retentions = await list_retentions(tx)
        results = []
        for name, member in retentions:
            policy = RetentionPolicy.model_validate(member)
            if tenant in {None, name} and policy.audit_days is not None and not policy.hold:
                until = self.now() - timedelta(hours=24 * policy.audit_days)
                try:
                    archived = await self._archived(name)
                except ArchiveError as error:
                    log.warning("events of %s are not deleted after their time: %s", name, error)
                    results.append(PurgedRecord(name, 0, 0, waits=True))
                    continue
                waits = archived is not None and await self._has_stated_more(name, archived)
                deleted = 0 if waits else await self._delete(name, until)
                stated, more, others_wait = await self._state(name, policy, until, archived)
                results.append(PurgedRecord(name, deleted, stated, more, waits or others_wait))
        return results

    async def _archived(self, tenant: str) -> int | None:
        """Return below which position the archive has every event that is stored; None where there is no archive."""
        if self.archive is None:
            return None
        async with self.audit.database.system_transaction(write=False) as tx:
            lowest = await list_leaves(tx, tenant, 0, 1)
        end = lowest[0][0].position if lowest else 0
        for stored in await self.archive.parts(tenant):
            # The first part may begin before what is stored, each other one begins where the one before it ends.
            if stored.part.first > end:
                break
            end = max(end, stored.part.end)
        return end

    async def _has_stated_more(self, tenant: str, archived: int) -> bool:
        """Return whether a statement from before there was an archive names what the archive does not have.

        All that a statement names is deleted, or nothing.
        """
        async with self.audit.database.system_transaction(write=False) as tx:
            return any(statement.pruned.end > archived for statement in await list_statements(tx, tenant))

    async def _delete(self, tenant: str, until: datetime) -> int:
        database, total = self.audit.database, 0
        for _ in range(_BATCHES):
            async with _purging(database) as tx:
                deleted = await purge_events(tx, tenant, until, self.now(), most=BATCH)
            total += deleted
            self.deleted += deleted
            if deleted < BATCH:
                break
            await asyncio.sleep(_PAUSE_S)
        return total

    async def _state(
        self, tenant: str, policy: RetentionPolicy, until: datetime, archived: int | None
    ) -> tuple[int, bool, bool]:
        """Record what is due, unless the last statement is not sealed yet or not long ago.

        Return how many events, whether there are more, and whether others wait for the archive.
        """
        async with self.audit.database.system_transaction(write=False) as tx:
            last = await self._last(tx, tenant)
            if last is not None and not await self._may_follow(tx, last):
                return 0, False, False
            stated = last.pruned if last is not None else PositionRuns()
            due = await _due(tx, tenant, until, policy.held_scopes, stated)
        positions = due if archived is None else due[: bisect_left(due, archived)]
        runs = _joined(stated, PositionRuns.of(positions))
        added = sum(position in runs for position in positions)
        full = len(positions) == STATED
        if added:
            earlier = _before(last.recorded.event) if last is not None else None
            details = {
                PRUNED: str(runs),
                _BEFORE: max(until, earlier or until).isoformat(),
                _FULL: full,
                "events": added,
                "days": policy.audit_days or 0,
            }
            event = self.audit.new_event(_HOST, PURGE, OUTCOME_OK, None, tenant=tenant, details=details)
            await self.audit.record(event)
        return added, full and added > 0, len(positions) < len(due)

    async def _last(self, tx: Transaction, tenant: str) -> Statement | None:
        """Return the newest statement that this service has made."""
        statements = await list_statements(tx, tenant, limit=_LOOKED_AT)
        own = (
            statement
            for statement in statements
            if statement.recorded.mac == expected_mac(self.audit.keys, statement.recorded)
        )
        return next(own, None)

    async def _may_follow(self, tx: Transaction, last: Statement) -> bool:
        """Return whether ``last`` is signed and holds, and another one may follow it now."""
        event, position = last.recorded.event, last.position
        if position is None or position >= await signed_size(tx, event.tenant):
            return False
        due = bool(event.details.get(_FULL)) or self.now() - event.at >= _EVERY
        return due and await _holds(tx, self.audit, last, position)


def _purging(database: Database) -> AbstractAsyncContextManager[Transaction]:
    return database.system_transaction(quiet=True) if database.embedded else database.purging_transaction()


async def _due(
    tx: Transaction, tenant: str, until: datetime, held_scopes: Sequence[str], before: PositionRuns
) -> list[int]:
    """Return the next positions to delete that no statement names."""
    positions: list[int] = []
    behind = 0
    while len(positions) < STATED:
        page = await list_positions(tx, tenant, until, held_scopes, behind=behind, limit=STATED)
        positions += [position for position in page if position not in before]
        if len(page) < STATED:
            break
        behind = page[-1] + 1
    return positions[:STATED]


def _joined(before: PositionRuns, added: PositionRuns) -> PositionRuns:
    """Return both as one set: all that was stated, and of what is added the longest runs for which there is room."""
    chosen = before
    for run in sorted(added, key=_length, reverse=True):
        joined = chosen | PositionRuns([run])
        if len(joined) <= max(_RUNS, len(chosen)):
            chosen = joined
    return chosen


def _length(run: Run) -> int:
    return run[1] - run[0] + 1


async def pruned_positions(tx: Transaction, audit: AuditService, tenant: str) -> PositionRuns:
    """Return the positions of a tenant's log whose events were deleted, by the newest statement that holds."""
    statement = await holding_statement(tx, audit, tenant)
    return statement.pruned if statement is not None else PositionRuns()


async def holding_statement(
    tx: Transaction, audit: AuditService, tenant: str, within: int | None = None
) -> Statement | None:
    """Return the newest statement of a tenant that holds, among the first ``within`` of its log.

    A statement holds where it is in the log as it was sealed, its authentication code is its own, and the log's heads
    say that all it names was as old as it says. What is gone beyond that is missing.
    """
    for statement in await list_statements(tx, tenant, limit=_LOOKED_AT):
        position = statement.position
        inside = position is not None and (within is None or position < within)
        if position is not None and inside and await _holds(tx, audit, statement, position):
            return statement
    return None


async def _holds(tx: Transaction, audit: AuditService, statement: Statement, position: int) -> bool:
    event, leaf = statement.recorded.event, leaf_hash(leaf_of(statement.recorded))
    if statement.recorded.mac != expected_mac(audit.keys, statement.recorded, leaf):
        return False
    place, at = TilePlace(0, position // TILE_WIDTH), position % TILE_WIDTH * HASH_BYTES
    tile = (await list_tiles(tx, [(event.tenant, place)]))[event.tenant].get(place, b"")
    if tile[at : at + HASH_BYTES] != leaf:
        return False
    before, end = _before(event), statement.pruned.end
    if before is None or before > event.at - _LEAST:
        return False
    return await aged_size(tx, event.tenant, before, within=end) >= end


def _before(event: AuditEvent) -> datetime | None:
    """Return the moment until which everything was logged that a statement names."""
    try:
        moment = datetime.fromisoformat(str(event.details.get(_BEFORE)))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
