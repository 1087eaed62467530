"""Reading one document in this process, which was started for it: bounded in memory and time, without secrets.

Started as ``python -m app.engines.documents.reading_process <media type> <seconds> <pid of the parent>``: the document
comes on standard input, what was read goes to standard output as JSON. Nothing else is ever written.
"""

import ctypes
import json
import logging
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import Any, Final

from app.core.errors import ServiceError
from app.engines.documents.extraction import extracted

MOST_BYTES: Final = 1024**3
"""Address space; some times what the longest honest documents take."""
_PR_SET_PDEATHSIG: Final = 1


def main() -> None:
    """Read the document, answer, and end."""
    media_type, seconds, parent = sys.argv[1:4]
    _end_with(int(parent))
    _limit(int(seconds))
    logging.disable(logging.CRITICAL)
    sys.stdout.buffer.write(json.dumps(_read(sys.stdin.buffer.read(), media_type)).encode())


def _read(data: bytes, media_type: str) -> dict[str, Any]:
    try:
        found = extracted(data, media_type)
    except ServiceError as error:
        return {"code": error.code, "message": error.message, "details": error.details}
    return {"title": found.title, "text": found.text}


def _limit(seconds: int) -> None:
    # Not every system has each of these limits; the parent ends this process anyway when its time is over.
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
