"""A reading of a text in which parts are replaced, and the map from its offsets back to those of the text."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

_BLANK: Final = re.compile(r"\s")
REACH: Final = 240
"""Characters around a change that are scanned again; more than the context words of a finding need."""
_BATCH: Final = 64


class Substitution(NamedTuple):
    """``plain`` replaces ``text[start:end]``; ``way`` names how it was decoded.

    ``backwards``: ``plain`` is ``text[start:end]`` from its end to its start, and maps back character by character.
    """

    start: int
    end: int
    plain: str
    way: str
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class TextView:
    """One reading of a text.

    Piece ``i`` begins at ``starts[i]`` of the view and stands for ``[lows[i], highs[i])`` of the text below: character
    by character where ``steps[i]`` is 1, backwards where it is -1, as a whole where it is 0. Where ``below`` is given,
    that text is itself a view.
    """

    text: str
    starts: Sequence[int]
    lows: Sequence[int]
    highs: Sequence[int]
    steps: Sequence[int]
    changed: Sequence[tuple[int, int, str]]
    """Where the view was changed, in its own offsets, and how it was decoded there."""
    source: str
    trailing: re.Pattern[str] | None = None
    """Matches what belongs to the character before it, so that a span that ends there includes it."""
    below: "TextView | None" = None

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the offsets in the original that the characters ``[start, end)`` of the view stand for."""
        low, high = self._source_span(start, end)
        if self.trailing is not None and (hanging := self.trailing.match(self.source, high)):
            high = hanging.end()
        return (low, high) if self.below is None else self.below.original_span(low, high)

    def own_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the offsets in this view of what stands for the characters ``[start, end)`` of the text below."""
        first, last = bisect_right(self.lows, start) - 1, bisect_right(self.lows, max(start, end - 1)) - 1
        low = self.starts[first]
        if self.steps[first] > 0:
            low += start - self.lows[first]
        high = self.starts[last] + end - self.lows[last] if self.steps[last] > 0 else self.starts[last + 1]
        return low, high

    def way(self, start: int, end: int) -> str:
        """Return how the characters ``[start, end)`` were decoded, outermost encoding first."""
        first = bisect_right(self.changed, end, key=lambda change: change[0]) - 1
        near = self.changed[first] if first >= 0 and self.changed[first][1] >= start else None
        ways = [] if near is None else [near[2]]
        if self.below is not None:
            outer = self.below.way(*self._source_span(start, end))
            ways = [way for way in outer.split("+") if way not in ways] + ways
        return "+".join(filter(None, ways))

    @property
    def ways(self) -> str:
        """Return all ways in which this view was decoded, sorted."""
        return "+".join(sorted({way for _, _, way in self.changed}))

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield the parts of the view that differ from the text below, with enough context."""
        low, high = -1, -1
        for start, end, _ in self.changed:
            if start - REACH > high:
                if high >= 0:
                    yield self._whole_words(low, high)
                low = max(0, start - REACH)
            high = min(len(self.text), max(high, end + REACH))
        if high >= 0:
            yield self._whole_words(low, high)

    def _source_span(self, start: int, end: int) -> tuple[int, int]:
        first, last = bisect_right(self.starts, start) - 1, bisect_right(self.starts, end - 1) - 1
        low, high = self.lows[first], self.highs[last]
        if self.steps[first] > 0:
            low += start - self.starts[first]
        if self.steps[last] > 0:
            high = self.lows[last] + end - self.starts[last]
        if first == last and self.steps[first] < 0:
            low, high = high - (end - self.starts[first]), high - (start - self.starts[first])
        return low, high

    def _whole_words(self, low: int, high: int) -> tuple[int, int]:
        """Extend a part to white space, if there is some near."""
        before = [match.end() for match in _BLANK.finditer(self.text, max(0, low - _BATCH), low)]
        after = _BLANK.search(self.text, high, min(len(self.text), high + _BATCH))
        return (before[0] if before else max(0, low - _BATCH)), (after.start() if after else high)


def respelled(
    text: str,
    changes: Iterable[Substitution],
    below: TextView | None = None,
    trailing: re.Pattern[str] | None = None,
) -> TextView:
    """Return the view of ``text`` with ``changes``, which are sorted and free of overlaps."""
    pieces: list[str] = []
    starts: list[int] = []
    lows: list[int] = []
    highs: list[int] = []
    steps: list[int] = []
    changed: list[tuple[int, int, str]] = []
    done = length = 0
    for change in changes:
        starts += (length, length + change.start - done)
        length += change.start - done
        lows += (done, change.start)
        highs += (change.start, change.end)
        steps += (1, -1 if change.backwards else 0)
        pieces += (text[done : change.start], change.plain)
        changed.append((length, length + len(change.plain), change.way))
        length += len(change.plain)
        done = change.end
    starts.append(length)
    lows.append(done)
    highs.append(len(text))
    steps.append(1)
    pieces.append(text[done:])
    return TextView("".join(pieces), starts, lows, highs, steps, changed, text, trailing, below)


def apart(changes: Iterable[Substitution]) -> list[Substitution]:
    """Return ``changes`` in order; of those that overlap, the first and longest."""
    kept: list[Substitution] = []
    for change in sorted(changes, key=lambda change: (change.start, -change.end)):
        if not kept or change.start >= kept[-1].end:
            kept.append(change)
    return kept
