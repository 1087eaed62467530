"""PgBouncer in transaction mode in front of PostgreSQL, with fewer connections to the server than clients."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url

from tests.outside.debian import program
from tests.outside.proxies import awaited
from tests.upstreams.providing import free_port

CONFIG = """\
[databases]
* = host={host} port={server_port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
server_check_delay = 1
"""
"""Nothing is ignored, and nothing is tracked that is not tracked as it comes."""
SIZE = 4


@contextmanager
def pooled(url: str, size: int = SIZE) -> Iterator[str]:
    """Run a pooler in front of the server of ``url`` and return the address of the same database through it."""
    server, port = make_url(url), free_port()
    host = server.query.get("host") or server.host
    with tempfile.TemporaryDirectory() as folder:
        file, log = Path(folder) / "pgbouncer.ini", Path(folder) / "pgbouncer.log"
        file.write_text(
            CONFIG.format(
                host=host, server_port=server.port or 5432, user=server.username, port=port, size=size
            )
        )
        Path(folder).chmod(0o755)
        # It refuses to run as root: as the server's owner it may also open the server's socket.
        as_whom = ["-u", Path(str(host)).owner()] if os.geteuid() == 0 and Path(str(host)).is_dir() else []
        with log.open("wb") as out:
            process = subprocess.Popen(
                [program("pgbouncer") or "pgbouncer", *as_whom, str(file)], stdout=out, stderr=out
            )
        try:
            awaited(port, process, log)
            through = server.set(host="127.0.0.1", port=port).difference_update_query(["host"])
            yield through.render_as_string(hide_password=False)
        finally:
            process.terminate()
            process.wait(timeout=20)
