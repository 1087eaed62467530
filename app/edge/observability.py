"""What operators see of the service while it runs: structured logs and metrics, neither with content."""

import asyncio
import json
import sys
import time
import traceback
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Protocol

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from app.core.background import meanwhile
from app.edge.sampled_metrics import WatchedMetrics
from app.edge.worker_metrics import shared_folder, summed

UNMATCHED: Final = "unmatched"
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_FRAMES: Final = 12
_ROUTINE: Final = frozenset({"/livez", "/readyz", "/metrics"})
"""Asked every few seconds by machines: logged at the level debug unless something is wrong."""
_FIRST_ERROR: Final = 400
_OPTIONAL_FIELDS: Final = ("client_request_id", "error_code", "tenant", "key_id", "middleware")
_FINISHED: Final = "finished"
_ONLY_FINISHED: Final = 2
"""Fields of an event that says no more than that a request is finished: its name, and the request."""
_JSON_LINE: Final = json.JSONEncoder(default=repr)
_quoted: Final = json.encoder.encode_basestring_ascii
_REFRESHED_S: Final = 5.0


@dataclass(slots=True)
class FinishedRequest:
    """One finished request, as logs and metrics tell it; not frozen, which would take three times as long to make."""

    method: str
    route: str
    status: int
    seconds: float
    bytes_in: int
    bytes_out: int
    request_id: str
    client_request_id: str | None = None
    error_code: str | None = None
    tenant: str | None = None
    key_id: str | None = None
    middleware: str | None = None


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


class Metrics(WatchedMetrics):
    """The Prometheus metrics of one process, or of all workers of one host (`app.edge.worker_metrics`).

    Labels are routes, middlewares, outcomes and types, never tenants.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        super().__init__(self.registry)
        self._folder = shared_folder()
        self._in_progress = 0
        self._sampled.process()
        self._sampled.gauge(
            "sluice_http_requests_running", "Requests in progress.", lambda: self._in_progress, "livesum"
        )
        self._requests = self._counts(
            "sluice_http_requests", "Finished HTTP requests.", "method", "route", "status"
        )
        self._seconds = self._durations(
            "sluice_http_request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            "route",
        )
        self._errors_of = self._counter("sluice_errors", "Requests that were refused or failed.", "code")
        self._invocations = self._counts(
            "sluice_invocations", "Invocations of middlewares over any surface.", "middleware", "outcome"
        )
        self._invocation_seconds = self._durations(
            "sluice_invocation_seconds", "Duration of invocations.", "middleware"
        )
        self._findings_of = self._counter(
            "sluice_findings",
            "What calls found and have on record, by type; the same value in two calls counts twice.",
            "type",
        )
        self._engines_of = self._counter(
            "sluice_engine_calls",
            "Calls to configured engines: served, fallback, refused; in shadow mode agreed, differed, shadow_failed, "
            "shadow_dropped.",
            "capability",
            "outcome",
        )

    def _counter(self, name: str, text: str, *labels: str) -> Children:
        return Children(Counter(name, text, labels, registry=self.registry))

    def _counts(self, name: str, text: str, *labels: str) -> Counts:
        return counts(self.registry, name, text, labels, shared=self._folder is not None)

    def _durations(self, name: str, text: str, *labels: str) -> Durations:
        return durations(self.registry, name, text, labels, shared=self._folder is not None)

    def begin(self) -> None:
        """Count a request as running."""
        self._in_progress += 1

    def end(self, exchange: FinishedRequest) -> None:
        """Count a request as finished."""
        self._in_progress -= 1
        method = exchange.method if exchange.method in _METHODS else "other"
        self._requests.add((method, exchange.route, str(exchange.status)))
        self._seconds.observe((exchange.route,), exchange.seconds)
        if exchange.error_code is not None:
            self._errors_of[exchange.error_code,].inc()

    def invocation(self, middleware: str, outcome: str, seconds: float) -> None:
        """Count one invocation of a middleware that exists."""
        self._invocations.add((middleware, outcome))
        self._invocation_seconds.observe((middleware,), seconds)

    def finding(self, kind: str, number: int) -> None:
        """Count ``number`` findings of a type that the installation knows."""
        self._findings_of[kind,].inc(number)

    def engine(self, capability: str, outcome: str) -> None:
        """Count what became of one call to an engine elsewhere."""
        self._engines_of[capability, outcome].inc()

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        self._sampled.refresh()
        return self._written()

    async def shown(self) -> bytes:
        """Return the same, without keeping the event loop from requests where there are files to read."""
        self._sampled.refresh()
        return self._written() if self._folder is None else await asyncio.to_thread(self._written)

    def _written(self) -> bytes:
        return generate_latest(self.registry) if self._folder is None else summed(self._folder)

    @asynccontextmanager
    async def shown_elsewhere(self) -> AsyncIterator[None]:
        """Keep the numbers fresh that other workers show of this one, while the body runs."""
        if self._folder is None:
            yield
            return
        async with meanwhile(self._refresh_forever(), name="metrics"):
            yield

    async def _refresh_forever(self) -> None:
        while True:
            self._sampled.refresh()
            await asyncio.sleep(_REFRESHED_S)


def places(error: BaseException) -> list[str]:
    """Return where ``error`` was raised, innermost last; never what it says, which may be content."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}:{frame.name}" for frame in frames]


