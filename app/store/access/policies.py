"""Queries on the versions of a tenant's policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.insertion import insert_absent
from app.store.paging import paged
from app.store.tables import policy


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """One version of a policy; versions are never deleted and count from 1."""

    tenant: str
    version: int
    document: Mapping[str, Any]
    created: datetime
    created_by: str


async def add_policy(tx: AsyncConnection, added: StoredPolicy) -> bool:
    """Store a version; return False and change nothing where that number is taken."""
    values = {
        "tenant": added.tenant,
        "version": added.version,
        "document": dict(added.document),
        "created": added.created,
        "created_by": added.created_by,
    }
    return await insert_absent(tx, policy, values)


async def find_policy(tx: AsyncConnection, tenant: str) -> StoredPolicy | None:
    """Return the newest version."""
    query = select(policy).where(policy.c.tenant == tenant).order_by(policy.c.version.desc()).limit(1)
    row = (await tx.execute(query)).one_or_none()
    return _policy(row) if row is not None else None


async def list_policies(
    tx: AsyncConnection, tenant: str, *, before: int | None, limit: int
) -> Sequence[StoredPolicy]:
    """Return the versions older than ``before``, newest first."""
    query = select(policy).where(policy.c.tenant == tenant)
    query = paged(query, policy.c.version, behind=before, limit=limit, newest_first=True)
    return [_policy(row) for row in await tx.execute(query)]


def _policy(row: Row[Any]) -> StoredPolicy:
    return StoredPolicy(row.tenant, row.version, row.document, row.created, row.created_by)
