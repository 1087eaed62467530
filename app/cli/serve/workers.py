"""Several server processes behind one socket: start them, replace the dead, pass signals on."""

import multiprocessing
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Final

from app.cli.serve.listening import address_of
from app.cli.terminal import FAILED, OK, note

_spawn = multiprocessing.get_context("spawn")
_EARLY_S: Final = 5.0
_MOST_EARLY_DEATHS: Final = 3
_LATE_S: Final = 5.0


def work(listener: socket.socket, supervisor: int, place: int, metrics: Path | None) -> None:
    """Serve in a worker process, which never outlives its supervisor.

    ``metrics`` is the folder of all workers' metrics, ``place`` the number of this one there.
    """
    from app.cli.serve.parent_watch import end_with_parent

    end_with_parent(supervisor)
    if metrics is not None:
        from app.edge.worker_metrics import share

        share(metrics, place)
    from app.cli.serve.server import serve_here
    from app.settings import load

    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl+C reaches the whole group; the supervisor passes it on
    code = serve_here(load(), listener, greets=False)
    if metrics is not None and os.getppid() != supervisor:  # it was killed and cannot tidy up
        shutil.rmtree(metrics, ignore_errors=True)
    raise SystemExit(code)


@dataclass(frozen=True, slots=True)
class _Post:
    """What a worker fills: its place among the workers, and since when."""

    place: int
    started: float


class Supervisor:
    """Keeps ``count`` workers alive until a signal; gives up when they die as fast as they start.

    ``metrics`` is the folder in which the workers keep their metrics, None where they have none.
    """

    def __init__(self, count: int, listener: socket.socket, drain_s: float, metrics: Path | None) -> None:
        self._count = count
        self._listener = listener
        self._drain_s = drain_s
        self._metrics = metrics
        self._workers: dict[SpawnProcess, _Post] = {}
        self._early_deaths = 0
        self._stopping = False

    def run(self) -> int:
        """Supervise; return the exit code."""
        with self._signals():
            for place in range(self._count):
                self._start(place)
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

    def _start(self, place: int) -> None:
        options = (self._listener, os.getpid(), place, self._metrics)
        worker = _spawn.Process(target=work, args=options, name="sluice-worker")
        worker.start()
        self._workers[worker] = _Post(place, time.monotonic())

    def _replace_dead(self) -> bool:
        """Start a worker for each that has died; return whether that still makes sense."""
        for worker in [process for process in self._workers if not process.is_alive()]:
            post = self._workers.pop(worker)
            if self._metrics is not None:
                from app.edge.worker_metrics import retire

                retire(self._metrics, post.place)
            if self._stopping:
                continue
            early = time.monotonic() - post.started < _EARLY_S
            self._early_deaths = self._early_deaths + 1 if early else 0
            if self._early_deaths >= _MOST_EARLY_DEATHS:
                return False
            note(f"Worker process {worker.pid} ended with {worker.exitcode}; another one starts.")
            self._start(post.place)
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


def supervise(count: int, listener: socket.socket, drain_s: float, *, metrics: bool) -> int:
    """Serve with ``count`` processes until a signal; return the exit code. ``metrics``: they have some."""
    listener.listen(1024)  # connections wait in the socket's queue while the workers start
    # Workers would search the current folder for modules before the library, as `python -c` does.
    os.environ["PYTHONSAFEPATH"] = "1"
    if not metrics:
        return Supervisor(count, listener, drain_s, None).run()
    with tempfile.TemporaryDirectory(prefix="sluice-metrics-", ignore_cleanup_errors=True) as folder:
        return Supervisor(count, listener, drain_s, Path(folder)).run()
