"""Metrics whose numbers stand elsewhere: read when metrics are shown, and now and then where others show them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector

Together = Literal["livesum", "livemax", "livemin"]
"""How the numbers of several live workers of one host become one."""

_PROCESS: Final[Mapping[str, Together]] = {
    "process_start_time_seconds": "livemin",
    "process_max_fds": "livemin",
}


class SampledMetrics:
    """Gauges and counters that ``refresh`` sets from what their ``read`` returns."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._refreshes: list[Callable[[], None]] = []

    def refresh(self) -> None:
        """Read all numbers anew."""
        for refresh in self._refreshes:
            refresh()

    def gauge(self, name: str, text: str, read: Callable[[], float], together: Together) -> None:
        """Show what ``read`` returns."""
        gauge = Gauge(name, text, registry=self._registry, multiprocess_mode=together)
        self._refreshes.append(lambda: gauge.set(read()))

    def gauges(
        self, name: str, text: str, label: str, read: Callable[[], Mapping[str, float]], together: Together
    ) -> None:
        """Show each number that ``read`` returns, with its name under ``label``."""
        gauge = Gauge(name, text, [label], registry=self._registry, multiprocess_mode=together)

        def refresh() -> None:
            for value, number in read().items():
                gauge.labels(value).set(number)

        self._refreshes.append(refresh)

    def counter(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Count what ``read`` returns, which never falls and begins at 0 with this process."""
        counter = Counter(name, text, registry=self._registry)
        self._refreshes.append(partial(_follow, counter, read, [0.0]))

    def counters(self, name: str, text: str, label: str, read: Mapping[str, Callable[[], float]]) -> None:
        """Count as ``counter`` does for each name under ``label``."""
        counter = Counter(name, text, [label], registry=self._registry)
        for value, read_value in read.items():
            self._refreshes.append(partial(_follow, counter.labels(value), read_value, [0.0]))

    def process(self) -> None:
        """Show time, memory and files of this process under the names that all clients of Prometheus use."""
        collector = ProcessCollector(registry=None)
        current: dict[str, float] = {}

        def read() -> None:
            current.update((family.name, family.samples[0].value) for family in collector.collect())

        self._refreshes.append(read)
        for family in collector.collect():
            value = partial(current.__getitem__, family.name)
            if family.type == "counter":
                self.counter(family.name, family.documentation, value)
            else:
                self.gauge(family.name, family.documentation, value, _PROCESS.get(family.name, "livesum"))


def _follow(counter: Counter, read: Callable[[], float], seen: list[float]) -> None:
    """Add to ``counter`` what was counted since the last time; it may go on from the worker before this one."""
    now = read()
    counter.inc(max(0.0, now - seen[0]))
    seen[0] = now
