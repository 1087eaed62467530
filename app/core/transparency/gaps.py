"""Numbers that a writer has left out, found while its events come by: in order as a rule, some of them late."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class NumberRange(NamedTuple):
    """Numbers of a writer, both ends included."""

    first: int
    last: int


class WriterGap(NamedTuple):
    """Numbers of a writer that no event has."""

    writer: str
    numbers: NumberRange


class NumbersSeen(NamedTuple):
    """The highest number of a writer that came by, and lower ones that have not."""

    highest: int = 0
    missing: tuple[NumberRange, ...] = ()

    def add(self, number: int) -> "NumbersSeen":
        """Take in the number of an event."""
        if number == self.highest + 1:
            return NumbersSeen(number, self.missing)
        if number > self.highest:
            return NumbersSeen(number, (*self.missing, NumberRange(self.highest + 1, number - 1)))
        return NumbersSeen(self.highest, tuple(_without(number, self.missing)))


class NumberRun(NamedTuple):
    """Numbers of a writer that came by without a gap, and how many events were passed before the first and the last."""

    writer: str
    numbers: NumberRange
    passed: tuple[int, int]


class NumberRuns:
    """The numbers of a part of a tenant's events, in the order of its log, as `GapSearch` takes them in."""

    def __init__(self) -> None:
        self.passed = 0
        self._runs: list[list[int]] = []
        self._writers: list[str] = []
        self._newest: dict[str, list[int]] = {}

    def add(self, writer: str, number: int) -> None:
        """Take in the number of the event that stands here."""
        run = self._newest.get(writer)
        if run is not None and number == run[1] + 1:
            run[1], run[3] = number, self.passed
            return
        run = self._newest[writer] = [number, number, self.passed, self.passed]
        self._runs.append(run)
        self._writers.append(writer)

    def __iter__(self) -> Iterator[NumberRun]:
        for writer, (first, last, before, until) in zip(self._writers, self._runs, strict=True):
            yield NumberRun(writer, NumberRange(first, last), (before, until))


class GapSearch:
    """Searches the events of a tenant, in the order of its log, for gaps.

    Events that are no longer in the record may have had the numbers that are missing: as many as were `passed` between
    the neighbours of a gap explain it.
    """

    def __init__(self) -> None:
        self._seen: dict[str, NumbersSeen] = {}
        self._passed_at: dict[str, int] = {}
        self._passed = 0

    def passed(self) -> None:
        """Take in that an event stands here whose number is not known."""
        self._passed += 1

    def add(self, writer: str, number: int) -> None:
        """Take in the number of the event that stands here."""
        self._add(writer, number, self._passed)

    def take(self, part: NumberRuns) -> None:
        """Take in the part of the events that stands here."""
        for writer, (first, last), (before, until) in part:
            self._add(writer, first, self._passed + before)
            number = first + 1
            while number <= last and number <= self._seen[writer].highest:
                self._add(writer, number, self._passed + until)
                number += 1
            if number <= last:
                self._seen[writer] = NumbersSeen(last, self._seen[writer].missing)
            self._passed_at[writer] = self._passed + until
        self._passed += part.passed

    def _add(self, writer: str, number: int, passed: int) -> None:
        seen = self._seen.get(writer, NumbersSeen())
        unknown = passed - self._passed_at.get(writer, 0)
        explained = 0 < number - seen.highest - 1 <= unknown
        self._seen[writer] = NumbersSeen(number, seen.missing) if explained else seen.add(number)
        self._passed_at[writer] = passed

    def gaps(self) -> Sequence[WriterGap]:
        """Return the numbers that no event had."""
        return [WriterGap(writer, numbers) for writer, seen in self._seen.items() for numbers in seen.missing]


def _without(number: int, ranges: Sequence[NumberRange]) -> Iterator[NumberRange]:
    for first, last in ranges:
        if not first <= number <= last:
            yield NumberRange(first, last)
            continue
        if first < number:
            yield NumberRange(first, number - 1)
        if number < last:
            yield NumberRange(number + 1, last)
