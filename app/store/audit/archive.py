"""How far the archive of the audit record is: what all processes know of it, of which one writes."""

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.insertion import insert_absent
from app.store.tables import installation


@dataclass(frozen=True, slots=True)
class ArchiveState:
    """The last month that was seen complete (None: none yet), when it was first tried, and when it last failed."""

    since: datetime
    complete: str | None = None
    failed: datetime | None = None


async def find_archive_state(tx: AsyncConnection, archive: str) -> ArchiveState | None:
    """Return how far an archive is, by its name; None where it was never tried."""
    query = select(installation.c.value).where(installation.c.name == _row(archive))
    stored = (await tx.execute(query)).scalar_one_or_none()
    if stored is None:
        return None
    failed = stored["failed"]
    return ArchiveState(
        datetime.fromisoformat(stored["since"]),
        stored["complete"],
        failed and datetime.fromisoformat(failed),
    )


async def put_archive_state(tx: AsyncConnection, archive: str, state: ArchiveState) -> None:
    """Store how far an archive is."""
    failed = state.failed and state.failed.isoformat()
    value = {**asdict(state), "since": state.since.isoformat(), "failed": failed}
    await insert_absent(tx, installation, {"name": _row(archive), "value": value})
    await tx.execute(update(installation).where(installation.c.name == _row(archive)).values(value=value))


def _row(archive: str) -> str:
    return f"archive:{archive}"
