"""Verify the audit log: recompute every hash from what is stored, and name each thing that does not hold.

The tree of a tenant is recomputed from its lowest tiles, and each stored event is compared with the hash at its
position, so that one changed event is one finding. Checkpoints, the log's own and those of anchors, are compared with
the recomputed tree of heads at their sizes. Nothing is written.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from app.core.audit import WriterNumber
from app.core.errors import NotFoundError
from app.core.transparency.hashing import leaf_hash
from app.core.transparency.notes import Checkpoint, Note, NoteError, VerifierKey
from app.core.transparency.replay import Replay
from app.core.transparency.runs import PositionRuns
from app.core.transparency.tiles import TilePlace
from app.engines.signing import checker
from app.services.audit.audit import AuditService
from app.services.audit.comparing.comparison import LogPart, LooseEvents, TenantComparison
from app.services.audit.comparing.range_processes import Work, usual_processes, working
from app.services.audit.comparing.ranges import differing_tiles
from app.services.audit.findings import Verification
from app.services.audit.log_keys import LogKeyService
from app.services.audit.retention import pruned_positions
from app.services.audit.sealer import head_leaf
from app.store.audit.audit import Transaction
from app.store.audit.counts import stored_counts
from app.store.audit.log import (
    HEADS,
    Head,
    Progress,
    SignedCheckpoint,
    list_checkpoints,
    list_entries,
    list_heads,
    list_leaves_behind,
    read_progress,
)
from app.store.audit.raw_rows import list_loose, list_recorded_tenants, page_of_record
from app.store.audit.retention import aged_size
from app.store.audit.writers import list_unsealed_numbers
from app.store.vault.keys import DIGEST_PURPOSE, list_keyless

PART: Final = 1 << 16
"""Events that a process compares at a time; a multiple of the width of tiles."""
_PAGE: Final = 1000
_SIGNATURES: Final = 32
"""Signatures that are checked before others have their turn: each takes about a tenth of a millisecond."""
_LOWEST: Final = -(1 << 63)
"""The lowest number that a column takes."""
_LOOKED_AT: Final = 20_000
_AT_ONCE: Final = 6
"""Tenants at most that are verified at a time: each reads on a connection of ours."""

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class LogVerifier:
    """Verifies the log of a record; ``trusted`` replaces the keys that the database names (None: take those).

    ``processes`` (None: what the number of events is worth) compare ``part`` events at a time; what they find does not
    depend on how many they are.
    """

    audit: AuditService
    trusted: Sequence[VerifierKey] | None = None
    processes: int | None = None
    part: int = PART

    async def verify(
        self, tenant: str | None = None, *, since: datetime | None = None, anchors: Sequence[str] = ()
    ) -> Verification:
        """Verify the log of heads and the logs of all tenants, or of one.

        ``since``: compare only events from then on; the trees are recomputed whole. ``anchors`` are signed
        checkpoints that were kept elsewhere, as text. Raises NotFoundError for a tenant without a log.
        """
        result = await self._with_keys()
        # What is compared with the heads was there before them, so that a log may grow while it is verified.
        checkpoints = [checkpoint async for checkpoint in self._checkpoints()]
        async with self._reading() as tx:
            progress = await read_progress(tx)
            unsealed = await list_unsealed_numbers(tx)
            keyless = await list_keyless(tx, DIGEST_PURPOSE)
        async with self._reading() as tx:
            heads = await list_heads(tx)
        logged, entries = await self._verify_heads(result, heads.get(HEADS), checkpoints, anchors)
        everyone = {*heads, *logged, *await self._recorded_tenants()} - {HEADS}
        names = sorted(name for name in everyone if tenant in {None, name})
        if tenant is not None and not names:
            raise NotFoundError("That tenant has no log: nothing of it was sealed yet.")
        result.keyless = [name for name in keyless if name in names]
        chosen = [heads.get(name, Head(name, 0, b"", 0)) for name in names]
        processes = self.processes or usual_processes(sum(head.size for head in chosen))
        async with working(self.audit.database, self.audit.keys, processes) as work:
            await self._verify_tenants(
                result, chosen, unsealed, _Job(work, processes, entries, since, progress)
            )
        return result

    async def _with_keys(self) -> Verification:
        """Return a result with the keys to trust; what somebody put among those of the database is none of them."""
        if self.trusted:
            return Verification(tuple(self.trusted))
        service = LogKeyService.over(self.audit)
        foreign = await service.foreign()
        result = Verification(tuple(key for key, _ in await service.public() if key not in foreign))
        for key in foreign:
            meaning = "It stands among the keys of the log, and this installation did not make it."
            result.add("bad_signature", None, f"key {key}", meaning)
        return result

    async def _verify_heads(
        self,
        result: Verification,
        head: Head | None,
        checkpoints: Sequence[SignedCheckpoint],
        anchors: Sequence[str],
    ) -> tuple[set[str], int]:
        """Verify the log of heads and its checkpoints; return the tenants that it names, and its entries."""
        notes = [*(checkpoint.note for checkpoint in checkpoints), *anchors]
        stops = sorted({size for text in notes if (size := _size(text)) is not None})
        replay, computed = Replay(), {}
        logged: set[str] = set()
        stored = head.size if head is not None else 0
        async for entries in _pages(self._reading, list_entries, lambda entry: entry.position):
            hashes: list[bytes] = []
            for entry in entries:
                if entry.position != replay.size + len(hashes) or entry.position >= stored:
                    break
                logged.add(entry.tenant)
                hashes.append(leaf_hash(head_leaf(entry)))
            for full in replay.stopping(hashes, stops):
                computed[replay.size] = replay.root
                await self._compare_tiles(result, full)
            if len(hashes) < len(entries):
                break
        await self._compare_tiles(result, replay.tiles)
        if replay.size < stored:
            result.add("missing", None, f"entry {replay.size}", "The log of heads has a gap there.")
        elif head is not None and replay.root != head.root:
            result.add("changed", None, f"head of size {stored}", "The entries have another root.")
        await self._verify_end(result, stored)
        for checkpoint in checkpoints:
            result.checkpoints += 1
            if _size(checkpoint.note) not in {None, checkpoint.size}:
                meaning = "Another checkpoint stands in its place."
                result.add("bad_checkpoint", None, f"checkpoint of size {checkpoint.size}", meaning)
            _verify_checkpoint(result, checkpoint.note, "checkpoint", replay.size, computed)
            if result.checkpoints % _SIGNATURES == 0:
                # A service that verifies for an auditor answers others meanwhile.
                await asyncio.sleep(0)
        for text in anchors:
            result.anchors += 1
            _verify_checkpoint(result, text, "anchor", replay.size, computed)
        signed = max((size for size in map(_size, (made.note for made in checkpoints)) if size), default=0)
        result.unsigned = max(0, stored - signed)
        return logged, replay.size

    async def _verify_end(self, result: Verification, size: int) -> None:
        """Verify that nothing stands behind the end of the log of heads, which may have grown since."""
        async with self._reading() as tx:
            beside = [*await list_entries(tx, _LOWEST, 1), *await list_entries(tx, size, _PAGE)]
            end = await _size_now(tx, HEADS)
        for entry in beside:
            if not 0 <= entry.position < end:
                meaning = "It stands before the first or behind the last entry of the log of heads."
                result.add("inserted", None, f"entry {entry.position}", meaning)

    async def _compare_tiles(self, result: Verification, computed: dict[TilePlace, bytes]) -> None:
        """Compare tiles of the log of heads."""
        if not computed:
            return
        async with self._reading() as tx:
            wrong = await differing_tiles(tx, HEADS, computed)
        for place in wrong:
            result.add("bad_tile", None, place.path(), "The tile is not the one that its entries make.")

    async def _verify_tenants(
        self,
        result: Verification,
        heads: Sequence[Head],
        unsealed: Mapping[str, Sequence[WriterNumber]],
        job: "_Job",
    ) -> None:
        """Verify the logs of tenants, a few at a time, and name what differs in the order of their names."""
        parts = [Verification(result.keys) for _ in heads]
        turns = asyncio.Semaphore(min(2 * job.processes, _AT_ONCE) if job.processes > 1 else 1)

        async def verify(part: Verification, head: Head) -> None:
            async with turns:
                await self._verify_tenant(part, head, unsealed.get(head.tenant, ()), job)

        try:
            async with asyncio.TaskGroup() as tasks:
                for part, head in zip(parts, heads, strict=True):
                    tasks.create_task(verify(part, head))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        for part in parts:
            result.join(part)

    async def _verify_tenant(
        self, result: Verification, head: Head, unsealed: Sequence[WriterNumber], job: "_Job"
    ) -> None:
        """Verify a tenant's tree against every head that was logged, and its events against the tree."""
        tenant, comparison = head.tenant, TenantComparison(result, head.tenant)
        async with self._reading() as tx:
            counts = await stored_counts(tx, tenant)
            recent = await aged_size(tx, tenant, job.since) if job.since is not None else 0
        tree = await job.work.tree(head, job.entries)
        parts = [
            LogPart(tenant, start, min(start + self.part, tree.size), job.since, recent, counts.counted)
            for start in range(0, tree.size, self.part)
        ]
        compared = await asyncio.gather(*(job.work.compare(part) for part in parts))
        result.findings += tree.findings
        for part in compared:
            comparison.take(part)
        await self._look_beside(result, head, job.progress)
        pruned, size = PositionRuns(), head.size
        if comparison.is_incomplete:
            # Read last: what was deleted meanwhile had its statement before.
            async with self._reading() as tx:
                pruned = await pruned_positions(tx, self.audit, tenant)
        if counts.counted > size:
            async with self._reading() as tx:
                size = await _size_now(tx, tenant)
        comparison.finish(unsealed, pruned)
        comparison.check_counts(counts, size)
        result.tenants += head.size > 0

    async def _look_beside(self, result: Verification, head: Head, progress: Progress) -> None:
        """Look behind the end of a tenant's log, and at its events that are not in it, a page in each transaction."""
        tenant = head.tenant
        loose, first = LooseEvents(self.audit.keys, result, tenant), None
        while True:
            async with self._reading() as tx:
                if first is None:
                    await _look_behind(tx, result, head)
                page = await page_of_record(tx, tenant, first, _LOOKED_AT)
                rows = await list_loose(tx, tenant, page, progress) if page and page.loose else ()
            loose.take(rows, first)
            if page is None or not page.more or page.last == first:
                break
            first = page.last
        loose.finish()

    async def _recorded_tenants(self) -> list[str]:
        """Return the tenants that have events, whether or not the log knows them."""
        names: list[str] = []
        while True:
            async with self._reading() as tx:
                page = await list_recorded_tenants(tx, names[-1] if names else "", _PAGE)
            names += page
            if len(page) < _PAGE:
                return names

    async def _checkpoints(self) -> AsyncIterator[SignedCheckpoint]:
        after = _LOWEST
        while True:
            async with self._reading() as tx:
                page = await list_checkpoints(tx, after, _PAGE)
            for checkpoint in page:
                yield checkpoint
            if len(page) < _PAGE:
                return
            after = page[-1].size

    def _reading(self) -> AbstractAsyncContextManager[Transaction]:
        return self.audit.database.system_transaction(write=False)


