"""A Merkle tree in tiles of 256 hashes (C2SP tlog-tiles): appended to, and read for roots and proofs.

The tile ``(level, number)`` holds hashes of perfect subtrees of ``256 ** level`` entries, the level 0 those of entries.
A tile only grows, until it is full; the last tile of each level is partial unless its width is 256.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from app.core.transparency.hashing import EMPTY_ROOT, HASH_BYTES, node_hash, perfect_root

TILE_HEIGHT: Final = 8
TILE_WIDTH: Final = 1 << TILE_HEIGHT
TILE_BYTES: Final = TILE_WIDTH * HASH_BYTES

R = TypeVar("R")


class TilePlace(NamedTuple):
    """Where a tile stands: its level, 0 for entries, and its number within the level."""

    level: int
    number: int

    def path(self, width: int = TILE_WIDTH) -> str:
        """Return the path that tlog-tiles gives the tile, such as ``tile/0/x001/234.p/17``."""
        digits = str(self.number)
        digits = digits.zfill(-(-len(digits) // 3) * 3)
        parts = [digits[start : start + 3] for start in range(0, len(digits), 3)]
        whole = "/".join([*(f"x{part}" for part in parts[:-1]), parts[-1]])
        return f"tile/{self.level}/{whole}" + (f".p/{width}" if width < TILE_WIDTH else "")


Tiles = Mapping[TilePlace, bytes]
"""Tiles as concatenated hashes; a tile may hold more than the tree asked about had."""


class Append(NamedTuple):
    """A tree after entries were added: its size, and each tile that is new or longer than before."""

    size: int
    tiles: dict[TilePlace, bytes]


def edge(size: int) -> list[TilePlace]:
    """Return the partial tiles of a tree of ``size``, which `append` needs: at most one for each level."""
    places = []
    level = 0
    while size >> (TILE_HEIGHT * level):
        width = size >> (TILE_HEIGHT * level)
        if width % TILE_WIDTH:
            places.append(TilePlace(level, width // TILE_WIDTH))
        level += 1
    return places


def append(size: int, tiles: Tiles, leaves: Iterable[bytes]) -> Append:
    """Add entries by their hashes to a tree of ``size``, given its `edge`."""
    changed: dict[TilePlace, bytes] = {}
    level, start, added = 0, size, list(leaves)
    end = size + len(added)
    while added:
        above: list[bytes] = []
        number, width = divmod(start, TILE_WIDTH)
        place = TilePlace(level, number)
        content = tiles[place][: width * HASH_BYTES] if width else b""
        taken = 0
        while taken < len(added):
            part = added[taken : taken + TILE_WIDTH - width]
            taken += len(part)
            content += b"".join(part)
            changed[TilePlace(level, number)] = content
            if len(content) == TILE_BYTES:
                above.append(perfect_root(content))
            number, width, content = number + 1, 0, b""
        level, start, added = level + 1, start // TILE_WIDTH, above
    return Append(end, changed)


def root(size: int, tiles: Tiles) -> bytes:
    """Return the root of the tree of the first ``size`` entries."""
    return _range_root(tiles, 0, size) if size else EMPTY_ROOT


def inclusion_proof(index: int, size: int, tiles: Tiles) -> list[bytes]:
    """Return the proof that the entry at ``index`` is in the tree of the first ``size`` entries."""
    if not 0 <= index < size:
        raise ValueError(f"A tree of {size} entries has none at {index}.")
    proof: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _left_part(end - start)
        if index < middle:
            proof.append(_range_root(tiles, middle, end))
            end = middle
        else:
            proof.append(_range_root(tiles, start, middle))
            start = middle
    return proof[::-1]


def range_proof(first: int, end: int, size: int, tiles: Tiles) -> list[bytes]:
    """Return the proof that the entries from ``first`` to below ``end`` are in the tree of the first ``size`` entries.

    It has the hashes of the greatest subtrees beside them, from left to right (see `range_root`).
    """
    if not 0 <= first < end <= size:
        raise ValueError(f"A tree of {size} entries has none from {first} to {end}.")
    proof: list[bytes] = []
    below = [(0, size)]
    while below:
        start, stop = below.pop()
        if stop <= first or end <= start:
            proof.append(_range_root(tiles, start, stop))
        elif start < first or end < stop:
            middle = start + _left_part(stop - start)
            below += [(middle, stop), (start, middle)]
    return proof


def consistency_proof(old_size: int, size: int, tiles: Tiles) -> list[bytes]:
    """Return the proof that the tree of ``size`` begins with the one of ``old_size`` entries."""
    if not 0 <= old_size <= size:
        raise ValueError(f"A tree of {size} entries does not continue one of {old_size}.")
    if old_size in (0, size):
        return []
    proof: list[bytes] = []
    start, end, whole = 0, size, True
    while end != old_size:
        middle = start + _left_part(end - start)
        if old_size <= middle:
            proof.append(_range_root(tiles, middle, end))
            end = middle
        else:
            proof.append(_range_root(tiles, start, middle))
            start, whole = middle, False
    if not whole:
        proof.append(_range_root(tiles, start, end))
    return proof[::-1]


def wanted(compute: Callable[[Tiles], R]) -> Sequence[TilePlace]:
    """Return the tiles that ``compute`` (``partial(inclusion_proof, 7, 1000)``) reads, to ask for them at once."""
    recorder = _Recorder()
    compute(recorder)
    return sorted(recorder.places)


class _Recorder(dict[TilePlace, bytes]):
    """Tiles of zeros for any place, and which places were read."""

    def __init__(self) -> None:
        super().__init__()
        self.places: set[TilePlace] = set()

    def __missing__(self, place: TilePlace) -> bytes:
        self.places.add(place)
        return bytes(TILE_BYTES)


def _left_part(count: int) -> int:
    """Return the greatest power of two below ``count``, which is above 1."""
    return 1 << ((count - 1).bit_length() - 1)


def _range_root(tiles: Tiles, start: int, end: int) -> bytes:
    """Return the root over entries ``start`` to ``end``; the range is one that a tree has as a subtree."""
    count = end - start
    if count & (count - 1):
        middle = start + _left_part(count)
        return node_hash(_range_root(tiles, start, middle), _range_root(tiles, middle, end))
    level, height = divmod(count.bit_length() - 1, TILE_HEIGHT)
    number, offset = divmod(start >> (TILE_HEIGHT * level), TILE_WIDTH)
    place = TilePlace(level, number)
    hashes = tiles[place][offset * HASH_BYTES : (offset + (1 << height)) * HASH_BYTES]
    if len(hashes) != HASH_BYTES << height:
        raise LookupError(f"The tile {place.path()} has {len(tiles[place]) // HASH_BYTES} hashes, too few.")
    return perfect_root(hashes)
