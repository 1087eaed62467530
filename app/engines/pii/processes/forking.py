"""Where workers come from: forked off one process that has loaded everything, or started one by one."""

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
    """No worker could be started; the argument is the type of the error."""


class WorkerFactory:
    """Makes workers: on Linux by a `Zygote`, elsewhere, or where its libraries started threads, one by one."""

    def __init__(self, startup: Startup, *, forks: bool = sys.platform == "linux") -> None:
        self.startup = startup
        self._forks = forks
        self._zygote: Zygote | None = None
        self._database: bytes | None = None
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Return the process id of the zygote, where there is one."""
        return self._zygote.pid if self._zygote is not None else None

    async def worker(self) -> WorkerProcess:
        """Return a new worker that may still be loading; raise StartError."""
        async with self._turn:
            if self._forks and (zygote := await self._loaded()) is not None:
                # One that is about to die takes the order and gives nothing; a new one does.
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
        """Return the zygote, a new one where it died; None where it must not fork."""
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
            # Whatever was sent or is still to come, the next worker must not get it.
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
        """Say whether the process is alive, as far as is known."""
        return self._process.running

    @property
    def database(self) -> bytes | None:
        """Return the compiled patterns, for the next one."""
        database: bytes | None = self._process.greeting["database"]
        return database

    @property
    def threads(self) -> int:
        """Return how many threads the process has; only one that has one may fork."""
        return int(self._process.greeting["threads"])

    async def fork(self) -> WorkerProcess:
        """Return a new worker; one at a time. Raises OSError, TimeoutError, WorkerDiedError."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._control, [b"+"], [theirs.fileno()])
            life = await self._born()
            answers, questions = await asyncio.open_connection(sock=ours, limit=1 << 20)
        except BaseException:
            ours.close()
            raise
        worker = WorkerProcess(life, answers, questions, self._process.version)
        worker.origin = self._process.life
        return worker

    async def _born(self) -> "WatchedLife":
        async with asyncio.timeout(_FORK_S):
            await _readable(self._control)
        message, handles, _flags, _address = socket.recv_fds(self._control, frames.BORN.size, 1)
        if not handles:
            raise WorkerDiedError
        return WatchedLife(frames.BORN.unpack(message)[0], handles[0])

    async def kill(self) -> None:
        """End the process, and with it all its workers."""
        self._control.close()
        await self._process.kill()


class WatchedLife:
    """The life of a process that is no child of ours, by its handle (a pidfd)."""

    def __init__(self, pid: int, handle: int) -> None:
        self._pid = pid
        self._handle = handle
        self._over = asyncio.Event()
        asyncio.get_running_loop().add_reader(handle, self._end)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._pid

    @property
    def running(self) -> bool:
        """Say whether the process is alive, as far as is known."""
        return not self._over.is_set()

    def kill(self) -> None:
        """Send SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    async def ended(self) -> None:
        """Wait for the end of the process."""
        await self._over.wait()

    def forget(self) -> None:
        """Close the handle."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        # Only where the zygote died and we are process 1 of a container has the worker become our child.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self._handle, os.WEXITED | os.WNOHANG)
        self._over.set()


async def _readable(connection: socket.socket) -> None:
    """Wait until ``connection`` has something to read or is closed."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    loop.add_reader(connection, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(connection)
