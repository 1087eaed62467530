"""Charts as pictures of plain shapes: they need no script, and a table beside them says the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 720.0
HEIGHT: Final = 160.0
_GAP: Final = 0.22
_LEAST: Final = 2.0
"""Height of what is there but small, so that a single refusal among thousands of calls is seen."""
_STEPS: Final = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class BarSegment:
    """A part of a bar, in units of the picture; ``kind`` names its colour."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A bar with its numbers by kind; ``address``: where it leads."""

    label: str
    x: float
    width: float
    segments: Sequence[BarSegment]
    numbers: Mapping[str, int]
    address: str | None = None

    @property
    def total(self) -> int:
        """Return the sum of the bar's numbers."""
        return sum(self.numbers.values())


@dataclass(frozen=True, slots=True)
class StackedBars:
    """A chart of bars; ``top`` is the number at its upper edge."""

    bars: Sequence[ChartBar]
    kinds: Sequence[str]
    top: int
    width: float = WIDTH
    height: float = HEIGHT

    @classmethod
    def of(
        cls,
        kinds: Sequence[str],
        rows: Sequence[tuple[str, Mapping[str, int], str | None]],
    ) -> "StackedBars":
        """Return a chart of rows: label, number by kind, and the address that a bar leads to."""
        top = round_up(max((sum(numbers.values()) for _, numbers, _ in rows), default=0))
        step = WIDTH / max(len(rows), 1)
        bars = [
            ChartBar(
                label,
                round(step * (place + _GAP / 2), 2),
                round(step * (1 - _GAP), 2),
                _stacked(kinds, numbers, top),
                {kind: numbers.get(kind, 0) for kind in kinds},
                address,
            )
            for place, (label, numbers, address) in enumerate(rows)
        ]
        return cls(bars, kinds, top)


def round_up(number: int) -> int:
    """Return the next 1, 2 or 5 with zeros that is not below ``number``."""
    power = 1
    while True:
        for step in _STEPS:
            if step * power >= number:
                return step * power
        power *= 10


def _stacked(kinds: Sequence[str], numbers: Mapping[str, int], top: int) -> list[BarSegment]:
    """Return the parts of a bar, from the ground up."""
    segments, ground = [], HEIGHT
    for kind in kinds:
        number = numbers.get(kind, 0)
        if number:
            height = min(ground, max(_LEAST, HEIGHT * number / top))
            ground -= height
            segments.append(BarSegment(kind, round(ground, 2), round(height, 2)))
    return segments
