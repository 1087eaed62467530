"""Write closed months of the record to an archive: files that prove themselves, one folder for each tenant.

An event belongs to the month in which it was sealed. Thus a month is a range of positions in its tenant's log, which
nothing enters later, and one proof shows that none of them is missing. A large month has several parts.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from app.core.access import HOST_ACTOR, SYSTEM_TENANT, Caller
from app.core.archive import ArchivedPart, ArchivedRow, ArchiveError, EventArchive, MonthPart
from app.core.audit import OUTCOME_OK
from app.core.errors import ConflictError, InvalidArgumentsError, NotFoundError
from app.core.transparency.hashing import HASH_BYTES, leaf_hash, range_root
from app.core.transparency.notes import Note
from app.core.transparency.runs import PositionRuns
from app.core.transparency.tiles import TILE_WIDTH, TilePlace, Tiles, range_proof, wanted
from app.services.audit.archive.months import beginning_of, closed, following, month_of
from app.services.audit.audit import AuditService
from app.services.audit.leaves import leaf_of
from app.services.audit.proofs import Proofs
from app.services.audit.retention import holding_statement
from app.store.audit.archive import ArchiveState, find_archive_state, put_archive_state
from app.store.audit.audit import RecordedEvent
from app.store.audit.log import HEADS, LogLeaf, list_heads, list_leaves, next_entry
from app.store.audit.retention import Statement, aged_size
from app.store.locks import only_here

PART: Final = 250_000
"""Events of one file at most: about 30 MB, which a bucket takes in one request."""
_PAGE: Final = 500
_INSTANT: Final = timedelta(microseconds=1)
_HOST: Final = Caller(SYSTEM_TENANT, HOST_ACTOR, frozenset())
_LOCK: Final = "sluice archive audit"

log = logging.getLogger("sluice.audit.archive")


class WrittenPart(NamedTuple):
    """A part that was written: ``events`` positions of its tenant's log, and the SHA-256 (hex) of its file."""

    tenant: str
    month: str
    part: int
    events: int
    sha256: str


class ArchiveRun(NamedTuple):
    """What was written, and by tenant why its next part could not be."""

    written: Sequence[WrittenPart]
    failures: dict[str, str]