def log_request(logger: Any, exchange: FinishedRequest) -> None:
    """Write the access log's line; the path is its template, so that no identifier or query is logged."""
    routine = exchange.route in _ROUTINE and exchange.status < _FIRST_ERROR
    (logger.debug if routine else logger.info)("request", finished=exchange)


def _fields_of(exchange: FinishedRequest) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "method": exchange.method if exchange.method in _METHODS else "other",
        "route": exchange.route,
        "status": exchange.status,
        "duration_ms": round(exchange.seconds * 1000, 2),
        "bytes_in": exchange.bytes_in,
        "bytes_out": exchange.bytes_out,
        "request_id": exchange.request_id,
    }
    for name in _OPTIONAL_FIELDS:
        value = getattr(exchange, name)
        if value is not None:
            fields[name] = value
    return fields


def log_bug(logger: Any, error: BaseException, request_id: str) -> None:
    """Log an exception that nobody expected, by its type and place."""
    logger.error("bug", request_id=request_id, exception=type(error).__qualname__, where=places(error))


def json_line(logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
    """Return an event, completed, as one line of JSON."""
    finished: FinishedRequest | None = event.get(_FINISHED)
    if finished is not None and len(event) == _ONLY_FINISHED:
        return _request_line(finished, event["event"], method)
    return _JSON_LINE.encode(completed(logger, method, event))


def _request_line(finished: FinishedRequest, event: str, level: str) -> str:
    """Return the line of a finished request, of which there is one for each: the encoder takes far longer."""
    usual = _usual_fields(*_usual_values(finished))
    client_id = finished.client_request_id
    client = "" if client_id is None else f', "client_request_id": {_quoted(client_id)}'
    return (
        f'{usual[0]}"duration_ms": {round(finished.seconds * 1000, 2)!r}, "bytes_in": {finished.bytes_in}, '
        f'"bytes_out": {finished.bytes_out}, "request_id": {_quoted(finished.request_id)}{client}{usual[1]}, '
        f'"event": {_quoted(event)}, "level": "{level}", "timestamp": "{_timestamp()}"}}'
    )


_usual_values: Final = attrgetter("method", "route", "status", "error_code", "tenant", "key_id", "middleware")


@lru_cache(1024)
def _usual_fields(method: str, route: str, status: int, *optional: str | None) -> tuple[str, str]:
    """Return what many requests have in common: the beginning of their line, and the fields behind its numbers."""
    named = zip(_OPTIONAL_FIELDS[1:], optional, strict=True)
    method = method if method in _METHODS else "other"
    return (
        f'{{"method": "{method}", "route": {_quoted(route)}, "status": {status:d}, ',
        "".join([f', "{name}": {_quoted(value)}' for name, value in named if value is not None]),
    )


def _timestamp() -> str:
    """Return this moment as ISO 8601 has it, in UTC; only the microseconds differ from line to line."""
    seconds, micros = divmod(time.time_ns() // 1000, 1_000_000)
    return f"{_second(seconds)}.{micros:06d}Z"


@lru_cache(4)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def completed(
    logger: Any,
    method: str,
    event: MutableMapping[str, Any],
) -> Mapping[str, Any]:
    """Add the level and the time; tell a finished request by its fields, an exception by its type and place."""
    finished: FinishedRequest | None = event.pop(_FINISHED, None)
    if finished is not None:
        event = {**_fields_of(finished), **event}
    event = structlog.processors.add_log_level(logger, method, event)
    event["timestamp"] = _timestamp()
    problem = event.pop("exc_info", None)
    error = sys.exc_info()[1] if problem is True else problem
    if isinstance(error, BaseException):
        event["exception"] = type(error).__qualname__
        event["where"] = places(error)
    return event
