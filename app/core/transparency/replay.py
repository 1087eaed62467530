"""Rebuild a tree from its entries' hashes, in memory that does not grow with the tree."""

from collections.abc import Iterable, Iterator, Sequence

from app.core.transparency.tiles import TilePlace, append, edge, root


class Replay:
    """A tree that grows; ``tiles`` are its partial ones, full ones are handed out as they fill."""

    def __init__(self) -> None:
        self.size = 0
        self.tiles: dict[TilePlace, bytes] = {}

    @property
    def root(self) -> bytes:
        """Return the root of what was added."""
        return root(self.size, self.tiles)

    def add(self, hashes: Sequence[bytes]) -> dict[TilePlace, bytes]:
        """Add entries by their hashes; return the tiles that are full now."""
        grown = append(self.size, self.tiles, hashes)
        tiles = {**self.tiles, **grown.tiles}
        self.size = grown.size
        self.tiles = {place: tiles[place] for place in edge(self.size)}
        return {place: content for place, content in tiles.items() if place not in self.tiles}

    def stopping(self, hashes: Sequence[bytes], stops: Iterable[int]) -> Iterator[dict[TilePlace, bytes]]:
        """Add ``hashes`` piece by piece: up to each of the sizes ``stops`` that they reach, in order, then the rest."""
        start, end = self.size, self.size + len(hashes)
        for stop in (*(size for size in stops if start < size < end), end):
            yield self.add(hashes[self.size - start : stop - start])
