"""Commands of ``sluice`` in processes forked from one that has imported them: importing takes longer than most run.

Each is a process of its own, with its own environment, streams and exit code, as ``python -m app`` is. Run as a
program, this is the process they are forked from. Each message on its socket holds the arguments and the environment
of a command, and carries the three streams and a pipe, to which it writes the process id and later the exit code.
Scripts ask by a program of the name ``sluice``, see `forwarding_program`.
"""

import atexit
import gc
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Never, TextIO
from uuid import uuid4

from tests.processes import close_at_the_end

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 110
"""A command that takes longer is ended by SIGALRM: before its test is, which could not end it."""
_FORWARDER = """#!{python} -IS
import json, os, socket, struct, sys
control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
control.connect({address!r})
told, telling = os.pipe()
request = {{"arguments": sys.argv[1:], "environment": dict(os.environ), "limit_s": {limit_s}, "folder": os.getcwd()}}
socket.send_fds(control, [json.dumps(request).encode()], [0, 1, 2, telling])
os.close(telling)
_pid, code = (struct.unpack("i", os.read(told, 4))[0] for _ in range(2))
os._exit(code if code >= 0 else 128 - code)
"""
_MUTATION = "SLUICE_MUTATION_"
"""Variables for tests of tests: services are started without them, the process that forks them has them."""
_MESSAGE_BYTES = 1 << 17
_NUMBER = struct.Struct("i")


class ForkedProcess:
    """A command that runs, with what `subprocess.Popen` has of one."""

    def __init__(self, told: int, stdout: TextIO | None = None) -> None:
        self._told = told
        self.stdout = stdout
        self.returncode: int | None = None
        self.pid = self._next_number()

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the process has ended."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(["sluice"], timeout or 0)
            self.returncode = self._next_number()
            os.close(self._told)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _next_number(self) -> int:
        read = os.read(self._told, _NUMBER.size)
        if not read:
            raise EOFError("The process that commands are forked from has ended.")
        return int(_NUMBER.unpack(read)[0])


