"""Read one document in a process started for it: bounded in memory and time, without secrets.

Started as ``python -m app.engines.documents.reading_process <media type> <seconds> <pid of the parent>``. The document
comes on standard input; the result goes to standard output as JSON. A byte on standard error, at most two a second,
says that the parser gets on. Nothing else is ever written.
"""

import ctypes
import json
import logging
import os
import resource
import signal
import sys
from contextlib import suppress
from time import monotonic
from typing import Any, Final

from app.core.errors import ServiceError
from app.engines.documents.extraction import extracted
from app.engines.documents.parsing import hear_progress

MOST_BYTES: Final = 1024**3
"""Limit of the address space; several times what the longest normal documents need."""
_PR_SET_PDEATHSIG: Final = 1
_TELLING_S: Final = 0.5


def main() -> None:
    """Read the document, write the result, and exit."""
    media_type, seconds, parent = sys.argv[1:4]
    _end_with(int(parent))
    _limit(int(seconds))
    logging.disable(logging.CRITICAL)
    hear_progress(_Telling())
    sys.stdout.buffer.write(json.dumps(_read(sys.stdin.buffer.read(), media_type)).encode())


class _Telling:
    """Writes a byte where a part was read, unless it did so a moment ago: the parent reads it when it comes to it."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self) -> None:
        now = monotonic()
        if now - self._last > _TELLING_S:
            self._last = now
            os.write(sys.stderr.fileno(), b".")


def _read(data: bytes, media_type: str) -> dict[str, Any]:
    try:
        document = extracted(data, media_type)
    except ServiceError as error:
        return {"code": error.code, "message": error.message, "details": error.details}
    return {"title": document.title, "text": document.text}


def _limit(seconds: int) -> None:
    # Not every system has each of these limits; the parent kills this process anyway when its time is over.
    for kind, most in (
        (resource.RLIMIT_AS, MOST_BYTES),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
