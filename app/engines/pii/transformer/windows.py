"""Cut a text into windows that the transformer sees at once, at the ends of lines and sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from app.engines.pii.transformer.pieces import CAPITAL, CASELESS, LETTER, Cutter, PieceToken

MAX_PIECES = 126
"""Word-pieces of a window. Longer ones find hardly more and cost a third more a character."""

SEEN_AROUND = 24
"""Word-pieces before a window, and after one that was cut within a sentence, that are read but not judged."""

_HELD = 2 * MAX_PIECES
_ENDS = frozenset(".!?\u2026\u3002\uff01\uff1f")
_SHORT = 3


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """Hold consecutive tokens, of which those from ``first`` to ``last`` are judged.

    ``begin`` counts the tokens of the text before the first of these.
    """

    tokens: list[PieceToken]
    first: int
    last: int
    begin: int

    @property
    def size(self) -> int:
        """Return how many word-pieces there are."""
        return sum(len(token.ids) for token in self.tokens)

    @property
    def may_name(self) -> bool:
        """Return whether anything judged has a letter."""
        return any(token.outline >= CASELESS for token in self.tokens[self.first : self.last])


def windows(text: str, cutter: Cutter) -> Iterator[TokenWindow]:
    """Yield windows that judge every token once."""
    tokens = cutter.tokens(text)
    held: list[PieceToken] = []
    first = begin = 0
    while True:
        if len(held) < _HELD:
            held += islice(tokens, _HELD)
        if first >= len(held):
            return
        end = _fitting(held)
        if end == len(held):
            yield TokenWindow(held, first, end, begin)
            return
        last = _cut(text, held, first + (end - first) // 2, end)
        seen = last
        if last == end:
            last, seen = max(first + 1, _back(held, end)), end
        yield TokenWindow(held[:seen], first, last, begin)
        begin += last - first
        kept = _back(held, last)
        held = held[kept:]
        first = last - kept


def _fitting(held: list[PieceToken]) -> int:
    """Return how many tokens fit into a window."""
    room = MAX_PIECES
    for place, token in enumerate(held):
        room -= len(token.ids)
        if room < 0:
            return place
    return len(held)


def _back(held: list[PieceToken], place: int) -> int:
    """Return where the tokens before ``place`` begin that are read but not judged."""
    room = SEEN_AROUND
    while place and (room := room - len(held[place - 1].ids)) >= 0:
        place -= 1
    return place


def _cut(text: str, held: list[PieceToken], low: int, high: int) -> int:
    """Return the last place in ``(low, high]`` behind a line, else behind a sentence, else ``high``."""
    for place in range(high, low, -1):
        if text[held[place - 1].start] == "\n":
            return place
    for place in range(high, low, -1):
        if text[held[place - 1].start] in _ENDS and held[place].spaced and not _abbreviated(held[place - 2]):
            return place
    return high


def _abbreviated(token: PieceToken) -> bool:
    """Return whether a full stop behind the token likely belongs to it, as in ``Dr.`` or ``J.``."""
    return token.outline == LETTER or (token.outline == CAPITAL and token.end - token.start <= _SHORT)
