"""Where all logs of a process go, and what of other libraries' records may be among them."""

import logging
import sys
from typing import Any, Final, Literal, TextIO

import structlog

from app.edge.observability import completed, json_line, places

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_OWN_LOGGERS: Final = ("app", "sluice", "uvicorn.error", "alembic")
"""Loggers whose messages are known to hold no content; of all others only the place is logged."""
_TOLD: Final = ("error", "where", "pid", "threads")
"""What our own records tell beside their text: types, places and numbers."""


def configure_logging(
    level: Literal["debug", "info", "warning", "error"] = "info",
    style: Literal["console", "json"] = "json",
    stream: TextIO | None = None,
) -> None:
    """Send all logs, the libraries' too, to ``stream`` (default: standard error), one line each."""
    processors: list[Any] = [json_line]
    if style == "console":
        processors = [completed, structlog.dev.ConsoleRenderer(colors=(stream or sys.stderr).isatty())]
    structlog.configure(
        processors=processors,
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
