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
_SERVER_STATES: Final = ("connecting", "ready", "failed")


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


class WatchedMetrics:
    """What parts of the service let Prometheus see of themselves, by what they return when they are asked."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sampled = SampledMetrics(registry)

    def watch_servers(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Show how many MCP servers behind this process are in each state."""
        self._sampled.gauges(
            "sluice_upstream_servers",
            "MCP servers behind this process, by the state of their connection.",
            "state",
            lambda: {**dict.fromkeys(_SERVER_STATES, 0), **counts()},
            "livemax",
        )

    def watch_log(
        self,
        sealing_s: Callable[[], float],
        anchoring_s: Callable[[], Mapping[str, float]],
        purged: Callable[[], int],
    ) -> None:
        """Show how far sealing the log and each of its anchors lag, in seconds, and how many events were purged."""
        self._sampled.counter(
            "sluice_audit_purged_events",
            "Events of the audit record that were deleted because their retention was over.",
            purged,
        )
        self._sampled.gauge(
            "sluice_audit_sealing_lag_seconds",
            "Age of the oldest event that no checkpoint covers.",
            sealing_s,
            "livemax",
        )
        self._sampled.gauges(
            "sluice_audit_anchor_lag_seconds",
            "Age of the oldest checkpoint that an anchor does not keep.",
            "anchor",
            anchoring_s,
            "livemax",
        )

    def watch_sinks(
        self,
        delivering_s: Callable[[], Mapping[str, float]],
        counts: Mapping[str, Mapping[str, Callable[[], int]]],
    ) -> None:
        """Show how far each sink of the audit record lags, in seconds.

        ``counts`` are its ``failures``, and the events that it has ``rejected`` or got ``shortened``.
        """
        self._sampled.gauges(
            "sluice_audit_sink_lag_seconds",
            "Age of the oldest sealed event that a sink does not have.",
            "sink",
            delivering_s,
            "livemax",
        )
        self._sampled.counters(
            "sluice_audit_sink_failures",
            "Batches of events that a sink did not take; they are sent again.",
            "sink",
            counts["failures"],
        )
        self._sampled.counters(
            "sluice_audit_sink_rejected_events",
            "Events that a sink has rejected for good; they are not sent again.",
            "sink",
            counts["rejected"],
        )
        self._sampled.counters(
            "sluice_audit_sink_shortened_events",
            "Events that a sink got without their details, because the whole was too large.",
            "sink",
            counts["shortened"],
        )

    def watch_custodian(self, silent_s: Callable[[], float]) -> None:
        """Show for how long who opens the key ring has not answered."""
        self._sampled.gauge(
            "sluice_key_custodian_silent_seconds",
            "Time for which the custodian of the key ring has not answered; 0 while it does, or where there is none.",
            silent_s,
            "livemax",
        )

    def watch_archive(self, lag_s: Callable[[], float], failed: Callable[[], float]) -> None:
        """Show how far the archive of the audit record is behind, and when it last failed."""
        self._sampled.gauge(
            "sluice_audit_archive_lag_seconds",
            "Time for which the oldest month that is over has not been in the archive.",
            lag_s,
            "livemax",
        )
        self._sampled.gauge(
            "sluice_audit_archive_failed_timestamp_seconds",
            "When it last failed; 0: never.",
            failed,
            "livemax",
        )

    def watch_detection(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Show ``hits``, ``misses``, ``evictions`` and ``bytes`` of the detector's cache, ``deaths`` of its workers."""
        self._sampled.counters(
            "sluice_detection_cache_lookups",
            "Texts that the detector was given, by whether it remembered their findings (hit) or not (miss).",
            "outcome",
            {"hit": lambda: counts()["hits"], "miss": lambda: counts()["misses"]},
        )
        self._sampled.counter(
            "sluice_detection_cache_evictions",
            "Entries that the detector forgot to make room for others.",
            lambda: counts()["evictions"],
        )
        self._sampled.gauge(
            "sluice_detection_cache_bytes",
            "Memory of what the detector remembers.",
            lambda: counts()["bytes"],
            "livesum",
        )
        self._sampled.counter(
            "sluice_detection_worker_deaths",
            "Detection processes that died, or were killed at a deadline, and were replaced.",
            lambda: counts()["deaths"],
        )

    def watch_rates(self, processes: Callable[[], int]) -> None:
        """Show how many processes count rates together, 0 where this one counts by itself."""
        self._sampled.gauge(
            "sluice_limits_processes",
            "Processes that count the rates of tenants together; 0: one counts by itself, as the shared place is gone.",
            processes,
            "livemin",
        )


def _follow(counter: Counter, read: Callable[[], float], seen: list[float]) -> None:
    """Add to ``counter`` what was counted since the last time; it may go on from the worker before this one."""
    now = read()
    counter.inc(max(0.0, now - seen[0]))
    seen[0] = now
