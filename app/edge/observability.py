"""What operators see of the service while it runs: structured logs and metrics, neither with content."""

import asyncio
import json
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.exposition import generate_latest

from app.core.background import meanwhile
from app.edge.gathered_metrics import Children, Counts, Durations, counts, durations
from app.edge.sampled_metrics import SampledMetrics
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
_SERVER_STATES: Final = ("connecting", "ready", "failed")


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


class Metrics:
    """The Prometheus metrics of one process, or of all workers of one host (`app.edge.worker_metrics`).

    Labels are routes, middlewares, outcomes and types, never tenants.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._folder = shared_folder()
        self._in_progress = 0
        self._sampled = SampledMetrics(self.registry)
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
