"""One detection process as the pool uses it: start it, send it questions, kill it."""

import asyncio
import contextlib
import os
import select
import signal
import sys
from pathlib import Path
from typing import Protocol, Self

import app
from app.engines.pii.processes import frames
from app.engines.pii.processes.startup import Startup

_START_S = 60.0
_PASSED_ON = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    "VIRTUAL_ENV",
    "CACHE_DIRECTORY",
    "XDG_CACHE_HOME",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
)
_ONE_THREAD = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)


class WorkerDiedError(Exception):
    """The process ended before it answered."""


class Life(Protocol):
    """A process that can be monitored and killed."""

    @property
    def pid(self) -> int:
        """Return the process id."""

    @property
    def running(self) -> bool:
        """Return whether the process is alive, as far as is known."""

    def kill(self) -> None:
        """Send SIGKILL to exactly this process, never to another one that reuses its id."""

    async def ended(self) -> None:
        """Wait for the end of the process."""

    def forget(self) -> None:
        """Release the resources used for monitoring, after the end of the process."""


class ChildLife:
    """A child process that asyncio started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._handle: int | None = None
        if sys.platform == "linux":
            with contextlib.suppress(ProcessLookupError):
                self._handle = os.pidfd_open(process.pid)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Return whether the process is alive; exact on Linux, even before asyncio notices its end."""
        if self._process.returncode is not None or self._handle is None:
            return self._process.returncode is None
        ended = select.poll()
        ended.register(self._handle, select.POLLIN)
        return not ended.poll(0)

    def kill(self) -> None:
        """Send SIGKILL."""
        # asyncio's own kill() collects the exit status that its watcher waits for, which then warns and makes one up.
        with contextlib.suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            else:
                self._process.kill()

    async def ended(self) -> None:
        """Wait for the end of the process."""
        await self._process.wait()

    def forget(self) -> None:
        """Close the handle."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


class WorkerProcess:
    """A running worker and the two ends of its pipes."""

    def __init__(
        self, life: Life, answers: asyncio.StreamReader, questions: asyncio.StreamWriter, version: bytes
    ) -> None:
        self.version = version
        self.origin: Life | None = None
        self.life = life
        self._from = answers
        self._to = questions
        self.ready = False
        self.failure: str | None = None
        self.greeting: frames.Frame = {}

    @classmethod
    async def spawn(
        cls,
        startup: Startup,
        module: str = "app.engines.pii.processes.worker",
        *arguments: str,
        inherited: tuple[int, ...] = (),
        database: bytes | None = None,
    ) -> Self:
        """Start a process, without the settings and secrets in our environment.

        ``database``: the compiled patterns that an earlier process sent in its greeting.
        """
        process = await asyncio.create_subprocess_exec(
            # -P: the folder that the service was started in may hold another package of our name.
            *(sys.executable, "-P", "-m", module, str(os.getpid()), *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
            pass_fds=inherited,
            limit=1 << 20,
        )
        assert process.stdin is not None  # noqa: S101 - asked for as a pipe
        assert process.stdout is not None  # noqa: S101
        process.stdin.write(frames.packed({"startup": startup.raw(), "database": database}))
        return cls(ChildLife(process), process.stdout, process.stdin, startup.version)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self.life.pid

    @property
    def running(self) -> bool:
        """Return whether the process is alive, as far as is known."""
        return self.life.running

    @property
    def orphaned(self) -> bool:
        """Return whether the process that this one was forked from has ended, which ends this one too."""
        return self.origin is not None and not self.origin.running

    async def started(self) -> bool:
        """Wait until the process has loaded everything; return False if it failed."""
        try:
            async with asyncio.timeout(_START_S):
                self.greeting = await self._answer()
        except (WorkerDiedError, TimeoutError) as error:
            self.failure = type(error).__name__
            return False
        self.failure = self.greeting.get("error")
        self.ready = bool(self.greeting.get("ready"))
        return self.ready

    async def ask(self, question: frames.Frame) -> frames.Frame:
        """Send ``question`` and return its answer; one question at a time. Raises WorkerDiedError."""
        try:
            self._to.write(frames.packed(question))
            await self._to.drain()
        except (ConnectionError, RuntimeError):
            raise WorkerDiedError from None
        return await self._answer()

    async def ended(self) -> None:
        """Wait for the end of the process."""
        await self.life.ended()

    async def kill(self) -> None:
        """End the process at once and wait for it."""
        self.ready = False
        if self.running:
            self.life.kill()
        self._to.close()
        await self.life.ended()
        self.life.forget()

    async def _answer(self) -> frames.Frame:
        try:
            (size,) = frames.HEADER.unpack(await self._from.readexactly(frames.HEADER.size))
            return frames.unpacked(await self._from.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerDiedError from None


def _environment() -> dict[str, str]:
    """Return the environment of a worker: Python's search paths, one thread for linear algebra, no secrets."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= dict.fromkeys(_ONE_THREAD, "1")
    root = str(Path(app.__file__).parent.parent)
    python_path = os.environ.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([root, python_path] if python_path else [root])
    environment["PYTHONHASHSEED"] = "0"
    return environment
