"""Several server processes behind one socket: start them, replace the dead, pass signals on."""

import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Final

from app.cli.listening import address_of
from app.cli.terminal import FAILED, OK, note

_spawn = multiprocessing.get_context("spawn")
_EARLY_S: Final = 5.0
_MOST_EARLY_DEATHS: Final = 3
_LATE_S: Final = 5.0


def work(listener: socket.socket, supervisor: int) -> None:
    """Serve in a worker process, which never outlives its supervisor."""
    from app.cli.parents import end_with_parent

    end_with_parent(supervisor)
    from app.cli.server import serve_here
    from app.settings import load

    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl+C reaches the whole group; the supervisor passes it on
    raise SystemExit(serve_here(load(), listener, greets=False))


class Supervisor:
    """Keeps ``count`` workers alive until a signal; gives up when they die as fast as they start."""

    def __init__(self, count: int, listener: socket.socket, drain_s: float) -> None:
        self._count = count
        self._listener = listener
        self._drain_s = drain_s
        self._workers: dict[SpawnProcess, float] = {}
        self._early_deaths = 0
        self._stopping = False

    def run(self) -> int:
        """Supervise; return the exit code."""
        with self._signals():
            for _ in range(self._count):
                self._start()
            print(
                f"Sluice serves {address_of(self._listener)} with {self._count} processes"
                " (REST under /api/v1, MCP at /mcp)",
                flush=True,
            )
            while not self._stopping:
                wait([worker.sentinel for worker in self._workers], timeout=1.0)
                if not self._replace_dead():
                    self._stop_all()
                    return FAILED
            self._stop_all()
        return OK

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(_signal: int, _frame: FrameType | None) -> None:
            self._stopping = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self) -> None:
        worker = _spawn.Process(target=work, args=(self._listener, os.getpid()), name="sluice-worker")
        worker.start()
        self._workers[worker] = time.monotonic()

    def _replace_dead(self) -> bool:
        """Start a worker for each that has died; return whether that still makes sense."""
        for worker in [process for process in self._workers if not process.is_alive()]:
            started = self._workers.pop(worker)
            if self._stopping:
                continue
            early = time.monotonic() - started < _EARLY_S
            self._early_deaths = self._early_deaths + 1 if early else 0
            if self._early_deaths >= _MOST_EARLY_DEATHS:
                return False
            note(f"Worker process {worker.pid} ended with {worker.exitcode}; another one starts.")
            self._start()
        return True

    def _stop_all(self) -> None:
        for worker in self._workers:
            worker.terminate()
        until = time.monotonic() + self._drain_s + _LATE_S
        for worker in self._workers:
            worker.join(max(0.0, until - time.monotonic()))
            if worker.is_alive():
                worker.kill()
                worker.join()


def supervise(count: int, listener: socket.socket, drain_s: float) -> int:
    """Serve with ``count`` processes until a signal; return the exit code."""
    listener.listen(1024)  # connections wait in the socket's queue while the workers start
    # Workers would search the current folder for modules before the library, as `python -c` does.
    os.environ["PYTHONSAFEPATH"] = "1"
    return Supervisor(count, listener, drain_s).run()
