"""Read documents so that none can exhaust the service: formats that may expand are read in a separate process."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress
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

STALLED_S: Final = 30
"""Time limit for one part of a document, such as a page: a parser that needs longer will not end in time."""

_TOLD_BYTES: Final = 4096
_PLAIN: Final = frozenset({"text/plain", "text/markdown", "text/x-markdown"})
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_FEW_TAGS: Final = 4000
"""With deliberate nesting, this many tags cost an HTML parser some milliseconds; its time grows quadratically."""
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class DocumentReader:
    """Extracts texts; formats that may expand are read in separate processes, at most ``at_once`` at a time.

    A process that reads nothing for ``stalled_s`` seconds is ended before its time.
    """

    def __init__(
        self, *, short_s: int = SHORT_S, long_s: int = LONG_S, stalled_s: float = STALLED_S, at_once: int = 2
    ) -> None:
        self.at_once = at_once
        self._short_s = short_s
        self._long_s = long_s
        self._stalled_s = stalled_s
        self._turns = asyncio.Semaphore(at_once)

    async def read(self, data: bytes, media_type: str, name: str = "") -> Extracted:
        """Return the text of ``data``; raises as ``extracted`` does, and TooLargeError where reading takes too much."""
        kind = media_type_of(media_type, name)
        if kind in _PLAIN or (kind in _PAGES and data.count(b"<") <= _FEW_TAGS):
            return await asyncio.to_thread(extracted, data, media_type, name)
        limit_s = self._short_s if len(data) <= SMALL_BYTES else self._long_s
        named = media_type if media_type_of(media_type, "") == kind else kind
        async with self._turns:
            return _result(await _run_process(data, named, limit_s, self._stalled_s))


async def _run_process(data: bytes, media_type: str, limit_s: int, stalled_s: float) -> bytes:
    """Return the output of the process; empty where it was killed, failed or did not get on."""
    process = await asyncio.create_subprocess_exec(
        # -P: the folder that the service was started in may hold another package of our name.
        *(sys.executable, "-P", "-m", "app.engines.documents.reading_process"),
        *(media_type, str(limit_s), str(os.getpid())),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
    )
    try:
        async with asyncio.timeout(limit_s), asyncio.TaskGroup() as group:
            group.create_task(_watch(process, stalled_s))
            sending = group.create_task(_send(process, data))
            answer = await _all_of(process)
            sending.cancel()
    except (TimeoutError, ExceptionGroup):
        answer = b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return answer


async def _send(process: Process, data: bytes) -> None:
    assert process.stdin is not None  # noqa: S101 - it was made a pipe
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()


async def _all_of(process: Process) -> bytes:
    assert process.stdout is not None  # noqa: S101 - it was made a pipe
    return await process.stdout.read()


async def _watch(process: Process, stalled_s: float) -> None:
    """Return when the process ends; raise TimeoutError where it tells nothing for too long."""
    assert process.stderr is not None  # noqa: S101 - it was made a pipe
    async with asyncio.timeout(stalled_s) as patience:
        while await process.stderr.read(_TOLD_BYTES):
            patience.reschedule(asyncio.get_running_loop().time() + stalled_s)


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
