"""One loaded detection process for the services of a test process: their pools fork their workers from it.

Loading takes a second of processor time, and dozens of tests start the whole service. Tests of the processes
themselves, and services with recognizers of their own, load as the service does.
"""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from unittest import mock

from app.engines.pii.processes import forking, frames, process
from app.engines.pii.processes.forking import Zygote
from app.engines.pii.processes.process import WorkerProcess
from app.engines.pii.processes.startup import Startup
from tests.processes import close_at_the_end

_load = Zygote.spawn
# The process ends with the thread that started it, and this one lives as long as the tests.
_starter = ThreadPoolExecutor(1)


class Loaded:
    """The process, with what the pools know of it."""

    def __init__(self) -> None:
        startup = Startup()
        self.version = startup.version
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setblocking(False)
        # Workers are forked one at a time, whichever pool wants them.
        self.turn = threading.Lock()
        module = "app.engines.pii.processes.zygote"
        with theirs:
            self.child = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(os.getpid()), str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=process._environment(),
                pass_fds=[theirs.fileno()],
            )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        with self.child.stdin as questions, self.child.stdout as answers:
            frames.write(questions, {"startup": startup.raw(), "database": None})
            self.greeting = frames.read(answers) or {}
        self.life = self
        close_at_the_end(self.end)

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def running(self) -> bool:
        return bool(self.greeting.get("ready")) and self.child.poll() is None

    def end(self) -> None:
        self.child.kill()
        self.child.wait()
        self.control.close()


class Shared(Zygote):
    """The process as one pool has it, which does not end it."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded, loaded.control)  # type: ignore[arg-type]
        self._loaded = loaded

    async def fork(self) -> WorkerProcess:
        await asyncio.to_thread(self._loaded.turn.acquire)
        try:
            return await super().fork()
        except BaseException:
            # What is still to come would reach the next pool.
            self._loaded.end()
            raise
        finally:
            self._loaded.turn.release()

    async def kill(self) -> None:
        """Leave it to the other pools; this one has killed its workers."""


_latest: list[Loaded] = []


def _started() -> Loaded:
    if not _latest or not _latest[-1].running:
        _latest.append(Loaded())
    return _latest[-1]


async def _spawn(startup: Startup, database: bytes | None = None) -> Zygote:
    if startup == Startup():
        loaded = await asyncio.get_running_loop().run_in_executor(_starter, _started)
        if loaded.running:
            return Shared(loaded)
    return await _load(startup, database)


@contextmanager
def shared_detectors() -> Iterator[None]:
    """Let the services that run meanwhile fork their detection workers from the shared process."""
    with mock.patch.object(forking.Zygote, "spawn", _spawn):
        yield
