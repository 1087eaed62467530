"""What operators see of the service while it runs: structured logs and metrics, neither with content."""

import logging
import sys
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TextIO

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest

from app.edge.detection_metrics import DetectionCollector

UNMATCHED: Final = "unmatched"
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_OWN_LOGGERS: Final = ("app", "sluice", "uvicorn.error", "alembic")
"""Loggers whose messages are known to hold no content; of all others only the place is logged."""
_FRAMES: Final = 12
_ROUTINE: Final = frozenset({"/livez", "/readyz", "/metrics"})
"""Asked every few seconds by machines: logged at the level debug unless something is wrong."""
_FIRST_ERROR: Final = 400
_SERVER_STATES: Final = ("connecting", "ready", "failed")


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """One finished request, as logs and metrics tell it."""

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
    """The Prometheus metrics of one process; labels are routes, middlewares and outcomes, never tenants."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "sluice_http_requests",
            "Finished HTTP requests.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "sluice_http_request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._errors = Counter(
            "sluice_errors", "Requests that were refused or failed.", ["code"], registry=self.registry
        )
        self._running = Gauge("sluice_http_requests_running", "Requests in progress.", registry=self.registry)
        self._invocations = Counter(
            "sluice_invocations",
            "Invocations of middlewares over any surface.",
            ["middleware", "outcome"],
            registry=self.registry,
        )
        self._invocation_seconds = Histogram(
            "sluice_invocation_seconds",
            "Duration of invocations.",
            ["middleware"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._engines = Counter(
            "sluice_engine_calls",
            "Calls to configured engines: served, fallback, refused; in shadow mode agreed, differed, shadow_failed, "
            "shadow_dropped.",
            ["capability", "outcome"],
            registry=self.registry,
        )
        self._servers = Gauge(
            "sluice_upstream_servers",
            "MCP servers behind this process, by the state of their connection.",
            ["state"],
            registry=self.registry,
        )

    def watch_servers(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Show how many MCP servers behind this process are in each state; ``counts`` is asked at each exposition."""
        for state in _SERVER_STATES:
            self._servers.labels(state).set_function(partial(_count_of, counts, state))

    def watch_detection(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Show what the detector counts, see `DetectionCollector`."""
        self.registry.register(DetectionCollector(counts))

    def begin(self) -> None:
        """Count a request as running."""
        self._running.inc()

    def end(self, exchange: FinishedRequest) -> None:
        """Count a request as finished."""
        self._running.dec()
        method = exchange.method if exchange.method in _METHODS else "other"
        self._requests.labels(method, exchange.route, str(exchange.status)).inc()
        self._seconds.labels(exchange.route).observe(exchange.seconds)
        if exchange.error_code is not None:
            self._errors.labels(exchange.error_code).inc()

    def invocation(self, middleware: str, outcome: str, seconds: float) -> None:
        """Count one invocation of a middleware that exists."""
        self._invocations.labels(middleware, outcome).inc()
        self._invocation_seconds.labels(middleware).observe(seconds)

    def engine(self, capability: str, outcome: str) -> None:
        """Count what became of one call to an engine elsewhere."""
        self._engines.labels(capability, outcome).inc()

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def _count_of(counts: Callable[[], Mapping[str, int]], state: str) -> float:
    return counts().get(state, 0)


def places(error: BaseException) -> list[str]:
    """Return where ``error`` was raised, innermost last; never what it says, which may be content."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}:{frame.name}" for frame in frames]


def log_request(logger: Any, exchange: FinishedRequest) -> None:
    """Write the access log's line; the path is its template, so that no identifier or query is logged."""
    fields: dict[str, Any] = {
        "method": exchange.method if exchange.method in _METHODS else "other",
        "route": exchange.route,
        "status": exchange.status,
        "duration_ms": round(exchange.seconds * 1000, 2),
        "bytes_in": exchange.bytes_in,
        "bytes_out": exchange.bytes_out,
        "request_id": exchange.request_id,
    }
    for name in ("client_request_id", "error_code", "tenant", "key_id", "middleware"):
        value = getattr(exchange, name)
        if value is not None:
            fields[name] = value
    routine = exchange.route in _ROUTINE and exchange.status < _FIRST_ERROR
    (logger.debug if routine else logger.info)("request", **fields)


def log_bug(logger: Any, error: BaseException, request_id: str) -> None:
    """Log an exception that nobody expected, by its type and place."""
    logger.error("bug", request_id=request_id, exception=type(error).__qualname__, where=places(error))


def configure_logging(
    level: Literal["debug", "info", "warning", "error"] = "info",
    style: Literal["console", "json"] = "json",
    stream: TextIO | None = None,
) -> None:
    """Send all logs, the libraries' too, to ``stream`` (default: standard error), one line each."""
    renderer: Any = structlog.processors.JSONRenderer()
    if style == "console":
        renderer = structlog.dev.ConsoleRenderer(colors=(stream or sys.stderr).isatty())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper("iso", utc=True),
            _without_exception_text,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [_LibraryHandler()]
    root.setLevel(max(_LEVELS[level], logging.INFO))
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True
    # The access log is ours: uvicorn's prints the raw path and query.
    logging.getLogger("uvicorn.access").handlers = []
    logging.getLogger("uvicorn.access").propagate = False


_TOLD: Final = ("error", "where", "pid", "threads")
"""What our own records tell beside their text: types, places and numbers."""


class _LibraryHandler(logging.Handler):
    """Pass records of the standard library's logging on, without what may hold content."""

    def emit(self, record: logging.LogRecord) -> None:
        own = record.name.startswith(_OWN_LOGGERS)
        if not own and record.levelno < logging.WARNING:
            return
        fields: dict[str, Any] = {"logger": record.name}
        if own:
            fields |= {name: vars(record)[name] for name in _TOLD if name in vars(record)}
        else:
            fields["where"] = [f"{record.filename}:{record.lineno}:{record.funcName}"]
        if record.exc_info and record.exc_info[1] is not None:
            fields["exception"] = type(record.exc_info[1]).__qualname__
            fields["where"] = places(record.exc_info[1])
        event = record.getMessage().strip() if own else "a library reports"
        structlog.get_logger().log(record.levelno, event, **fields)


def _without_exception_text(
    logger: Any,  # noqa: ARG001 - structlog's signature
    method: str,  # noqa: ARG001 - as above
    event: MutableMapping[str, Any],
) -> Mapping[str, Any]:
    problem = event.pop("exc_info", None)
    error = sys.exc_info()[1] if problem is True else problem
    if isinstance(error, BaseException):
        event["exception"] = type(error).__qualname__
        event["where"] = places(error)
    return event
