"""Scripted servers over stdio that start in a hundredth of a second: forked from a process that has the SDK loaded.

``Warm().settings("alpha")`` gives the members of an entry of ``mcpServers``. The command's own process is a small one
that ends with the server, and the server with it; tests of processes take ``scripted.stdio_settings`` instead.
"""

import gc
import json
import os
import selectors
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.processes import close_at_the_end
from tests.upstreams import scripted

LAUNCH = Path(__file__).with_name("launch.py")
LARGEST = 1024 * 1024


class Warm:
    """A process that forks servers, started at once."""

    def __init__(self) -> None:
        self.name = f"sluice-warm-{uuid4().hex}"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"\0{self.name}")  # a name that is in no folder and ends with the socket
        listener.listen(64)
        # It ends with this pipe, however this process ends.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.upstreams.warm", str(listener.fileno())],
            cwd=scripted.ROOT,
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
        listener.close()

    def settings(self, name: str = "scripted", **more: Any) -> dict[str, Any]:
        """Return the members of an entry of ``mcpServers`` that runs a scripted server as a child."""
        arguments = ["-I", "-S", str(LAUNCH), self.name, "--name", name]
        return {"command": sys.executable, "args": arguments, "cwd": str(scripted.ROOT), **more}

    def close(self) -> None:
        """End the process; servers end with the commands that started them."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


@cache
def _warm() -> Warm:
    warm = Warm()
    close_at_the_end(warm.close)
    return warm


def warm_settings(name: str = "scripted", **more: Any) -> dict[str, Any]:
    """Return the members of an entry of ``mcpServers`` that runs a server of this process's warm one."""
    if not sys.platform.startswith("linux"):
        return scripted.stdio_settings(name, **more)
    return _warm().settings(name, **more)


def main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    waiting = selectors.DefaultSelector()
    waiting.register(0, selectors.EVENT_READ, None)
    waiting.register(listener, selectors.EVENT_READ, None)
    gc.freeze()
    while True:
        for key, _ in waiting.select():
            if key.fileobj == 0:
                return
            if key.fileobj is listener:
                connection, _ = listener.accept()
                child = os.pidfd_open(fork(connection, listener))
                waiting.register(child, selectors.EVENT_READ, connection)
            else:
                waiting.unregister(key.fileobj)
                tell_end(key.fd, key.data)


def tell_end(child: int, connection: socket.socket) -> None:
    """Give the command the exit status of its server."""
    ended = os.waitid(os.P_PIDFD, child, os.WEXITED)
    assert ended is not None
    os.close(child)
    status = ended.si_status if ended.si_code == os.CLD_EXITED else 128 + ended.si_status
    with connection:
        try:
            connection.send(str(status).encode())
        except OSError:
            return  # the command ended first


def fork(connection: socket.socket, listener: socket.socket) -> int:
    """Return the process id of a server that answers on the pipes of the command behind ``connection``."""
    child = os.fork()
    if child:
        return child
    try:
        listener.close()
        serve(connection)
    finally:
        os._exit(1)


def serve(connection: socket.socket) -> None:
    """Take the command's pipes, folder and environment, and serve until the input or the command ends."""
    sent, descriptors, _, _ = socket.recv_fds(connection, LARGEST, 3)
    while not sent.endswith(b"\n"):
        sent += connection.recv(LARGEST)
    order = json.loads(sent)
    for place, descriptor in enumerate(descriptors):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])

    def end_with_the_command() -> None:
        connection.recv(1)
        os._exit(1)

    threading.Thread(target=end_with_the_command, daemon=True).start()
    sys.argv[1:] = order["arguments"]
    scripted.main()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
