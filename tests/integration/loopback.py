"""A real server on a free loopback port, for tests that need sockets."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def serving(app: Any, *, port: int = 0, **options: Any) -> Iterator[int]:
    """Serve ``app`` in a thread with an event loop of its own; give the port."""
    listener = socket.create_server(("127.0.0.1", port))
    settings: dict[str, Any] = {"log_config": None, "access_log": False, "timeout_graceful_shutdown": 5}
    server = uvicorn.Server(uvicorn.Config(app, **{**settings, **options}))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        until = time.monotonic() + 60
        while not server.started:
            if not thread.is_alive() or time.monotonic() > until:
                raise RuntimeError("The server did not start.")
            time.sleep(0.01)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()


def talk(port: int, request: bytes, *, wait_s: float = 10) -> bytes:
    """Send ``request`` as it is and return all that comes back until the server closes or is silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait_s) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except (TimeoutError, ConnectionResetError):
            pass
        return answer
