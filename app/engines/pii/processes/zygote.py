"""The process that loads everything once and forks workers, which share its memory and are there at once.

Started by the pool as ``python -m app.engines.pii.processes.zygote <pid of the parent> <descriptor>``. The first
frame of its standard input holds the `Startup`; it greets on its standard output. Then each message on the descriptor,
a socket, brings the socket of a worker to be, and the answer is the worker's process id and a handle on it.
It has one thread.
"""

import os
import signal
import socket
import sys
from pathlib import Path

from app.engines.pii.processes import frames
from app.engines.pii.processes.worker import Service, end_with_parent, prepared, serve


def main() -> None:
    """Fork workers until the parent closes the socket or dies."""
    end_with_parent(int(sys.argv[1]))
    control = socket.socket(fileno=int(sys.argv[2]))
    greeting = os.fdopen(os.dup(1), "wb")
    service = prepared(sys.stdin.buffer, greeting)
    # The kernel forgets workers that ended by itself; the pool has handles on them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    frames.write(greeting, service.greeting() | {"threads": len(list(Path("/proc/self/task").iterdir()))})
    greeting.close()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while True:
        _message, descriptors, _flags, _address = socket.recv_fds(control, 1, 1)
        if not descriptors:
            return
        _give_birth(service, control, descriptors[0])


def _give_birth(service: Service, control: socket.socket, connection: int) -> None:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            _live(service, connection, parent)
        finally:
            os._exit(0)
    os.close(connection)
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        control.send(frames.BORN.pack(0))
        return
    socket.send_fds(control, [frames.BORN.pack(pid)], [handle])
    os.close(handle)


def _live(service: Service, connection: int, parent: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    end_with_parent(parent)
    with os.fdopen(os.dup(connection), "rb") as questions, os.fdopen(connection, "wb") as answers:
        frames.write(answers, {"ready": True})
        serve(service, questions, answers)


if __name__ == "__main__":
    main()
