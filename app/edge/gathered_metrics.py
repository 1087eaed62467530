"""Counts and durations that are gathered in plain numbers and shown when somebody asks: each request has several.

The library takes a lock for each number that it adds, and looks for the place of a duration one bound after the other.
It keeps what several workers show together, and what threads count.
"""

import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""The bounds of durations."""

Labels = tuple[str, ...]


class Counts(Protocol):
    """A number for each set of labels, which only grows."""

    def add(self, labels: Labels) -> None:
        """Add one to the number of ``labels``."""
        ...


class Durations(Protocol):
    """How long things took, for each set of labels."""

    def observe(self, labels: Labels, seconds: float) -> None:
        """Count one more thing that took so long."""
        ...


def counts(
    registry: CollectorRegistry, name: str, text: str, labels: Sequence[str], *, shared: bool
) -> Counts:
    """Return a new counter of ``registry``; ``shared``: other processes show it, too."""
    if shared:
        return _LibraryCounts(Counter(name, text, labels, registry=registry))
    own = _GatheredCounts(name, text, labels)
    registry.register(own)
    return own


def durations(
    registry: CollectorRegistry, name: str, text: str, labels: Sequence[str], *, shared: bool
) -> Durations:
    """Return a new histogram of ``registry`` with the bounds `SECONDS`; ``shared``: other processes show it, too."""
    if shared:
        return _LibraryDurations(Histogram(name, text, labels, buckets=SECONDS, registry=registry))
    own = _GatheredDurations(name, text, labels)
    registry.register(own)
    return own


class Children(dict[Labels, Any]):
    """The children of a metric by the values of their labels, which the library looks up under a lock each time."""

    def __init__(self, metric: Any) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, values: Labels) -> Any:
        child = self[values] = self._metric.labels(*values)
        return child


class _LibraryCounts:
    def __init__(self, counter: Counter) -> None:
        self._children = Children(counter)

    def add(self, labels: Labels) -> None:
        self._children[labels].inc()


class _LibraryDurations:
    def __init__(self, histogram: Histogram) -> None:
        self._children = Children(histogram)

    def observe(self, labels: Labels, seconds: float) -> None:
        self._children[labels].observe(seconds)


class _GatheredCounts(Collector):
    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        self._described = name, text, tuple(labels)
        self._numbers: dict[Labels, int] = {}
        self._created: dict[Labels, float] = {}

    def add(self, labels: Labels) -> None:
        number = self._numbers.get(labels)
        if number is None:
            self._created[labels], number = time.time(), 0
        self._numbers[labels] = number + 1

    def collect(self) -> Iterable[Metric]:
        name, text, names = self._described
        family = CounterMetricFamily(name, text, labels=names)
        for labels, number in self._numbers.items():
            family.add_metric(labels, number, created=self._created[labels])
        return (family,)

    def describe(self) -> Iterable[Metric]:
        name, text, names = self._described
        return (CounterMetricFamily(name, text, labels=names),)


class _Row:
    """The numbers of one set of labels: how many between two bounds each, and all seconds."""

    __slots__ = ("created", "numbers", "seconds")

    def __init__(self) -> None:
        self.numbers = [0] * (len(SECONDS) + 1)
        self.seconds = 0.0
        self.created = time.time()


class _GatheredDurations(Collector):
    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        self._described = name, text, tuple(labels)
        self._rows: dict[Labels, _Row] = {}

    def observe(self, labels: Labels, seconds: float) -> None:
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = _Row()
        row.numbers[bisect_left(SECONDS, seconds)] += 1
        row.seconds += seconds

    def collect(self) -> Iterable[Metric]:
        name, text, names = self._described
        family = HistogramMetricFamily(name, text, labels=names)
        for labels, row in self._rows.items():
            below, buckets = 0, []
            for bound, number in zip((*map(float, SECONDS), "+Inf"), row.numbers, strict=True):
                below += number
                buckets.append((str(bound), below))
            family.add_metric(labels, buckets, row.seconds)
            family.add_sample(f"{name}_created", dict(zip(names, labels, strict=True)), row.created)
        return (family,)

    def describe(self) -> Iterable[Metric]:
        name, text, names = self._described
        return (HistogramMetricFamily(name, text, labels=names),)