class _Job(NamedTuple):
    """What a verification of tenants shares: who works, the entries of the log of heads, from when events count.

    ``progress`` is how far the sealer was.
    """

    work: Work
    processes: int
    entries: int
    since: datetime | None
    progress: Progress


async def _look_behind(tx: Transaction, result: Verification, head: Head) -> None:
    """Name what stands behind the end of a tenant's log, which may have grown since ``head`` was read."""
    behind = await list_leaves_behind(tx, head.tenant, head.size, _PAGE)
    end = await _size_now(tx, head.tenant) if behind else head.size
    for leaf in behind:
        if type(leaf.position) is not int or leaf.position >= end:
            meaning = "It stands behind the end of the log."
            result.add("inserted", head.tenant, f"event {leaf.event}", meaning)


async def _size_now(tx: Transaction, log: str) -> int:
    """Return the size of a log, which may have grown while it is verified."""
    head = (await list_heads(tx, [log])).get(log)
    return head.size if head is not None else 0


def _verify_checkpoint(
    result: Verification, text: str, kind: str, size: int, computed: Mapping[int, bytes]
) -> None:
    try:
        note = Note.parse(text)
        checkpoint = Checkpoint.parse(note.text)
    except NoteError as error:
        result.add("bad_checkpoint", None, kind, str(error))
        return
    place = f"{kind} of size {checkpoint.size}"
    keys = [key for key in result.keys if key.name == checkpoint.origin]
    if not any(note.is_signed(key, checker(key)) for key in keys):
        result.add("bad_signature", None, place, "No key of this log signed it as it stands.")
    elif checkpoint.size > size:
        result.add(
            "rolled_back", None, place, f"The log has only {size} entries: it was set back, or cut off."
        )
    elif computed.get(checkpoint.size) != checkpoint.root:
        result.add("fork", None, place, "It is signed over another history than the one that is stored.")


def _size(text: str) -> int | None:
    """Return the size that a checkpoint names; one that cannot be read is named when it is verified."""
    try:
        return Checkpoint.parse(Note.parse(text).text).size
    except NoteError:
        return None


async def _pages(
    reading: Callable[[], AbstractAsyncContextManager[Transaction]],
    read: Callable[[Transaction, int, int], Awaitable[Sequence[P]]],
    position: Callable[[P], int],
) -> AsyncIterator[Sequence[P]]:
    """Yield pages of what is numbered by position, each read in a transaction of its own."""
    start = 0
    while True:
        async with reading() as tx:
            page = await read(tx, start, _PAGE)
        if page:
            yield page
        if len(page) < _PAGE:
            return
        start = position(page[-1]) + 1
