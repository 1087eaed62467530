"""The public MCP servers from npm, as entries of ``mcpServers``."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.protocol.mcp_node import BIN, installed


def npm_servers(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the servers everything, filesystem (of ``folder``) and memory (kept in ``folder``) over stdio."""
    return {
        "everything": _entry("server-everything"),
        "filesystem": _entry("server-filesystem", str(folder)),
        "memory": {
            **_entry("server-memory"),
            "env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
        },
    }


@contextmanager
def everything_over_http() -> Iterator[dict[str, Any]]:
    """Serve everything over streamable HTTP and give its entry."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    entry = _entry("server-everything", "streamableHttp")
    process = subprocess.Popen(
        [entry["command"], *entry["args"]],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.05)
        yield {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        process.kill()
        process.wait()


def _entry(package: str, *arguments: str) -> dict[str, Any]:
    path = installed() / "node_modules/@modelcontextprotocol" / package / "dist/index.js"
    return {"command": str(BIN / "node"), "args": [str(path), *arguments]}
