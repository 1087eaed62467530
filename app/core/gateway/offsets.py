"""Where a place in a text is after parts of it were replaced."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from app.core.content.handles import Handle, Original, find_handles
from app.core.gateway.channels import TextPiece

_COMPARED: Final = 4_000
"""Longer differences are taken as one; comparing takes quadratic time."""


class OffsetMap:
    """Maps offsets, in characters, of a text as it came to the text as it became; pieces are added in order."""

    def __init__(self, pieces: Iterable[TextPiece] = ()) -> None:
        self._starts: list[int] = []
        self._replaced: list[tuple[int, int, int]] = []
        self.source_length = 0
        self.length = 0
        for piece in pieces:
            self.add(piece)

    @property
    def is_changed(self) -> bool:
        """Return whether any part was replaced."""
        return bool(self._starts)

    def add(self, piece: TextPiece) -> None:
        """Add the next part."""
        begin = self.source_length
        self.source_length += len(piece.source)
        if piece.text != piece.source:
            self._starts.append(begin)
            self._replaced.append((self.source_length, self.length, self.length + len(piece.text)))
        self.length += len(piece.text)

    def start(self, offset: int) -> int:
        """Return where a range that began at ``offset`` begins: inside of a replaced part, at its beginning."""
        return self._mapped(offset, at_end=False)

    def end(self, offset: int) -> int:
        """Return where a range that ended at ``offset`` ends: inside of a replaced part, at its end."""
        return self._mapped(offset, at_end=True)

    def _mapped(self, offset: int, *, at_end: bool) -> int:
        number = bisect_right(self._starts, offset if not at_end else offset - 1) - 1
        if number < 0:
            return offset
        source_end, begin, end = self._replaced[number]
        if offset < source_end:
            return end if at_end else begin
        return offset - source_end + end


def compared(before: str, after: str) -> OffsetMap:
    """Return the map between two texts of which nobody said what was replaced."""
    first = _shared(before, after)
    last = _shared(before[first:][::-1], after[first:][::-1])
    old, new = before[first : len(before) - last], after[first : len(after) - last]
    pieces = [TextPiece(before[:first], before[:first])]
    if max(len(old), len(new)) > _COMPARED:
        pieces.append(TextPiece(old, new))
    else:
        for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            pieces.append(TextPiece(old[i:j], old[i:j] if kind == "equal" else new[k:m]))
    end = before[len(before) - last :]
    return OffsetMap([*pieces, TextPiece(end, end)])


def _shared(first: str, second: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def hidden_map(sent: str, came: str, resolve: Callable[[Handle], Original | None]) -> OffsetMap:
    """Return the map from a text with handles, as it was sent, to the text as it came from the caller."""
    pieces: list[TextPiece] = []
    place = position = 0
    for match in find_handles(sent, exact=True):
        handle, plain = sent[match.start : match.end], sent[place : match.start]
        original = resolve(match.handle)
        if original is None or came.startswith(handle, position + len(plain)):
            continue  # the caller wrote it so
        if not came.startswith(plain + original.text, position):
            return compared(sent, came)
        pieces += [TextPiece(plain, plain), TextPiece(handle, original.text)]
        place, position = match.end, position + len(plain) + len(original.text)
    rest = sent[place:]
    if came[position:] != rest:
        return compared(sent, came)
    return OffsetMap([*pieces, TextPiece(rest, rest)])


def document_maps(
    sent: Sequence[str], came: Sequence[str], resolve: Callable[[Handle], Original | None]
) -> Iterator[OffsetMap]:
    """Yield the maps of a request's documents (``GatewayRequest.documents``), in their order."""
    for hidden, original in zip(sent, came, strict=False):
        yield hidden_map(hidden, original, resolve)
