"""Seals the audit record: events enter their tenant's log, heads the log of heads, and checkpoints are signed.

Nothing on the way of a call waits for this. One process at a time seals (``Background`` sees to that), and each step
is one transaction that is whole or not there.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from app.core.strictjson import dumps
from app.core.transparency.gaps import NumbersSeen
from app.core.transparency.hashing import leaf_hash
from app.core.transparency.notes import Checkpoint
from app.core.transparency.tiles import TilePlace, append, edge, root
from app.engines.cipher import RecordKeys
from app.services.audit.audit import AuditService
from app.services.audit.log_keys import LogKeyService
from app.services.audit.sealing_checks import (
    altered_events,
    gap_events,
    places_of,
    sealed_row,
    seen_with,
)
from app.store.audit.log import (
    HEADS,
    Head,
    HeadEntry,
    LogLeaf,
    SignedCheckpoint,
    add_checkpoint,
    add_entries,
    add_leaves,
    list_heads,
    list_tiles,
    newest_checkpoint,
    put_heads,
    put_tiles,
    read_progress,
    write_progress,
)
from app.store.audit.unsealed import Unsealed, advanced, list_unsealed
from app.store.audit.writers import list_incomplete_writers, list_writers, put_writers, remove_over_writers

BATCH: Final = 500
"""Events sealed in one transaction, during which SQLite's other writers wait."""
_MOST_BATCHES: Final = 200
_WRITERS_KEPT: Final = timedelta(days=8)
"""A writer lives for a day, and a process that was stopped for some days stores nothing by it when it goes on."""
_HEAD_VERSION: Final = b"\x01"

TilesOfLogs = dict[str, dict[TilePlace, bytes]]


def head_leaf(entry: HeadEntry) -> bytes:
    """Return the bytes of a tenant's head as an entry of the log of heads: a version byte and JSON, names sorted."""
    document = {
        "v": 1,
        "tenant": entry.tenant,
        "size": entry.size,
        "root": entry.root.hex(),
        "at": round(entry.at.timestamp() * 1_000_000),
    }
    return _HEAD_VERSION + dumps(dict(sorted(document.items())))


class _Batch(NamedTuple):
    """How many events one transaction sealed, and whether it left none that was committed before it began."""

    events: int
    last: bool


@dataclass(frozen=True, slots=True)
class LogSealer:
    """Adds what is new in the record to the log."""

    audit: AuditService
    log_keys: LogKeyService

    @classmethod
    def over(cls, audit: AuditService) -> "LogSealer":
        """Return the sealer of a record."""
        return cls(audit, LogKeyService.over(audit))

    async def seal(self) -> int:
        """Seal what is committed, at most 100,000 events, and sign the new head; return the number of events.

        What comes meanwhile waits for the next time: a batch costs nearly the same for one event as for hundreds, so
        that sealing until nothing is left would never end while there are calls, and cost more than they do.
        """
        total = 0
        for _ in range(_MOST_BATCHES):
            batch = await self._batch()
            total += batch.events
            if batch.last:
                break
        await self._sign()
        return total

    async def forget_writers(self) -> int:
        """Remove what is known of writers that ended long ago, all of whose events are in the log; return how many."""
        now = self.audit.now()
        async with self.audit.database.system_transaction(quiet=True) as tx:
            return await remove_over_writers(tx, now - _WRITERS_KEPT, now)

    async def _batch(self) -> _Batch:
        """Seal up to a batch."""
        async with self.audit.database.system_transaction(write=False) as tx:
            progress = await read_progress(tx)
            rows = await list_unsealed(tx, progress, BATCH)
            following = advanced(progress, rows, BATCH)
            if not rows and following == progress:
                return _Batch(0, last=True)
            tenants = sorted({row.tenant for row in rows})
            heads = await list_heads(tx, [*tenants, HEADS])
            sizes = {log: heads[log].size if log in heads else 0 for log in (*tenants, HEADS)}
            tiles = await list_tiles(tx, [(log, place) for log in sizes for place in edge(sizes[log])])
            writers = await list_writers(tx, places_of(rows))
        grown = await asyncio.to_thread(_grown, rows, self.audit.keys, Logs(heads, tiles), self.audit.now())
        writers = seen_with(rows, writers)
        async with self.audit.database.system_transaction(quiet=True) as tx:
            if await read_progress(tx) != progress and progress.until is None:
                return _Batch(0, last=False)
            await add_leaves(tx, grown.leaves)
            await add_entries(tx, grown.entries)
            await put_tiles(tx, grown.tiles)
            await put_heads(tx, grown.heads)
            await write_progress(tx, following)
            if following.until is None:
                # While rows from before come in another order than they were written in, a number may still come.
                if progress.until is not None:
                    writers = {**await list_incomplete_writers(tx), **writers}
                wrong = gap_events(self.audit, writers)
                writers = {place: NumbersSeen(seen.highest) for place, seen in writers.items()}
            else:
                wrong = []
            await put_writers(tx, writers.items(), self.audit.now())
            await self.audit.record_with(tx, *wrong, *altered_events(self.audit, grown.altered))
        # Behind rows from before there are newer ones, and what was just said of gaps is to be sealed, too.
        last = len(rows) < BATCH and progress.until is None and not (wrong or grown.altered)
        return _Batch(len(rows), last=last)

    async def _sign(self) -> None:
        async with self.audit.database.system_transaction(write=False) as tx:
            head = (await list_heads(tx, [HEADS])).get(HEADS)
            newest = await newest_checkpoint(tx)
        if head is None:
            return
        if newest is None or newest.size < head.size:
            keys = await self.log_keys.open()
            note = keys.signing.signed(Checkpoint(keys.origin, head.size, head.root).text())
            async with self.audit.database.system_transaction(quiet=True) as tx:
                await add_checkpoint(tx, SignedCheckpoint(head.size, str(note), self.audit.now()))


