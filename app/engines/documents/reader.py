"""Read documents so that none can exhaust the service: formats that may expand are read in a separate process."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import app
from app.core.errors import InvalidArgumentsError, TooLargeError, all_errors
from app.engines.documents.extraction import Extracted, extracted, media_type_of

SMALL_BYTES: Final = 64 * 1024
SHORT_S: Final = 20
"""Time limit for small documents, for which a caller waits."""
LONG_S: Final = 90
"""Time limit for others; less than the time after which a document counts as abandoned by its process."""

_PLAIN: Final = frozenset({"text/plain", "text/markdown", "text/x-markdown"})
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_FEW_TAGS: Final = 4000
"""With deliberate nesting, this many tags cost an HTML parser some milliseconds; its time grows quadratically."""
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class DocumentReader:
    """Extracts texts; formats that may expand are read in separate processes, at most ``at_once`` at a time."""

    def __init__(self, *, short_s: int = SHORT_S, long_s: int = LONG_S, at_once: int = 2) -> None:
        self._short_s = short_s
        self._long_s = long_s
        self._turns = asyncio.Semaphore(at_once)

    async def read(self, data: bytes, media_type: str, name: str = "") -> Extracted:
        """Return the text of ``data``; raises as ``extracted`` does, and TooLargeError where reading takes too much."""
        kind = media_type_of(media_type, name)
        if kind in _PLAIN or (kind in _PAGES and data.count(b"<") <= _FEW_TAGS):
            return await asyncio.to_thread(extracted, data, media_type, name)
        limit_s = self._short_s if len(data) <= SMALL_BYTES else self._long_s
        named = media_type if media_type_of(media_type, "") == kind else kind
        async with self._turns:
            return _result(await _run_process(data, named, limit_s))


async def _run_process(data: bytes, media_type: str, limit_s: int) -> bytes:
    """Return the output of the process; empty where it was killed or failed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.engines.documents.reading_process"),
        *(media_type, str(limit_s), str(os.getpid())),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
    )
    try:
        async with asyncio.timeout(limit_s):
            answer, _ = await process.communicate(data)
    except TimeoutError:
        answer = b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return answer


def _result(answer: bytes) -> Extracted:
    if not answer:
        raise TooLargeError(
            "Reading the document takes too much time or memory; split it, or send its text.",
            details={"pointer": "/content"},
        )
    output: Mapping[str, Any] = json.loads(answer)
    if "text" in output:
        return Extracted(output["title"], output["text"])
    kind = next((error for error in all_errors() if error.code == output["code"]), InvalidArgumentsError)
    raise kind(output["message"], details=output["details"])


def _environment() -> dict[str, str]:
    """Return the environment of the process: the paths that Python needs, and no secrets."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    root = str(Path(app.__file__).parent.parent)
    python_path = os.environ.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([root, python_path] if python_path else [root])
    return environment
