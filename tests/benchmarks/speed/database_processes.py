"""The processes of a PostgreSQL server on this machine, and the CPU time that they use."""

from pathlib import Path

import asyncpg
import psutil
from sqlalchemy import make_url


async def server_process(url: str) -> psutil.Process | None:
    """Return the first process of the PostgreSQL server on this machine, None for SQLite."""
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        return None
    connection = await asyncpg.connect(address.render_as_string(hide_password=False))
    try:
        folder = Path(await connection.fetchval("SHOW data_directory"))
    finally:
        await connection.close()
    return psutil.Process(int((folder / "postmaster.pid").read_text().splitlines()[0]))


def spent(server: psutil.Process | None) -> float:
    """Return the CPU seconds of the server's processes, those that have ended included."""
    if server is None:
        return 0.0
    times = [server.cpu_times(), *(child.cpu_times() for child in server.children())]
    own = sum(part.user + part.system for part in times)
    return own + times[0].children_user + times[0].children_system
