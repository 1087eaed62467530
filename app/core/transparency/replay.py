"""Rebuild a tree from its entries' hashes, in memory that does not grow with the tree."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from app.core.transparency.hashing import EMPTY_ROOT, node_hash
from app.core.transparency.tiles import TILE_HEIGHT, TILE_WIDTH, TilePlace


class Replay:
    """A tree that grows; ``tiles`` are its partial ones, full ones are handed out as they fill.

    An entry costs about one hash, whatever the tree's size, and a root as many as the size has digits of two.
    """

    def __init__(self) -> None:
        self.size = 0
        self._perfect: list[bytes] = []
        """Roots of the perfect subtrees that make up the tree, the greatest first."""
        self._levels: list[list[bytes]] = []
        """The hashes of the last tile of each level, which is not full."""

    @property
    def root(self) -> bytes:
        """Return the root of what was added."""
        if not self._perfect:
            return EMPTY_ROOT
        *left, computed = self._perfect
        for subtree in reversed(left):
            computed = node_hash(subtree, computed)
        return computed

    @property
    def tiles(self) -> dict[TilePlace, bytes]:
        """Return the tiles that are not full."""
        return {
            TilePlace(level, (self.size >> TILE_HEIGHT * level) // TILE_WIDTH): b"".join(hashes)
            for level, hashes in enumerate(self._levels)
            if hashes
        }

    def add(self, hashes: Sequence[bytes]) -> dict[TilePlace, bytes]:
        """Add entries by their hashes; return the tiles that are full now."""
        full: dict[TilePlace, bytes] = {}
        perfect = self._perfect
        for entry in hashes:
            below, computed, height = self.size, entry, 0
            self.size += 1
            self._put(0, entry, full)
            while below & 1:
                computed = node_hash(perfect.pop(), computed)
                below >>= 1
                height += 1
                if height % TILE_HEIGHT == 0:
                    self._put(height // TILE_HEIGHT, computed, full)
            perfect.append(computed)
        return full

    def stopping(self, hashes: Sequence[bytes], stops: Sequence[int]) -> Iterator[dict[TilePlace, bytes]]:
        """Add ``hashes`` piece by piece: up to each of the sizes ``stops``, which are in order, then the rest."""
        start, end = self.size, self.size + len(hashes)
        for stop in (*stops[bisect_right(stops, start) : bisect_left(stops, end)], end):
            yield self.add(hashes[self.size - start : stop - start])

    def _put(self, level: int, entry: bytes, full: dict[TilePlace, bytes]) -> None:
        """Put a hash at the end of a level; a tile that it fills goes to ``full``."""
        if level == len(self._levels):
            self._levels.append([])
        hashes = self._levels[level]
        hashes.append(entry)
        if len(hashes) == TILE_WIDTH:
            full[TilePlace(level, (self.size - 1) >> TILE_HEIGHT * (level + 1))] = b"".join(hashes)
            hashes.clear()
