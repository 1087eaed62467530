"""Reading documents so that none of them can take the service's memory or time: those that unfold are read apart."""

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
"""For small documents, for which somebody waits."""
LONG_S: Final = 90
"""For others; less than the time after which a document counts as given up by its process."""

_PLAIN: Final = frozenset({"text/plain", "text/markdown", "text/x-markdown"})
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_FEW_TAGS: Final = 4000
"""Nested on purpose, so many tags cost an HTML parser some milliseconds; its time grows with their square."""
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class DocumentReader:
    """Extracts texts: formats that a few bytes can blow up in a process of their own, at most two at a time."""

    def __init__(self, *, short_s: int = SHORT_S, long_s: int = LONG_S, at_once: int = 2) -> None:
        self._short_s = short_s
        self._long_s = long_s
        self._turns = asyncio.Semaphore(at_once)

    async def read(self, data: bytes, media_type: str, name: str = "") -> Extracted:
        """Return the text of ``data``; raise as ``extracted`` does, and TooLargeError where it takes too much."""
        kind = media_type_of(media_type, name)
        if kind in _PLAIN or (kind in _PAGES and data.count(b"<") <= _FEW_TAGS):
            return await asyncio.to_thread(extracted, data, media_type, name)
        limit_s = self._short_s if len(data) <= SMALL_BYTES else self._long_s
        named = media_type if media_type_of(media_type, "") == kind else kind
        async with self._turns:
            return _result(await _answered(data, named, limit_s))


async def _answered(data: bytes, media_type: str, limit_s: int) -> bytes:
    """Return what the process says; nothing where it was ended or broke."""
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
    said: Mapping[str, Any] = json.loads(answer)
    if "text" in said:
        return Extracted(said["title"], said["text"])
    kind = next((one for one in all_errors() if one.code == said["code"]), InvalidArgumentsError)
    raise kind(said["message"], details=said["details"])


def _environment() -> dict[str, str]:
    """Return the environment of the process: where Python finds things, and no secrets."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    root = str(Path(app.__file__).parent.parent)
    given = os.environ.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([root, given] if given else [root])
    return environment
