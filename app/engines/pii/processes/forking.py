"""Create workers: fork them from one process that has loaded everything, or start them one by one."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from typing import Self

from app.engines.pii.processes import frames
from app.engines.pii.processes.process import WorkerDiedError, WorkerProcess
from app.engines.pii.processes.startup import Startup

_log = logging.getLogger(__name__)
_FORK_S = 10.0


class StartError(Exception):
    """No worker could be started; the argument is the name of the error's type."""


class WorkerFactory:
    """Create workers: on Linux with a `Zygote`; elsewhere, or if its libraries started threads, one by one."""

    def __init__(self, startup: Startup, *, forks: bool = sys.platform == "linux") -> None:
        self.startup = startup
        self._forks = forks
        self._zygote: Zygote | None = None
        self._database: bytes | None = None
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Return the process id of the zygote, if there is one."""
        return self._zygote.pid if self._zygote is not None else None

    async def worker(self) -> WorkerProcess:
        """Return a new worker that may still be loading; raise StartError."""
        async with self._turn:
            if self._forks and (zygote := await self._loaded()) is not None:
                # A zygote that is about to die accepts the request and returns nothing; a new one answers.
                with contextlib.suppress(StartError):
                    return await self._forked(zygote)
                zygote = await self._loaded()
                if zygote is not None:
                    return await self._forked(zygote)
        return await WorkerProcess.spawn(self.startup, database=self._database)

    async def close(self) -> None:
        """Kill the zygote; its workers die with it."""
        async with self._turn:
            await self._end()

    async def _end(self) -> None:
        if self._zygote is not None:
            await self._zygote.kill()
            self._zygote = None

    async def _loaded(self) -> "Zygote | None":
        """Return the zygote, or a new one if it died; None if it must not fork."""
        if self._zygote is not None and self._zygote.running:
            return self._zygote
        await self._end()
        zygote = await Zygote.spawn(self.startup, self._database)
        self._database = zygote.database
        if zygote.threads == 1:
            self._zygote = zygote
            return zygote
        await zygote.kill()
        self._forks = False
        _log.warning(
            "detection workers start one by one: a library runs threads", extra={"threads": zygote.threads}
        )
        return None

    async def _forked(self, zygote: "Zygote") -> WorkerProcess:
        try:
            return await zygote.fork()
        except BaseException as error:
            # The next worker must not receive what was sent or is still to come.
            await self._end()
            if isinstance(error, (OSError, TimeoutError, WorkerDiedError)):
                raise StartError(type(error).__name__) from None
            raise


class Zygote:
    """The running ``app.engines.pii.processes.zygote``."""

    def __init__(self, process: WorkerProcess, control: socket.socket) -> None:
        self._process = process
        self._control = control

    @classmethod
    async def spawn(cls, startup: Startup, database: bytes | None = None) -> Self:
        """Start the process and wait until it has loaded everything; raise StartError."""
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        control.setblocking(False)
        with theirs:
            descriptor = theirs.fileno()
            process = await WorkerProcess.spawn(
                startup,
                "app.engines.pii.processes.zygote",
                str(descriptor),
                inherited=(descriptor,),
                database=database,
            )
        zygote = cls(process, control)
        started = False
        try:
            started = await process.started()
        finally:
            if not started:
                await zygote.kill()
        if not started:
            raise StartError(process.failure)
        return zygote

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Return whether the process is alive, as far as is known."""
        return self._process.running

    @property
    def database(self) -> bytes | None:
        """Return the compiled patterns, for the next process."""
        database: bytes | None = self._process.greeting["database"]
        return database

    @property
    def threads(self) -> int:
        """Return the number of threads of the process; it may fork only with a single one."""
        return int(self._process.greeting["threads"])

    async def fork(self) -> WorkerProcess:
        """Fork and return a new worker; one at a time. Raises OSError, TimeoutError, WorkerDiedError."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._control, [b"+"], [theirs.fileno()])
            life = await self._next_life()
            answers, questions = await asyncio.open_connection(sock=ours, limit=1 << 20)
        except BaseException:
            ours.close()
            raise
        worker = WorkerProcess(life, answers, questions, self._process.version)
        worker.origin = self._process.life
        return worker

    async def _next_life(self) -> "WatchedLife":
        async with asyncio.timeout(_FORK_S):
            await _readable(self._control)
        message, handles, _flags, _address = socket.recv_fds(self._control, frames.WORKER_PID.size, 1)
        if not handles:
            raise WorkerDiedError
        return WatchedLife(frames.WORKER_PID.unpack(message)[0], handles[0])

    async def kill(self) -> None:
        """End the process, and with it all its workers."""
        self._control.close()
        await self._process.kill()


class WatchedLife:
    """A process that is not our child, monitored through its handle (a pidfd)."""

    def __init__(self, pid: int, handle: int) -> None:
        self._pid = pid
        self._handle = handle
        self._has_ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(handle, self._end)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._pid

    @property
    def running(self) -> bool:
        """Return whether the process is alive, as far as is known."""
        return not self._has_ended.is_set()

    def kill(self) -> None:
        """Send SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    async def ended(self) -> None:
        """Wait for the end of the process."""
        await self._has_ended.wait()

    def forget(self) -> None:
        """Close the handle."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        # The worker is our child only if the zygote died and we are process 1 of a container.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self._handle, os.WEXITED | os.WNOHANG)
        self._has_ended.set()


async def _readable(connection: socket.socket) -> None:
    """Wait until ``connection`` has something to read or is closed."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    loop.add_reader(connection, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(connection)
