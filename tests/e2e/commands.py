"""Commands of ``sluice`` in processes forked from one that has imported them: importing takes longer than most run.

Each is a process of its own, with its own environment, streams and exit code, as ``python -m app`` is. Run as a
program, this is the process they are forked from: it reads one request a line and answers with the exit code.
"""

import atexit
import gc
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, Never

from tests.processes import close_at_the_end

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 55
"""A command that takes longer is ended by SIGALRM: before its test is, which could not end it."""


class Commands:
    """The process that commands are forked from, started with the first of them."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None
        self._lock = Lock()

    def run(
        self, arguments: tuple[str, ...], environment: dict[str, str], given: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run one command and wait for its end."""
        with tempfile.TemporaryDirectory(prefix="sluice-command-") as folder:
            streams = [Path(folder) / name for name in ("stdin", "stdout", "stderr")]
            streams[0].write_text(given, encoding="utf-8")
            request = {
                "arguments": arguments,
                "environment": environment,
                "streams": [str(file) for file in streams],
            }
            with self._lock:
                code = self._asked(json.dumps(request))
            printed, complaints = (file.read_text(encoding="utf-8") for file in streams[1:])
        return subprocess.CompletedProcess(["sluice", *arguments], code, printed, complaints)

    def close(self) -> None:
        """End the process; the next command starts another."""
        if self._server is not None:
            self._server.communicate()
            self._server = None

    def _asked(self, request: str) -> int:
        try:
            return self._answered(request)
        except BaseException:
            # A test that ran out of time leaves an answer behind, which is not to become that of the next command.
            self.close()
            raise

    def _answered(self, request: str) -> int:
        if self._server is None:
            kept = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.commands"],
                env={**kept, "PYTHONPATH": str(ROOT)},
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            close_at_the_end(self.close)
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(request + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


COMMANDS = Commands()


def serve() -> None:
    """Fork a process for each request until the input ends."""
    from app.cli import YOUNG_OBJECTS, root

    for module in ("app.main", "app.cli.host", "sqlalchemy.dialects.sqlite.aiosqlite"):
        import_module(module)
    middlewares = import_module("app.middlewares")
    for found in pkgutil.walk_packages(middlewares.__path__, "app.middlewares."):
        import_module(found.name)
    # Looking for cycles among all that was imported, and copying its pages, took a command nine tenths of its time.
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _end(_ran(root.run, request))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _ran(run: Callable[[list[str]], int], request: dict[str, Any]) -> int:
    """Run a command and return its exit code; print what it raised, as an interpreter does."""
    try:
        _become(request)
        return run(sys.argv[1:])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1


def _end(code: int) -> Never:
    """End this process as an interpreter does, without the half second in which it frees its modules."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _become(request: dict[str, Any]) -> None:
    """Take the arguments, the environment and the streams of a command in place of our own."""
    flags = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
    for number, (file, flag) in enumerate(zip(request["streams"], flags, strict=True)):
        opened = os.open(file, flag, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.argv = ["sluice", *request["arguments"]]
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.alarm(LIMIT_S)


if __name__ == "__main__":
    serve()
