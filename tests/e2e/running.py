"""Start the service as a user does, in a process of its own, and stop it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from app.core.access import ApiKey
from tests.e2e.commands import COMMANDS, ForkedProcess

ROOT = Path(__file__).resolve().parents[2]
KEY = ApiKey.generate()
START_S = 60
Process = subprocess.Popen[str] | ForkedProcess


@dataclass(frozen=True)
class Service:
    """A service that is ready, and what a client of it needs."""

    url: str
    key: str
    process: Process
    environment: dict[str, str]
    greeting: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def sluice(self, *arguments: str, given: str = "", **changed: str) -> "subprocess.CompletedProcess[str]":
        """Run the command line beside this service, with its settings and its key."""
        return sluice(*arguments, given=given, environment={**self.environment, **self.client, **changed})

    @property
    def client(self) -> dict[str, str]:
        return {"SLUICE_URL": self.url, "SLUICE_API_KEY": self.key}


def environment_of(folder: Path, **settings: str) -> dict[str, str]:
    """Return an environment with these settings and none of the surrounding ones."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    defaults = {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'clients' / 'python'}",
        "SLUICE_DATABASE__URL": f"sqlite:///{folder}/sluice.db",
        "SLUICE_TELEMETRY__LOG_LEVEL": "warning",
    }
    return {**kept, **defaults, **settings}


def begun(folder: Path, **settings: str) -> dict[str, str]:
    """Return an environment whose database is made: commands make none."""
    environment = environment_of(folder, **settings)
    done = sluice("db", "upgrade", environment=environment)
    assert done.returncode == 0, done.stderr
    return environment


def sluice(
    *arguments: str, environment: dict[str, str], given: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run one command and wait for its end."""
    return COMMANDS.run(arguments, environment, given)


def started(folder: Path, *arguments: str, forked: bool = True, **settings: str) -> Service:
    """Start a service on a free port and wait until it is ready.

    ``forked``: from a process that has imported it, and its detector starts with the first call that needs one; else
    as a user starts it.
    """
    lazy = {"SLUICE_DETECTION__WARM": "false"} if forked else {}
    environment = environment_of(folder, **{"SLUICE_AUTH__BOOTSTRAP_KEY": str(KEY), **lazy, **settings})
    command = ["serve", "--port", "0", *arguments]
    process: Process
    with (folder / "log").open("a") as log:
        if forked:
            process = COMMANDS.start(command, environment, log)
        else:
            process = subprocess.Popen(
                [sys.executable, "-m", "app", *command],
                env=environment,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
    assert process.stdout is not None
    try:
        greeting = process.stdout.readline()
        address = re.search(r"http://[0-9.]+:\d+", greeting)
        assert address is not None, (folder / "log").read_text()
        await_ready(address[0])
    except BaseException:
        stop(process)  # what did not start well is not left running either
        raise
    return Service(address[0], str(KEY), process, environment, greeting)


def await_ready(url: str, within_s: float = START_S) -> None:
    """Wait until the service says that it takes work."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            if httpx2.get(f"{url}/readyz", trust_env=False).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("The service did not become ready.")


def stop(process: Process, number: signal.Signals = signal.SIGTERM) -> int:
    """Send a signal and return the exit code."""
    process.send_signal(number)
    try:
        code = process.wait(timeout=30)
    finally:
        process.kill()
        if process.stdout is not None:
            process.stdout.close()
    return code


@contextmanager
def running(folder: Path, *arguments: str, forked: bool = True, **settings: str) -> Iterator[Service]:
    """Run a service for the time of a block; see `started`."""
    service = started(folder, *arguments, forked=forked, **settings)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            stop(service.process)
        elif service.process.stdout is not None:
            service.process.stdout.close()