class Logs(NamedTuple):
    """The logs that rows enter: their heads, and the tiles at their edges."""

    heads: dict[str, Head]
    tiles: TilesOfLogs


class _Grown(NamedTuple):
    leaves: Sequence[LogLeaf]
    entries: Sequence[HeadEntry]
    tiles: TilesOfLogs
    heads: Sequence[Head]
    altered: Sequence[Unsealed]


def _grown(rows: Sequence[Unsealed], keys: RecordKeys, logs: Logs, moment: datetime) -> _Grown:
    """Return what the logs gain by ``rows``, computed away from the event loop."""
    heads, tiles = logs
    by_tenant: dict[str, list[Unsealed]] = {}
    altered: list[Unsealed] = []
    hashes_of: dict[str, list[bytes]] = {}
    for row in rows:
        sealed = sealed_row(keys, row)
        by_tenant.setdefault(row.tenant, []).append(row)
        hashes_of.setdefault(row.tenant, []).append(sealed.leaf)
        if not sealed.authentic:
            altered.append(row)
    leaves: list[LogLeaf] = []
    entries: list[HeadEntry] = []
    new_tiles: TilesOfLogs = {}
    new_heads: list[Head] = []
    first_entry = heads[HEADS].size if HEADS in heads else 0
    for tenant, own in by_tenant.items():
        size = heads[tenant].size if tenant in heads else 0
        leaves += [LogLeaf(tenant, position, row.event, row.at) for position, row in enumerate(own, size)]
        new_size, new_root = _append(tenant, size, hashes_of[tenant], tiles, new_tiles)
        entry = HeadEntry(first_entry + len(entries), tenant, new_size, new_root, moment)
        entries.append(entry)
        new_heads.append(Head(tenant, new_size, new_root, entry.position))
    if entries:
        hashes = [leaf_hash(head_leaf(entry)) for entry in entries]
        size, head_root = _append(HEADS, first_entry, hashes, tiles, new_tiles)
        new_heads.append(Head(HEADS, size, head_root, 0))
    return _Grown(leaves, entries, new_tiles, new_heads, altered)


def _append(
    log: str, size: int, hashes: Sequence[bytes], tiles: TilesOfLogs, new_tiles: TilesOfLogs
) -> tuple[int, bytes]:
    own = tiles.get(log, {})
    appended = append(size, own, hashes)
    new_tiles[log] = appended.tiles
    return appended.size, root(appended.size, {**own, **appended.tiles})
