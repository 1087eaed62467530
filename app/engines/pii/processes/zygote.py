"""Load everything once and fork workers, which share the memory and start immediately.

Started by the pool as ``python -m app.engines.pii.processes.zygote <pid of the parent> <descriptor>``. The first
frame of its standard input holds the `Startup`; it sends its greeting to its standard output. Then each message on the
descriptor, a socket, carries the socket for a new worker; the answer is the worker's process id and a handle on it.
The process has one thread.
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
    # The kernel reaps workers that ended; the pool has handles on them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    frames.write(greeting, service.greeting() | {"threads": len(list(Path("/proc/self/task").iterdir()))})
    greeting.close()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while True:
        _message, descriptors, _flags, _address = socket.recv_fds(control, 1, 1)
        if not descriptors:
            return
        _fork_worker(service, control, descriptors[0])


def _fork_worker(service: Service, control: socket.socket, connection: int) -> None:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            _serve_worker(service, connection, parent)
        finally:
            os._exit(0)
    os.close(connection)
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        control.send(frames.WORKER_PID.pack(0))
        return
    socket.send_fds(control, [frames.WORKER_PID.pack(pid)], [handle])
    os.close(handle)


def _serve_worker(service: Service, connection: int, parent: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    end_with_parent(parent)
    with os.fdopen(os.dup(connection), "rb") as questions, os.fdopen(connection, "wb") as answers:
        frames.write(answers, {"ready": True})
        serve(service, questions, answers)


if __name__ == "__main__":
    main()
