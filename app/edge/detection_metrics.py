"""How detection fares in this process, read where it is counted at each exposition."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class DetectionCollector(Collector):
    """Shows ``counts``: ``hits``, ``misses``, ``evictions`` and ``bytes`` of the cache, ``deaths`` of workers."""

    def __init__(self, counts: Callable[[], Mapping[str, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        counts = self._counts()
        lookups = CounterMetricFamily(
            "sluice_detection_cache_lookups",
            "Texts that the detector was given, by whether it remembered their findings (hit) or not (miss).",
            labels=["outcome"],
        )
        lookups.add_metric(["hit"], counts["hits"])
        lookups.add_metric(["miss"], counts["misses"])
        yield lookups
        yield CounterMetricFamily(
            "sluice_detection_cache_evictions",
            "Entries that the detector forgot to make room for others.",
            value=counts["evictions"],
        )
        yield GaugeMetricFamily(
            "sluice_detection_cache_bytes", "Memory of what the detector remembers.", value=counts["bytes"]
        )
        yield CounterMetricFamily(
            "sluice_detection_worker_deaths",
            "Detection processes that died, or were killed at a deadline, and were replaced.",
            value=counts["deaths"],
        )
