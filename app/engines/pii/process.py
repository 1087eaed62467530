"""One worker process as the pool sees it: started, asked, killed."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Self

import app
from app.engines.pii import frames

_START_S = 60.0
_PASSED_ON = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    "VIRTUAL_ENV",
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
    """The process ended while an answer was due."""


class WorkerProcess:
    """A running ``app.engines.pii.worker`` and the two ends of its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None  # noqa: S101 - asked for as a pipe below
        assert process.stdout is not None  # noqa: S101
        self._process = process
        self._to = process.stdin
        self._from = process.stdout
        self.ready = False
        self.failure: str | None = None
        self._handle: int | None = None
        if sys.platform == "linux":
            with contextlib.suppress(ProcessLookupError):
                self._handle = os.pidfd_open(process.pid)

    @classmethod
    async def spawn(cls) -> Self:
        """Start a process; it knows nothing of the settings and secrets in our environment."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "app.engines.pii.worker",
            str(os.getpid()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
            limit=1 << 20,
        )
        return cls(process)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Say whether the process is alive, as far as is known."""
        return self._process.returncode is None

    async def started(self) -> bool:
        """Wait until the process has loaded everything; False where it failed."""
        try:
            async with asyncio.timeout(_START_S):
                greeting = await self._answer()
        except (WorkerDiedError, TimeoutError) as error:
            self.failure = type(error).__name__
            return False
        self.failure = greeting.get("error")
        self.ready = bool(greeting.get("ready"))
        return self.ready

    async def ask(self, question: frames.Frame) -> frames.Frame:
        """Return the answer to ``question``; one at a time. Raises WorkerDiedError."""
        try:
            self._to.write(frames.packed(question))
            await self._to.drain()
        except (ConnectionError, RuntimeError):
            raise WorkerDiedError from None
        return await self._answer()

    async def ended(self) -> None:
        """Wait for the end of the process."""
        await self._process.wait()

    async def kill(self) -> None:
        """End the process at once and wait for it."""
        self.ready = False
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                self._signal_kill()
        self._to.close()
        await self._process.wait()
        self._forget()

    def _signal_kill(self) -> None:
        # asyncio's own kill() collects the exit status that its watcher waits for, which then warns and invents one.
        if self._handle is not None:
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        else:
            self._process.kill()

    def _forget(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    async def _answer(self) -> frames.Frame:
        try:
            (size,) = frames.HEADER.unpack(await self._from.readexactly(frames.HEADER.size))
            return frames.unpacked(await self._from.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerDiedError from None


def _environment() -> dict[str, str]:
    """Return the environment of a worker: where Python finds things, one thread for linear algebra, no secrets."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= dict.fromkeys(_ONE_THREAD, "1")
    root = str(Path(app.__file__).parent.parent)
    given = os.environ.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([root, given] if given else [root])
    environment["PYTHONHASHSEED"] = "0"
    return environment
