"""Verify the audit log: recompute every hash from what is stored, and name each thing that does not hold.

The tree of a tenant is recomputed from its lowest tiles, and each stored event is compared with the hash at its
position, so that one changed event is one finding. Checkpoints, the log's own and those of anchors, are compared with
the recomputed tree of heads at their sizes. Nothing is written.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeVar

from app.core.audit import GAP_ACTION, WriterNumber
from app.core.errors import NotFoundError
from app.core.transparency.gaps import GapSearch, NumberRange, WriterGap
from app.core.transparency.hashing import HASH_BYTES, leaf_hash
from app.core.transparency.notes import Checkpoint, Note, NoteError, VerifierKey
from app.core.transparency.replay import Replay
from app.core.transparency.runs import PositionRuns, Run
from app.core.transparency.tiles import TILE_BYTES, TILE_WIDTH, TilePlace
from app.engines.signing import checker
from app.services.audit.audit import AuditService
from app.services.audit.findings import Verification
from app.services.audit.leaves import expected_mac, leaf_of
from app.services.audit.log_keys import LogKeyService
from app.services.audit.retention import pruned_positions
from app.services.audit.sealer import head_leaf
from app.store.audit.audit import RecordedEvent, Transaction
from app.store.audit.log import (
    HEADS,
    Head,
    LogLeaf,
    SignedCheckpoint,
    count_unsealed,
    last_leaves,
    list_checkpoints,
    list_entries,
    list_heads,
    list_leaves,
    list_tiles,
)
from app.store.audit.writers import list_unsealed_numbers

GRACE: Final = timedelta(minutes=1)
"""Younger events may still wait for the sealer."""
_PAGE: Final = 1000
_TILES: Final = 64

P = TypeVar("P")
StandingEvent = tuple[LogLeaf, RecordedEvent | None]


@dataclass(frozen=True, slots=True)
class LogVerifier:
    """Verifies the log of a record; ``trusted`` replaces the keys that the database names (None: take those)."""

    audit: AuditService
    trusted: Sequence[VerifierKey] | None = None

    async def verify(
        self, tenant: str | None = None, *, since: datetime | None = None, anchors: Sequence[str] = ()
    ) -> Verification:
        """Verify the log of heads and the logs of all tenants, or of one.

        ``since``: compare only events from then on; the trees are recomputed whole. ``anchors`` are signed
        checkpoints that were kept elsewhere, as text. Raises NotFoundError for a tenant without a log.
        """
        keys = self.trusted or [key for key, _ in await LogKeyService.over(self.audit).public()]
        result = Verification(tuple(keys))
        # What is compared with the heads was there before them, so that a log may grow while it is verified.
        checkpoints = [checkpoint async for checkpoint in self._checkpoints()]
        async with self._reading() as tx:
            unsealed = await list_unsealed_numbers(tx)
        async with self._reading() as tx:
            heads = await list_heads(tx)
        if tenant is not None and tenant not in heads:
            raise NotFoundError("That tenant has no log: nothing of it was sealed yet.")
        roots = await self._verify_heads(result, heads.get(HEADS), checkpoints, anchors)
        for name in sorted({*heads, *roots} - {HEADS}):
            if tenant in {None, name}:
                head = heads.get(name, Head(name, 0, b"", 0))
                comparison = _Comparison(result, self.audit, name, since, self._leaves(name))
                await self._verify_tenant(head, roots.get(name, {}), comparison)
                # Read last: what was deleted meanwhile had its statement before.
                async with self._reading() as tx:
                    pruned = await pruned_positions(tx, self.audit, name)
                comparison.finish(unsealed.get(name, ()), pruned)
                result.tenants += 1
        return result

    async def _verify_heads(
        self,
        result: Verification,
        head: Head | None,
        checkpoints: Sequence[SignedCheckpoint],
        anchors: Sequence[str],
    ) -> dict[str, dict[int, bytes]]:
        """Verify the log of heads and its checkpoints; return the roots of each tenant's log by size."""
        notes = [*(checkpoint.note for checkpoint in checkpoints), *anchors]
        stops = sorted({size for text in notes if (size := _size(text)) is not None})
        replay, computed = Replay(), {}
        roots: dict[str, dict[int, bytes]] = {}
        stored = head.size if head is not None else 0
        async for entries in _pages(self._reading, list_entries, lambda entry: entry.position):
            hashes: list[bytes] = []
            for entry in entries:
                if entry.position != replay.size + len(hashes) or entry.position >= stored:
                    break
                roots.setdefault(entry.tenant, {})[entry.size] = entry.root
                hashes.append(leaf_hash(head_leaf(entry)))
            for full in replay.stopping(hashes, stops):
                computed[replay.size] = replay.root
                await self._compare_tiles(result, None, HEADS, full)
            if len(hashes) < len(entries):
                break
        await self._compare_tiles(result, None, HEADS, replay.tiles)
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
        for text in anchors:
            result.anchors += 1
            _verify_checkpoint(result, text, "anchor", replay.size, computed)
        return roots

    async def _verify_end(self, result: Verification, size: int) -> None:
        """Verify that nothing stands behind the end of the log of heads, which may have grown since."""
        async with self._reading() as tx:
            behind = await list_entries(tx, size, _PAGE)
            end = await _size_now(tx, HEADS)
        for entry in behind:
            if entry.position >= end:
                meaning = "It stands behind the end of the log of heads."
                result.add("inserted", None, f"entry {entry.position}", meaning)

    async def _verify_tenant(self, head: Head, roots: Mapping[int, bytes], comparison: "_Comparison") -> None:
        """Verify a tenant's tree against every head that was logged, and its events against the tree."""
        tenant, replay, result = head.tenant, Replay(), comparison.result
        async for place, hashes in self._lowest(result, head):
            part = [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
            await comparison.compare(replay.size, part)
            for full in replay.stopping(part, sorted(roots)):
                if roots.get(replay.size, replay.root) != replay.root:
                    meaning = (
                        f"The first {replay.size} events make another tree than the one that was logged."
                    )
                    result.add("bad_tile", tenant, place.path(), meaning)
                upper = {tile: content for tile, content in full.items() if tile.level}
                await self._compare_tiles(result, tenant, tenant, upper)
        upper = {tile: content for tile, content in replay.tiles.items() if tile.level}
        await self._compare_tiles(result, tenant, tenant, upper)
        last = max(roots, default=0)
        if last > head.size:
            meaning = f"The log of heads knows {last} events of this tenant: it was set back, or cut off."
            result.add("rolled_back", tenant, f"head of size {head.size}", meaning)
        elif roots.get(head.size) != head.root:
            result.add("fork", tenant, f"head of size {head.size}", "The log of heads has another one.")
        async with self._reading() as tx:
            behind = await last_leaves(tx, tenant, _PAGE)
            end = await _size_now(tx, tenant)
            unsealed = await count_unsealed(tx, tenant, self.audit.now() - GRACE)
        for leaf in behind:
            if leaf.position >= end:
                result.add("inserted", tenant, f"event {leaf.event}", "It stands behind the end of the log.")
        if unsealed:
            meaning = "They are in the record for more than a minute, and not in the log."
            result.add("inserted", tenant, f"{unsealed} events", meaning)

    async def _compare_tiles(
        self, result: Verification, tenant: str | None, log: str, computed: Mapping[TilePlace, bytes]
    ) -> None:
        if not computed:
            return
        async with self._reading() as tx:
            stored = (await list_tiles(tx, [(log, place) for place in computed]))[log]
        for place in sorted(computed):
            # The last tile of a level may have grown since.
            if stored.get(place, b"")[: len(computed[place])] != computed[place]:
                result.add("bad_tile", tenant, place.path(), "The tile is not the one that its entries make.")

    async def _lowest(self, result: Verification, head: Head) -> AsyncIterator[tuple[TilePlace, bytes]]:
        """Yield the lowest tiles of a tenant's tree up to its size; one that is missing or short is the last."""
        count = -(-head.size // TILE_WIDTH)
        for start in range(0, count, _TILES):
            places = [TilePlace(0, number) for number in range(start, min(start + _TILES, count))]
            async with self._reading() as tx:
                stored = (await list_tiles(tx, [(head.tenant, place) for place in places]))[head.tenant]
            for place in places:
                length = min(TILE_BYTES, (head.size - place.number * TILE_WIDTH) * HASH_BYTES)
                hashes = stored.get(place, b"")[:length]
                if len(hashes) != length:
                    meaning = "The tile is missing or too short, so nothing behind it is compared."
                    result.add("bad_tile", head.tenant, place.path(), meaning)
                    return
                yield place, hashes

    async def _leaves(self, tenant: str) -> AsyncIterator[StandingEvent]:
        def read(tx: Transaction, start: int, limit: int) -> Awaitable[list[StandingEvent]]:
            return list_leaves(tx, tenant, start, limit)

        async for page in _pages(self._reading, read, lambda standing: standing[0].position):
            for leaf, recorded in page:
                yield leaf, recorded

    async def _checkpoints(self) -> AsyncIterator[SignedCheckpoint]:
        after = -1
        page: Sequence[SignedCheckpoint] = ()
        while after < 0 or len(page) == _PAGE:
            async with self._reading() as tx:
                page = await list_checkpoints(tx, after, _PAGE)
            for checkpoint in page:
                yield checkpoint
            after = page[-1].size if page else 0

    def _reading(self) -> AbstractAsyncContextManager[Transaction]:
        return self.audit.database.system_transaction(write=False)


class _Mismatch(NamedTuple):
    position: int
    event: str
    expected: bytes
    computed: bytes


@dataclass(slots=True)
class _Comparison:
    """The events of a tenant beside the hashes of its tree, both in order; finish it to name what differs."""

    result: Verification
    audit: AuditService
    tenant: str
    since: datetime | None
    leaves: AsyncIterator[StandingEvent]
    mismatches: list[_Mismatch] = field(default_factory=list)
    search: GapSearch = field(default_factory=GapSearch)
    gaps: set[WriterGap] = field(default_factory=set)
    absent: list[Run] = field(default_factory=list)
    ahead: StandingEvent | None = None

    async def compare(self, start: int, hashes: Sequence[bytes]) -> None:
        """Compare the events at the positions from ``start`` on."""
        for position, expected in enumerate(hashes, start):
            if self.ahead is None:
                self.ahead = await anext(self.leaves, None)
            if self.ahead is None or self.ahead[0].position != position:
                self._note_absence(position)
                self.search.passed()
                continue
            (leaf, recorded), self.ahead = self.ahead, None
            if recorded is None:
                meaning = f"The event at position {position} is no longer in the record."
                self.result.add("missing", self.tenant, f"event {leaf.event}", meaning)
                self.search.passed()
                continue
            self._take_number(recorded)
            if self.since is None or leaf.at >= self.since:
                self._compare(leaf, recorded, expected)

    def _compare(self, leaf: LogLeaf, recorded: RecordedEvent, expected: bytes) -> None:
        self.result.events += 1
        computed = leaf_hash(leaf_of(recorded))
        if computed != expected:
            self.mismatches.append(_Mismatch(leaf.position, str(leaf.event), expected, computed))
        elif recorded.mac != expected_mac(self.audit.keys, recorded, computed):
            meaning = "Its authentication code is not its own."
            self.result.add("changed", self.tenant, f"event {leaf.event}", meaning)

    def _note_absence(self, position: int) -> None:
        if self.absent and self.absent[-1][1] == position - 1:
            self.absent[-1] = self.absent[-1][0], position
        else:
            self.absent.append((position, position))

    def _take_number(self, recorded: RecordedEvent) -> None:
        if recorded.number is None:
            self.result.unnumbered += 1
            return
        self.search.add(*recorded.number)
        if recorded.event.action == GAP_ACTION:
            writer, first, last = (recorded.event.details.get(name) for name in ("writer", "first", "last"))
            if isinstance(writer, str) and isinstance(first, int) and isinstance(last, int):
                self.gaps.add(WriterGap(writer, NumberRange(first, last)))

    def finish(self, unsealed: Sequence[WriterNumber], pruned: PositionRuns) -> None:
        """Name what differs, and numbers that neither the log nor what is still ``unsealed`` has.

        At positions that were ``pruned`` no event is missed.
        """
        for position in (position for first, last in self.absent for position in range(first, last + 1)):
            if position in pruned:
                self.result.pruned += 1
            else:
                self.result.add("missing", self.tenant, f"position {position}", "No event stands there.")
        for number in sorted(unsealed):
            self.search.add(*number)
        for writer, (first, last) in sorted(self.gaps | set(self.search.gaps())):
            meaning = f"Its events {first} to {last} were deleted before they were sealed."
            self.result.add("gap", self.tenant, f"writer {writer}", meaning)
        wanted = {mismatch.expected for mismatch in self.mismatches}
        for mismatch in self.mismatches:
            if mismatch.computed in wanted:
                meaning = f"It stands at position {mismatch.position}, where another was sealed."
                self.result.add("reordered", self.tenant, f"event {mismatch.event}", meaning)
            else:
                meaning = "It is not what was sealed."
                self.result.add("changed", self.tenant, f"event {mismatch.event}", meaning)


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
