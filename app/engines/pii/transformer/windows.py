"""Split a text into windows for the transformer, at the ends of lines and sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from app.engines.pii.transformer.pieces import CAPITAL, CASELESS, LETTER, Cutter, PieceToken

MAX_PIECES = 126
"""Word-pieces of a window. Longer windows find hardly more and cost a third more per character."""

SEEN_AROUND = 24
"""Word-pieces of context before a window, and after one cut within a sentence; they are read but not tagged."""

_BUFFERED = 2 * MAX_PIECES
_ENDS = frozenset(".!?\u2026\u3002\uff01\uff1f")
_SHORT = 3


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """Consecutive tokens, of which those from ``first`` to ``last`` are tagged.

    ``begin`` is the number of tokens in the text before the first tagged one.
    """

    tokens: list[PieceToken]
    first: int
    last: int
    begin: int

    @property
    def size(self) -> int:
        """Return the number of word-pieces."""
        return sum(len(token.ids) for token in self.tokens)

    @property
    def may_name(self) -> bool:
        """Return whether any tagged token has a letter."""
        return any(token.outline >= CASELESS for token in self.tokens[self.first : self.last])


def windows(text: str, cutter: Cutter) -> Iterator[TokenWindow]:
    """Yield windows that together tag every token once."""
    tokens = cutter.tokens(text)
    buffer: list[PieceToken] = []
    first = begin = 0
    while True:
        if len(buffer) < _BUFFERED:
            buffer += islice(tokens, _BUFFERED)
        if first >= len(buffer):
            return
        end = _fitting(buffer)
        if end == len(buffer):
            yield TokenWindow(buffer, first, end, begin)
            return
        last = _cut(text, buffer, first + (end - first) // 2, end)
        seen = last
        if last == end:
            last, seen = max(first + 1, _back(buffer, end)), end
        yield TokenWindow(buffer[:seen], first, last, begin)
        begin += last - first
        kept = _back(buffer, last)
        buffer = buffer[kept:]
        first = last - kept


def _fitting(buffer: list[PieceToken]) -> int:
    """Return the number of tokens that fit into a window."""
    room = MAX_PIECES
    for place, token in enumerate(buffer):
        room -= len(token.ids)
        if room < 0:
            return place
    return len(buffer)


def _back(buffer: list[PieceToken], place: int) -> int:
    """Return the start of the context tokens before ``place``."""
    room = SEEN_AROUND
    while place and (room := room - len(buffer[place - 1].ids)) >= 0:
        place -= 1
    return place


def _cut(text: str, buffer: list[PieceToken], low: int, high: int) -> int:
    """Return the last place in ``(low, high]`` after a line, else after a sentence, else ``high``."""
    for place in range(high, low, -1):
        if text[buffer[place - 1].start] == "\n":
            return place
    for place in range(high, low, -1):
        if (
            text[buffer[place - 1].start] in _ENDS
            and buffer[place].spaced
            and not _abbreviated(buffer[place - 2])
        ):
            return place
    return high


def _abbreviated(token: PieceToken) -> bool:
    """Return whether a full stop after the token likely belongs to it, as in ``Dr.`` or ``J.``."""
    return token.outline == LETTER or (token.outline == CAPITAL and token.end - token.start <= _SHORT)
