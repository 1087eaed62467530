"""Several workers of one host: any of them shows what all have counted, and the dead leave only their counts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import values

from app.edge.observability import FinishedRequest, Metrics
from app.edge.worker_metrics import retire, share

DETECTION = {"hits": 0, "misses": 0, "evictions": 0, "bytes": 0, "deaths": 0}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the folder of all workers; what later tests count is theirs alone again."""
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    yield tmp_path
    values.close_all_multiprocess_files()


class Worker:
    """A worker's metrics; within ``with`` this process is that worker."""

    def __init__(self, folder: Path, place: int) -> None:
        share(folder, place)
        self._values = values.ValueClass
        self.metrics = Metrics()

    def __enter__(self) -> Metrics:
        values.ValueClass = self._values
        return self.metrics

    def __exit__(self, *_: object) -> None:
        values.ValueClass = values.MutexValue


def shown(worker: Worker, name: str) -> dict[str, float]:
    """Return the samples of a metric by their labels."""
    with worker as metrics:
        text = metrics.exposition().decode()
    lines = re.findall(rf"^{name}(\{{.*\}})? (\S+)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in lines}


def request(route: str, seconds: float = 0.002) -> FinishedRequest:
    return FinishedRequest("GET", route, 200, seconds, 0, 0, "id")


def test_each_worker_shows_the_sum_of_all(folder: Path) -> None:
    workers = [Worker(folder, 0), Worker(folder, 1)]
    for worker, times in zip(workers, (3, 4), strict=True):
        with worker as metrics:
            for _ in range(times):
                metrics.begin()
                metrics.end(request("/mcp"))
                metrics.finding("email", 2)
                metrics.invocation("pii_redaction", "ok", 0.3)
    for worker in workers:
        assert shown(worker, "sluice_http_requests_total") == {'{method="GET",route="/mcp",status="200"}': 7}
        assert shown(worker, "sluice_findings_total") == {'{type="email"}': 14}
        assert shown(worker, "sluice_http_request_seconds_count") == {'{route="/mcp"}': 7}
        buckets = shown(worker, "sluice_invocation_seconds_bucket")
        assert buckets['{le="0.25",middleware="pii_redaction"}'] == 0
        assert buckets['{le="0.5",middleware="pii_redaction"}'] == 7


def test_what_workers_have_now_is_summed_or_the_worst_of_them(folder: Path) -> None:
    one, two = Worker(folder, 0), Worker(folder, 1)
    for worker, lag in ((one, 3.0), (two, 90.0)):
        with worker as metrics:
            metrics.begin()
            metrics.watch_servers(lambda: {"ready": 2})
            metrics.watch_log(lambda lag=lag: lag, dict, lambda: 0)
    assert shown(two, "sluice_audit_sealing_lag_seconds") == {"": 90}
    assert shown(one, "sluice_audit_sealing_lag_seconds") == {"": 90}
    assert shown(one, "sluice_http_requests_running") == {"": 2}
    assert shown(one, "sluice_upstream_servers")['{state="ready"}'] == 2
    memory = shown(one, "process_resident_memory_bytes")
    assert list(memory) == [""]
    assert memory[""] > 1_000_000


def test_who_takes_a_dead_workers_place_goes_on_counting_and_has_none_of_its_gauges(folder: Path) -> None:
    one, dead = Worker(folder, 0), Worker(folder, 1)
    counts = dict(DETECTION)
    with dead as metrics:
        metrics.watch_detection(lambda: counts)
        for _ in range(5):
            metrics.begin()
        metrics.end(request("/mcp"))
        counts.update(hits=10, bytes=4096)
        for _ in range(2):
            metrics.exposition()
    assert shown(one, "sluice_http_requests_running") == {"": 4}
    assert shown(one, "sluice_detection_cache_bytes") == {"": 4096}
    files = sorted(folder.iterdir())

    retire(folder, 1)
    assert shown(one, "sluice_http_requests_running") == {"": 0}
    assert shown(one, "sluice_detection_cache_bytes") == {}
    heir = Worker(folder, 1)
    with heir as metrics:
        metrics.watch_detection(lambda: {**DETECTION, "hits": 1})
        metrics.end(request("/mcp"))
        metrics.exposition()

    assert shown(one, "sluice_http_requests_total") == {'{method="GET",route="/mcp",status="200"}': 2}
    assert shown(one, "sluice_detection_cache_lookups_total")['{outcome="hit"}'] == 11
    assert sorted(folder.iterdir()) == files
