"""Sets of positions of a log as runs, which a short text names: ``0-499,501-999``."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

Run = tuple[int, int]
"""The first and the last position of a run."""


class PositionRuns:
    """A set of positions; its runs are in order and do not touch."""

    __slots__ = ("_runs",)

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._runs: list[Run] = []
        for first, last in sorted(runs):
            if first < 0 or last < first:
                raise ValueError("A run of positions ends before it begins.")
            if self._runs and first <= self._runs[-1][1] + 1:
                self._runs[-1] = self._runs[-1][0], max(last, self._runs[-1][1])
            else:
                self._runs.append((first, last))

    @classmethod
    def parse(cls, text: str) -> "PositionRuns":
        """Return the positions that ``text`` names; raise ValueError where it is no such text."""
        ends = (part.partition("-") for part in text.split(",") if part)
        return cls((int(first), int(last)) for first, _, last in ends)

    @classmethod
    def of(cls, positions: Iterable[int]) -> "PositionRuns":
        """Return a set of single positions."""
        return cls((position, position) for position in positions)

    def __str__(self) -> str:
        return ",".join(f"{first}-{last}" for first, last in self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, position: int) -> bool:
        at = bisect_right(self._runs, position, key=lambda run: run[0])
        return at > 0 and position <= self._runs[at - 1][1]

    def __or__(self, other: "PositionRuns") -> "PositionRuns":
        return PositionRuns([*self._runs, *other._runs])

    def below(self, size: int) -> "PositionRuns":
        """Return those of the positions that a log of ``size`` entries has."""
        return PositionRuns((first, min(last, size - 1)) for first, last in self._runs if first < size)

    @property
    def end(self) -> int:
        """Return the size of the smallest log that has all of the positions."""
        return self._runs[-1][1] + 1 if self._runs else 0
