"""Read parts of the log and compare them with its trees: in this process, or in one of several.

Whatever a part returns can be sent to another process, and does not grow with what holds.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from app.core.transparency.hashing import HASH_BYTES
from app.core.transparency.replay import Replay
from app.core.transparency.tiles import TILE_BYTES, TILE_WIDTH, TilePlace
from app.engines.cipher import RecordKeys
from app.services.audit.comparing.comparison import ComparedPart, LogPart, PartComparison
from app.services.audit.findings import LogFinding
from app.store.audit.audit import Transaction
from app.store.audit.log import Head, last_entry, list_tiles
from app.store.audit.raw_rows import LoggedHead, list_logged_heads, list_standing
from app.store.database import Database

_PAGE: Final = 1000
_TILES: Final = 64
_STATEMENTS: Final = 8
"""Statements in a transaction: to begin and to end one costs as much as two, and a long one holds back the database."""


@dataclass(slots=True)
class VerifiedTree:
    """What a tenant's tree is like; ``size``: how many of its entries can be compared with events."""

    size: int = 0
    findings: list[LogFinding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LogRanges:
    """Verifies parts of the logs of a record."""

    database: Database
    keys: RecordKeys

    async def compare(self, part: LogPart) -> ComparedPart:
        """Compare the events of a part with the hashes of the tree."""
        comparison = PartComparison(self.keys, part)
        step = _TILES * TILE_WIDTH
        async with _Reading(self.database) as reading:
            for first in range(part.start, part.end, step):
                end = min(first + step, part.end)
                start = first
                hashes = await _hashes(reading, part.tenant, first, end)
                while start < end:
                    rows = await list_standing(await reading.tx(), part.tenant, start, end, _PAGE)
                    stop = int(rows[-1][0]) + 1 if len(rows) == _PAGE else end
                    comparison.compare(rows, start, stop, hashes[(start - first) * HASH_BYTES :])
                    start = stop
        return comparison.part

    async def tree(self, head: Head, entries: int) -> VerifiedTree:
        """Verify a tenant's tree against every head of it among the first ``entries`` of the log of heads."""
        tenant, replay, verified = head.tenant, Replay(), VerifiedTree()
        async with _Reading(self.database) as reading:
            heads = _LoggedHeads(reading, tenant, entries)
            async for place, hashes in _lowest(reading, verified, head):
                part = [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
                roots = await heads.until(replay.size + len(part))
                for full in replay.stopping(part, sorted(roots)):
                    if replay.size in roots and roots[replay.size] != replay.root:
                        meaning = (
                            f"The first {replay.size} events make another tree than the one that was logged."
                        )
                        verified.findings.append(LogFinding("bad_tile", tenant, place.path(), meaning))
                    await _compare_tiles(reading, verified, tenant, full)
            await _compare_tiles(reading, verified, tenant, replay.tiles)
            verified.size = replay.size
            last = await last_entry(await reading.tx(), tenant, entries)
        end = f"head of size {head.size}"
        if last is not None and last.size > head.size:
            meaning = (
                f"The log of heads knows {last.size} events of this tenant: it was set back, or cut off."
            )
            verified.findings.append(LogFinding("rolled_back", tenant, end, meaning))
        elif (last.size, last.root) != (head.size, head.root) if last is not None else head.size:
            meaning = "The log of heads has another one."
            verified.findings.append(LogFinding("fork", tenant, end, meaning))
        return verified


class _Reading:
    """Reads in one transaction after the other, a few statements in each."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stack = AsyncExitStack()
        self._tx: Transaction | None = None
        self._statements = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def tx(self) -> Transaction:
        """Return the transaction for the next statement."""
        if self._tx is None or self._statements == _STATEMENTS:
            await self._stack.aclose()
            self._tx = await self._stack.enter_async_context(self._database.system_transaction(write=False))
            self._statements = 0
        self._statements += 1
        return self._tx


async def _compare_tiles(
    reading: _Reading, verified: VerifiedTree, tenant: str, computed: dict[TilePlace, bytes]
) -> None:
    """Compare the tiles above the lowest, of which the others are made."""
    upper = {place: hashes for place, hashes in computed.items() if place.level}
    if not upper:
        return
    wrong = await differing_tiles(await reading.tx(), tenant, upper)
    verified.findings += [
        LogFinding("bad_tile", tenant, place.path(), "The tile is not the one that its entries make.")
        for place in wrong
    ]


async def _lowest(
    reading: _Reading, verified: VerifiedTree, head: Head
) -> AsyncIterator[tuple[TilePlace, bytes]]:
    """Yield the lowest tiles of a tenant's tree up to its size; one that is missing or short is the last."""
    count = -(-head.size // TILE_WIDTH)
    for start in range(0, count, _TILES):
        places = [TilePlace(0, number) for number in range(start, min(start + _TILES, count))]
        asked = [(head.tenant, place) for place in places]
        stored = (await list_tiles(await reading.tx(), asked))[head.tenant]
        for place in places:
            length = min(TILE_BYTES, (head.size - place.number * TILE_WIDTH) * HASH_BYTES)
            hashes = stored.get(place, b"")[:length]
            if len(hashes) != length:
                meaning = "The tile is missing or too short, so nothing behind it is compared."
                verified.findings.append(LogFinding("bad_tile", head.tenant, place.path(), meaning))
                return
            yield place, hashes


async def _hashes(reading: _Reading, tenant: str, start: int, end: int) -> bytes:
    """Return the hashes of the lowest tiles for positions; ``start`` is the first one of a tile."""
    places = [TilePlace(0, number) for number in range(start // TILE_WIDTH, -(-end // TILE_WIDTH))]
    stored = (await list_tiles(await reading.tx(), [(tenant, place) for place in places]))[tenant]
    # A tile that was cut off meanwhile leaves its events without a hash, and moves no others.
    return b"".join(stored.get(place, b"").ljust(TILE_BYTES, b"\0")[:TILE_BYTES] for place in places)


async def differing_tiles(tx: Transaction, log: str, computed: dict[TilePlace, bytes]) -> list[TilePlace]:
    """Return the places at which other tiles are stored than those that were computed."""
    stored = (await list_tiles(tx, [(log, place) for place in computed]))[log]
    # The last tile of a level may have grown since.
    return [
        place
        for place in sorted(computed)
        if stored.get(place, b"")[: len(computed[place])] != computed[place]
    ]


class _LoggedHeads:
    """The heads of a tenant in the order of their sizes, read a page at a time."""

    def __init__(self, reading: _Reading, tenant: str, entries: int) -> None:
        self._reading = reading
        self._tenant = tenant
        self._entries = entries
        self._last = LoggedHead(0, -1, b"")
        self._read: list[LoggedHead] = []
        self._is_complete = False

    async def until(self, size: int) -> dict[int, bytes]:
        """Return the roots by size of the next heads, up to those of ``size``."""
        roots: dict[int, bytes] = {}
        while True:
            while self._read and self._read[0].size <= size:
                head = self._read.pop(0)
                roots[head.size] = head.root
            if self._read or self._is_complete:
                return roots
            await self._next_page()

    async def _next_page(self) -> None:
        tx = await self._reading.tx()
        self._read = await list_logged_heads(tx, self._tenant, self._last, self._entries, _PAGE)
        self._is_complete = len(self._read) < _PAGE
        if self._read:
            self._last = self._read[-1]
