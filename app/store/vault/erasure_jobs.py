"""Queries on erasures that are done in steps: what was ordered, how far each is, and its receipt."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.tables import SCOPE_ACTIVE, entry, scope
from app.store.vault.tables import erasure_job

RUNNING: Final = "running"
DONE: Final = "done"
JobKind = Literal["values", "scopes", "tenant"]


@dataclass(frozen=True, slots=True)
class StoredErasureJob:
    """An erasure in steps: of ``total`` steps ``done`` are done; ``plan`` says what to erase, without a value.

    ``counts`` are values erased by type, in ``scopes`` scopes; ``unreadable`` could not be opened, and so not compared.
    """

    tenant: str
    id: UUID
    kind: JobKind
    state: str
    actor: str
    reason: str
    created: datetime
    total: int
    done: int
    scopes: int
    unreadable: int
    counts: dict[str, int]
    plan: dict[str, Any]
    finished: datetime | None = None
    receipt: str | None = None


def document_of(job: StoredErasureJob) -> dict[str, Any]:
    """Return a job as JSON, from which ``job_of`` makes it again."""
    moments = {name: moment and moment.isoformat() for name, moment in _moments(job).items()}
    return {**asdict(job), "id": str(job.id), **moments}


def job_of(document: dict[str, Any]) -> StoredErasureJob:
    """Return a job, or raise ValueError, KeyError or TypeError where ``document`` is none."""
    finished = document["finished"]
    return StoredErasureJob(
        **{
            **document,
            "id": UUID(document["id"]),
            "created": datetime.fromisoformat(document["created"]),
            "finished": finished and datetime.fromisoformat(finished),
        }
    )


def _moments(job: StoredErasureJob) -> dict[str, datetime | None]:
    return {"created": job.created, "finished": job.finished}


async def restore_job(tx: AsyncConnection, job: StoredErasureJob) -> None:
    """Store a job that a restored database lacks; one that is done is stored over one that is not."""
    stored = await find_job(tx, job.tenant, job.id, lock=True)
    if stored is None:
        await add_job(tx, job)
    elif stored.state == RUNNING and job.state == DONE:
        await update_job(tx, stored, **asdict(job))


async def add_job(tx: AsyncConnection, job: StoredErasureJob) -> None:
    """Store a new job."""
    await tx.execute(insert(erasure_job).values(**asdict(job)))


async def find_job(
    tx: AsyncConnection, tenant: str, job_id: UUID, *, lock: bool = False
) -> StoredErasureJob | None:
    """Return a job; ``lock``: nobody else changes it before this transaction ends."""
    query = select(erasure_job).where(erasure_job.c.tenant == tenant, erasure_job.c.id == job_id)
    row = (await tx.execute(query.with_for_update() if lock else query)).one_or_none()
    return None if row is None else StoredErasureJob(**row._mapping)  # noqa: SLF001 - its public name


async def list_running(tx: AsyncConnection) -> list[tuple[str, UUID]]:
    """Return tenant and id of the jobs of all tenants that are not done, oldest first."""
    query = select(erasure_job.c.tenant, erasure_job.c.id).where(erasure_job.c.state == RUNNING)
    return [(row.tenant, row.id) for row in await tx.execute(query.order_by(erasure_job.c.created))]


async def update_job(tx: AsyncConnection, job: StoredErasureJob, **changes: Any) -> None:
    """Store how far a job is that this transaction has locked."""
    own = (erasure_job.c.tenant == job.tenant) & (erasure_job.c.id == job.id)
    await tx.execute(update(erasure_job).where(own).values(**changes))


async def count_contents(
    tx: AsyncConnection, tenant: str, names: Sequence[str] | None = None
) -> tuple[int, Mapping[str, int]]:
    """Return how many scopes are active, and how many entries they have by type: of ``names`` (None: of all)."""
    active = [scope.c.tenant == tenant, scope.c.state == SCOPE_ACTIVE]
    entries = [entry.c.tenant == tenant]
    if names is not None:
        active.append(scope.c.id.in_(names))
        entries.append(entry.c.scope.in_(names))
    scopes = (await tx.execute(select(func.count()).select_from(scope).where(*active))).scalar_one()
    query = select(entry.c.type, func.count()).where(*entries).group_by(entry.c.type).order_by(entry.c.type)
    return scopes, {row[0]: row[1] for row in await tx.execute(query)}
