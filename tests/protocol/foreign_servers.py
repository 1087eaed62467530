"""Example servers of others, which offer what the conformance suite asks for: each is a process of its own.

The Python SDK's comes with the source of the SDK, from the package index. The TypeScript SDK's and the suite's own are
in no package: the variable SLUICE_TEST_SERVERS names a folder with their files, as CONTRIBUTING.md says.
"""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.protocol.mcp_node import BIN, COMMANDS

SERVERS = "SLUICE_TEST_SERVERS"
_SOURCE = Path(__file__).parent / "python-sdk-source.txt"
_BUILD = Path(__file__).parent / "build" / "python-sdk"
_EXAMPLE = "/examples/servers/everything-server"
_TYPESCRIPT = {
    "typescript-sdk": ["everythingServer.ts"],
    "conformance": ["--import", "./node_modules/tsx/dist/loader.mjs", "everything-server.ts"],
}
"""What Node runs, by folder; the second needs more of TypeScript than Node leaves out by itself."""


@contextmanager
def foreign(name: str, folder: Path) -> Iterator[str]:
    """Serve ``python-sdk``, ``typescript-sdk`` or ``conformance``; ``folder`` is empty. Yield the address of /mcp."""
    port = _free_port()
    if name == "python-sdk":
        command = [sys.executable, "-m", "mcp_everything_server", "--port", str(port), "--log-level", "ERROR"]
        place = python_example()
    else:
        place = folder / name
        shutil.copytree(Path(os.environ[SERVERS]) / name, place)
        npm = [COMMANDS / "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(npm, cwd=place, env=_environment(), capture_output=True, check=True)
        command = [str(BIN / "node"), *_TYPESCRIPT[name]]
    with _running(command, place, port):
        yield f"http://localhost:{port}/mcp"


def python_example() -> Path:
    """Return the folder of the Python SDK's example; several test processes may ask at once."""
    _BUILD.mkdir(parents=True, exist_ok=True)
    wanted = _SOURCE.read_text()
    stamp = _BUILD / "stamp"
    with (_BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
            options = ["--no-deps", "--no-binary", ":all:", "--require-hashes", "-r", _SOURCE, "-d", _BUILD]
            fetched = subprocess.run([*pip, *options], capture_output=True, text=True, check=False)
            assert fetched.returncode == 0, fetched.stderr[-3000:]
            (archive,) = _BUILD.glob("mcp-*.tar.gz")
            with tarfile.open(archive) as source:
                example = [member for member in source.getmembers() if _EXAMPLE in member.name]
                source.extractall(_BUILD, example, filter="data")
            archive.unlink()
            stamp.write_text(wanted)
    (folder,) = _BUILD.glob(f"mcp-*{_EXAMPLE}")
    return folder


@contextmanager
def _running(command: Sequence[str], folder: Path, port: int) -> Iterator[None]:
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env={**_environment(), "PORT": str(port)}, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + 40
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((folder / "log").read_text()[-3000:])
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("localhost", port), timeout=1).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _environment() -> dict[str, str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}


if __name__ == "__main__":
    python_example()
