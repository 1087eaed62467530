"""A server of one connection at a time that answers what a test tells it to, also half or not at all."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

CUT = b""
"""An answer that closes the connection instead."""


def answer(status: int, body: str, *headers: str) -> bytes:
    """Return a whole HTTP answer."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return ("\r\n".join([*lines, "Content-Type: application/json", "", ""]) + body).encode()


@dataclass
class Script:
    """What was asked, in order."""

    url: str
    requests: list[bytes] = field(default_factory=list)


@contextmanager
def scripted(answers: Sequence[bytes]) -> Iterator[Script]:
    """Answer one request after the other with ``answers``."""
    listener = socket.create_server(("127.0.0.1", 0))
    script = Script(f"http://127.0.0.1:{listener.getsockname()[1]}")

    def serve() -> None:
        for text in answers:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                script.requests.append(read_request(connection))
                if text:
                    connection.sendall(text)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        listener.close()
        thread.join(timeout=5)


def read_request(connection: socket.socket) -> bytes:
    """Read the head and the body, whose length is known or which comes in chunks."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    if b"transfer-encoding: chunked" in head.lower():
        while not body.endswith(b"\r\n0\r\n\r\n"):
            body += connection.recv(65_536)
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body