@dataclass(slots=True)
class ArchiveService:
    """Writes what the archive does not have yet. It may be interrupted and run again at any time.

    ``complete`` is the last month that this process saw complete.
    """

    audit: AuditService
    archive: EventArchive
    complete: str | None = None

    async def keep_up(self) -> None:
        """Write the months that are over; look again when the next one is."""
        month = self._latest(None)
        if month == self.complete:
            return
        async with self.audit.database.system_transaction(write=False) as tx:
            before = await find_archive_state(tx, self.archive.name)
        state = before or ArchiveState(self.audit.now())
        if before is None:
            await self._note(state)
        with suppress(ConflictError):
            if (await self.run()).failures:
                await self._note(replace(state, failed=self.audit.now()))
            else:
                await self._note(replace(state, complete=month))
                self.complete = month

    async def _note(self, state: ArchiveState) -> None:
        """Let every process know how far the archive is."""
        async with self.audit.database.system_transaction(quiet=True) as tx:
            await put_archive_state(tx, self.archive.name, state)

    async def run(self, tenant: str | None = None, month: str | None = None) -> ArchiveRun:
        """Write all closed months up to ``month`` (YYYY-MM; None: all of them) of a tenant, or of all.

        Raises ConflictError where another process is at it.
        """
        latest = self._latest(month)
        async with only_here(self.audit.database, _LOCK) as mine:
            if not mine:
                raise ConflictError("Another process is writing to the archive; try again later.")
            async with self.audit.database.system_transaction(write=False) as tx:
                heads = await list_heads(tx, None if tenant is None else [tenant])
            written: list[WrittenPart] = []
            failures: dict[str, str] = {}
            # A place that cannot be read is found at once, not when the first month is over.
            for name in sorted(heads.keys() - {HEADS}) or [tenant or SYSTEM_TENANT]:
                try:
                    while (made := await self._write_next(name, latest)) is not None:
                        written.append(made)
                except ArchiveError as error:
                    log.warning("the archive does not get the events of %s: %s", name, error)
                    failures[name] = str(error)
        return ArchiveRun(written, failures)

    def _latest(self, month: str | None) -> str:
        """Return the last month to write."""
        last = closed(self.audit.now())
        if month is None:
            return last
        try:
            wanted_month = month_of(beginning_of(month))
        except ValueError:
            raise InvalidArgumentsError(
                "A month is written as 2026-10.", details={"pointer": "/month"}
            ) from None
        if wanted_month > last:
            raise InvalidArgumentsError(
                f"{wanted_month} is not over yet: the last month that can be archived is {last}.",
                details={"pointer": "/month"},
            )
        return wanted_month

    async def _write_next(self, tenant: str, latest: str) -> WrittenPart | None:
        """Write the next part of a tenant; None where there is none yet."""
        last = await self.archive.last(tenant)
        try:
            proofs = await Proofs.of(self.audit, tenant)
        except NotFoundError:
            return None
        if last is not None:
            _check_continued(last, proofs)
        part = await self._next(tenant, last, latest)
        if part is None or part.month_end > proofs.entry.size:
            return None
        sha256 = await self._write(part, proofs)
        details = {
            "archived": tenant,
            "month": part.month,
            "part": part.number,
            "first": part.first,
            "events": part.end - part.first,
            "sha256": sha256,
            "archive": self.archive.name,
        }
        event = self.audit.new_event(_HOST, "audit.archive", OUTCOME_OK, None, details=details)
        await self.audit.record(event)
        return WrittenPart(tenant, part.month, part.number, part.end - part.first, sha256)

    async def _next(self, tenant: str, last: ArchivedPart | None, latest: str) -> MonthPart | None:
        """Return which part follows the last one; None where its month is not closed, or not asked for."""
        if last is not None and last.part.end < last.part.month_end:
            part = last.part
            end = min(part.end + PART, part.month_end)
            return part._replace(number=part.number + 1, first=part.end, end=end)
        async with self.audit.database.transaction(tenant, write=False) as tx:
            if last is not None:
                first = last.part.end
            else:
                # What was deleted before the archive began is not in it.
                stored = await list_leaves(tx, tenant, 0, 1)
                first = stored[0][0].position if stored else 0
            entry = await next_entry(tx, tenant, first)
            if entry is None:
                return None
            month = month_of(entry.at)
            if last is not None and month <= last.part.month:
                # A clock was set back after that month was written.
                month = following(last.part.month)
            if month > latest:
                return None
            month_end = await aged_size(tx, tenant, beginning_of(following(month)) - _INSTANT)
        if month_end <= first:
            return None
        return MonthPart(tenant, month, 1, first, min(first + PART, month_end), first, month_end)

    async def _write(self, part: MonthPart, proofs: Proofs) -> str:
        async with self.audit.database.system_transaction(write=False) as tx:
            statement = await holding_statement(tx, self.audit, part.tenant, proofs.entry.size)
        pruned = statement.pruned if statement is not None else PositionRuns()
        leaves: list[bytes] = []
        whole = part.first == 0
        async with self.archive.writing(part) as writer:
            for start in range(part.first, part.end, _PAGE):
                rows = await self._rows(proofs, part, start, pruned)
                whole = whole and all(row.event is not None for row in rows)
                leaves += [row.leaf for row in rows]
                await writer.add(rows)
            members = await self._proof(part, proofs, leaves)
            if statement is not None and not whole:
                members["statement"] = await _proven(statement, proofs)
            return await writer.finish(members)

    async def _rows(
        self, proofs: Proofs, part: MonthPart, start: int, pruned: PositionRuns
    ) -> Sequence[ArchivedRow]:
        end = min(start + _PAGE, part.end)
        async with self.audit.database.transaction(part.tenant, write=False) as tx:
            page = await list_leaves(tx, part.tenant, start, end - start)
        numbers = range(start // TILE_WIDTH, (end - 1) // TILE_WIDTH + 1)
        tiles = await proofs.tiles([TilePlace(0, number) for number in numbers])
        stored = {leaf.position: recorded for leaf, recorded in page if recorded is not None}
        return await asyncio.to_thread(
            lambda: list(_checked(part.tenant, range(start, end), stored, tiles, pruned))
        )

    async def _proof(self, part: MonthPart, proofs: Proofs, leaves: Sequence[bytes]) -> dict[str, Any]:
        size = proofs.entry.size
        prove = partial(range_proof, part.first, part.end, size)
        beside = prove(await proofs.tiles(wanted(prove)))
        if await asyncio.to_thread(range_root, part.first, size, leaves, beside) != proofs.entry.root:
            raise ArchiveError("Its log does not verify: run sluice audit verify, and mend what it names.")
        head = await proofs.head()
        head.pop("form")
        return {**head, "siblings": [sibling.hex() for sibling in beside]}


def _check_continued(last: ArchivedPart, proofs: Proofs) -> None:
    """Refuse an archive of another log, or one that has more than the record."""
    origin = Note.parse(proofs.note).text.partition("\n")[0]
    if last.origin != origin:
        raise ArchiveError(f"It has the log {last.origin}, not {origin}: name a place of its own.")
    if last.part.end > proofs.entry.size:
        raise ArchiveError(
            f"It has {last.part.end} events, the log {proofs.entry.size}: the database was set back. Verify it with a "
            "checkpoint that was kept elsewhere."
        )


def _checked(
    tenant: str,
    positions: range,
    stored: dict[int, RecordedEvent],
    tiles: Tiles,
    pruned: PositionRuns,
) -> Iterator[ArchivedRow]:
    """Yield a row for each position; raise ArchiveError for an event that is not what was sealed there."""
    for position in positions:
        at = position % TILE_WIDTH * HASH_BYTES
        sealed = tiles.get(TilePlace(0, position // TILE_WIDTH), b"")[at : at + HASH_BYTES]
        recorded = stored.get(position)
        if recorded is None:
            if position not in pruned or len(sealed) != HASH_BYTES:
                raise ArchiveError(
                    f"The event at position {position} of {tenant} is missing: run sluice audit verify, and put "
                    "back what it names."
                )
            yield ArchivedRow(position, sealed, 0, None, None)
            continue
        leaf = leaf_of(recorded)
        if leaf_hash(leaf) != sealed:
            raise ArchiveError(
                f"The event {recorded.event.id} of {tenant} is not what was sealed: run sluice audit verify, and put "
                "back what it names."
            )
        yield ArchivedRow(position, sealed, leaf[0], recorded.event, recorded.number)


async def _proven(statement: Statement, proofs: Proofs) -> Any:
    """Return the statement that says which events were deleted before, with its own proof."""
    event = statement.recorded.event
    leaf = LogLeaf(event.tenant, statement.position or 0, event.id, event.at)
    return (await proofs.proven([(leaf, statement.recorded)]))[0]
