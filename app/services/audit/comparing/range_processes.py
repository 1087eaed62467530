"""Verify parts of the log in several processes at once, which end with this one, however it ends."""

import asyncio
import os
import pickle
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol, cast

import app
from app.core.errors import ServiceError, StoreUnavailableError
from app.engines.cipher import RecordKeys
from app.services.audit.comparing.comparison import ComparedPart, LogPart
from app.services.audit.comparing.range_process import LENGTH, Opening, framed
from app.services.audit.comparing.ranges import LogRanges, VerifiedTree
from app.store.audit.log import Head
from app.store.database import Database

WORTH: Final = 100_000
"""Events from which on more than one process is started: one takes about a second to load."""
_DIED: Final = "A process that compares events ended before it answered. Verify again with --processes 1."
_PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH")


class Work(Protocol):
    """Verifies parts of the log, in this process or in others; see `LogRanges`."""

    async def tree(self, head: Head, entries: int, /) -> VerifiedTree:
        """Verify a tenant's tree."""
        ...

    async def compare(self, part: LogPart, /) -> ComparedPart:
        """Compare the events of a part."""
        ...


@asynccontextmanager
async def working(database: Database, keys: RecordKeys, processes: int) -> AsyncIterator[Work]:
    """Work in this process (1) or in others; they are ended with the block."""
    if processes == 1:
        yield _Here(LogRanges(database, keys))
        return
    url = database.url.render_as_string(hide_password=False)
    opening = framed(Opening(url, database.direct_url, database.patience, keys))
    started: list[asyncio.subprocess.Process] = []
    try:
        for _ in range(processes):
            process = await _started()
            started.append(process)
            _pipe(process)[1].write(opening)
        yield _Elsewhere(started)
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                process.kill()
        for process in started:
            await process.wait()


def usual_processes(events: int) -> int:
    """Return how many processes are worth their start: one for each processor that this one may use."""
    if events < WORTH:
        return 1
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


class _Here:
    """Works in this process, on one part at a time."""

    def __init__(self, ranges: LogRanges) -> None:
        self._ranges = ranges
        self._turn = asyncio.Lock()

    async def tree(self, head: Head, entries: int, /) -> VerifiedTree:
        async with self._turn:
            return await self._ranges.tree(head, entries)

    async def compare(self, part: LogPart, /) -> ComparedPart:
        async with self._turn:
            return await self._ranges.compare(part)


class _Elsewhere:
    """Works in other processes, on one part at a time in each."""

    def __init__(self, processes: Sequence[asyncio.subprocess.Process]) -> None:
        self._free: asyncio.Queue[asyncio.subprocess.Process] = asyncio.Queue()
        for process in processes:
            self._free.put_nowait(process)

    async def tree(self, head: Head, entries: int, /) -> VerifiedTree:
        return cast("VerifiedTree", await self._ask("tree", head, entries))

    async def compare(self, part: LogPart, /) -> ComparedPart:
        return cast("ComparedPart", await self._ask("compare", part))

    async def _ask(self, method: str, *arguments: object) -> Any:
        process = await self._free.get()
        answers, questions = _pipe(process)
        try:
            questions.write(framed((method, arguments)))
            await questions.drain()
            length = int.from_bytes(await answers.readexactly(LENGTH), "big")
            answer = pickle.loads(await answers.readexactly(length))  # noqa: S301 - of our own process
        except (asyncio.IncompleteReadError, OSError):
            raise StoreUnavailableError(_DIED) from None
        finally:
            self._free.put_nowait(process)
        if isinstance(answer, ServiceError):
            raise answer
        return answer


async def _started() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        # -P: the folder that the command was started in may hold another package of our name.
        *(sys.executable, "-P", "-m", "app.services.audit.comparing.range_process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
        # A Ctrl-C is for the command, which ends its processes.
        start_new_session=True,
    )


def _environment() -> dict[str, str]:
    """Return Python's search paths, and no settings or secrets."""
    root = str(Path(app.__file__).parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**passed_on, "PYTHONPATH": os.pathsep.join(paths)}


def _pipe(process: asyncio.subprocess.Process) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return cast("asyncio.StreamReader", process.stdout), cast("asyncio.StreamWriter", process.stdin)
