"""Queries on the processes that serve from this database: each announces which keys it holds."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.tables import installation

ALIVE_S = 60.0
"""A process that has not announced itself for so long has ended."""
_PREFIX = "process:"


@dataclass(frozen=True, slots=True)
class ServingProcess:
    """A process, its host, the versions of the key ring that it holds, and its release (None: not announced)."""

    id: str
    host: str
    versions: frozenset[int]
    release: str | None = None


async def announce_process(tx: AsyncConnection, process: ServingProcess) -> None:
    """Store that ``process`` lives, with what it holds, and forget those that ended without a word."""
    moment = await _moment(tx)
    for name, value in (await _stored(tx)).items():
        if value["seen"] < moment - ALIVE_S or name == _PREFIX + process.id:
            await tx.execute(delete(installation).where(installation.c.name == name))
    value = {
        "host": process.host,
        "versions": sorted(process.versions),
        "release": process.release,
        "seen": moment,
    }
    await tx.execute(insert(installation).values(name=_PREFIX + process.id, value=value))


async def list_processes(tx: AsyncConnection) -> list[ServingProcess]:
    """Return the processes that live."""
    moment = await _moment(tx)
    return [
        ServingProcess(
            name.removeprefix(_PREFIX), str(value["host"]), frozenset(value["versions"]), value.get("release")
        )
        for name, value in sorted((await _stored(tx)).items())
        if value["seen"] >= moment - ALIVE_S
    ]


async def remove_process(tx: AsyncConnection, ids: Iterable[str]) -> None:
    """Forget processes that end."""
    names = [_PREFIX + id_ for id_ in ids]
    await tx.execute(delete(installation).where(installation.c.name.in_(names)))


async def _stored(tx: AsyncConnection) -> dict[str, dict[str, Any]]:
    query = select(installation.c.name, installation.c.value).where(
        installation.c.name.startswith(_PREFIX, autoescape=True)
    )
    return {row.name: row.value for row in await tx.execute(query)}


async def _moment(tx: AsyncConnection) -> float:
    """Return the time of the database: the clocks of hosts differ."""
    if tx.dialect.name == "sqlite":
        return time.time()
    return float((await tx.execute(select(func.extract("epoch", func.clock_timestamp())))).scalar_one())