class Commands:
    """The process that commands are forked from, started with the first of them."""

    def __init__(self) -> None:
        self._template: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()
        self._address = f"\0sluice-commands-{uuid4().hex}"

    def forwarding_program(self, folder: Path) -> None:
        """Make a program ``sluice`` in ``folder`` that lets a forked process do what it is asked."""
        with self._lock:
            self._control = self._control or self._started()
        text = _FORWARDER.format(python=sys.executable, address=self._address, limit_s=LIMIT_S)
        (folder / "sluice").write_text(text, encoding="utf-8")
        (folder / "sluice").chmod(0o700)

    def run(
        self, arguments: Sequence[str], environment: dict[str, str], given: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run one command and wait for its end."""
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as stdin,
            tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as stdout,
            tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as stderr,
        ):
            stdin.write(given)
            stdin.seek(0)
            streams = [stream.fileno() for stream in (stdin, stdout, stderr)]
            process = ForkedProcess(self._forked(arguments, environment, streams, LIMIT_S))
            code = process.wait()
            for stream in (stdout, stderr):
                stream.seek(0)
            return subprocess.CompletedProcess(["sluice", *arguments], code, stdout.read(), stderr.read())

    def start(self, arguments: Sequence[str], environment: dict[str, str], log: TextIO) -> ForkedProcess:
        """Start a command that runs until it is ended; what it prints can be read from ``stdout``."""
        ours, theirs = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            told = self._forked(arguments, environment, [nothing, theirs, log.fileno()], 0)
        finally:
            os.close(nothing)
            os.close(theirs)
        return ForkedProcess(told, os.fdopen(ours, encoding="utf-8"))

    def close(self) -> None:
        """End the process; the next command starts another."""
        if self._template is not None and self._control is not None:
            self._control.close()
            self._template.wait()
            self._template = self._control = None

    def _forked(
        self, arguments: Sequence[str], environment: dict[str, str], streams: list[int], limit_s: int
    ) -> int:
        """Ask for a process and return the pipe that its id and its exit code come from."""
        with self._lock:
            control = self._control or self._started()
        request = {"arguments": arguments, "environment": environment, "limit_s": limit_s}
        told, telling = os.pipe()
        try:
            socket.send_fds(control, [json.dumps(request).encode()], [*streams, telling])
        finally:
            os.close(telling)
        return told

    def _started(self) -> socket.socket:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(_MUTATION) or not name.startswith("SLUICE_")
        }
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A process that forks has one thread.
        alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._address)
            listener.listen()
            descriptors = [theirs.fileno(), listener.fileno()]
            self._template = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.commands", *map(str, descriptors)],
                env={**kept, **alone, "PYTHONPATH": str(ROOT)},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=descriptors,
            )
        close_at_the_end(self.close)
        return self._control


COMMANDS = Commands()


class Template:
    """Forks a process for each request, and tells of its end."""

    def __init__(
        self, control: socket.socket, listener: socket.socket, run: Callable[[list[str]], int]
    ) -> None:
        self._control = control
        self._listener = listener
        self._run = run
        self._poll = select.poll()
        for asked in (control, listener):
            self._poll.register(asked, select.POLLIN)
        self._living: dict[int, tuple[int, int]] = {}
        """The process id and the pipe of each, by the handle on it."""

    def serve(self) -> None:
        """Fork until the socket is closed."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._living:
                    self._tell_end(descriptor)
                elif descriptor == self._listener.fileno():
                    connection, _ = self._listener.accept()
                    with connection:
                        self._answer(connection)
                elif not self._answer(self._control):
                    return

    def _answer(self, asking: socket.socket) -> bool:
        message, descriptors, _, _ = socket.recv_fds(asking, _MESSAGE_BYTES, 4)
        if message:
            self._fork(asking, json.loads(message), *descriptors)
        return bool(message)

    def _fork(self, asking: socket.socket, request: dict[str, Any], *descriptors: int) -> None:
        *streams, telling = descriptors
        pid = os.fork()
        if pid == 0:
            for ours in {self._control, self._listener, asking}:
                ours.close()
            for handle, (_, pipe) in self._living.items():
                os.close(handle)
                os.close(pipe)
            os.close(telling)
            _end(_ran(self._run, request, streams))
        for stream in streams:
            os.close(stream)
        _write(telling, pid)
        handle = os.pidfd_open(pid)
        self._living[handle] = pid, telling
        self._poll.register(handle, select.POLLIN)

    def _tell_end(self, handle: int) -> None:
        self._poll.unregister(handle)
        pid, telling = self._living.pop(handle)
        _, status = os.waitpid(pid, 0)
        _write(telling, os.waitstatus_to_exitcode(status))
        os.close(telling)
        os.close(handle)


def _write(pipe: int, number: int) -> None:
    """Write to a pipe, which who asked may have left."""
    with suppress(BrokenPipeError):
        os.write(pipe, _NUMBER.pack(number))


def _ran(run: Callable[[list[str]], int], request: dict[str, Any], streams: list[int]) -> int:
    """Run a command and return its exit code; print what it raised, as an interpreter does."""
    try:
        _become(request, streams)
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


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Take the arguments, the environment and the streams of a command in place of our own."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.argv = ["sluice", *request["arguments"]]
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request.get("folder", ROOT))
    signal.alarm(request["limit_s"])


def main() -> None:
    """Import what commands need and fork them until the socket is closed."""
    if f"{_MUTATION}NOTES" in os.environ:
        import_module("tests.mutation.reach").record_here()
    from app.cli import YOUNG_OBJECTS, root

    for module in (
        "app.main",
        "app.cli.host",
        "app.cli.serve.server",
        "sqlalchemy.dialects.sqlite.aiosqlite",
    ):
        import_module(module)
    middlewares = import_module("app.middlewares")
    for found in pkgutil.walk_packages(middlewares.__path__, "app.middlewares."):
        import_module(found.name)
    # Looking for cycles among all that was imported, and copying its pages, took a command nine tenths of its time.
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
    gc.collect()
    gc.freeze()
    assert len(list(Path("/proc/self/task").iterdir())) == 1
    control, listener = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    Template(control, listener, root.run).serve()
    _end(0)


if __name__ == "__main__":
    main()
