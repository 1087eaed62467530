"""Queries on what operators write about tools, and on the descriptions that callers have read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Table, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.paging import by_code_point, paged
from app.store.tables import disclosure, tool_description

ORIGIN_API = "api"


@dataclass(frozen=True, slots=True)
class StoredDescription:
    """What was written about the tool of one exposed name."""

    name: str
    document: Mapping[str, Any]
    updated: datetime


async def list_descriptions(
    tx: AsyncConnection, tenant: str, names: Sequence[str] | None = None
) -> Sequence[StoredDescription]:
    """Return what is written about the tools of these names (None: all)."""
    query = select(tool_description).where(tool_description.c.tenant == tenant)
    if names is not None:
        query = query.where(tool_description.c.name.in_(names))
    return [StoredDescription(row.name, row.document, row.updated) for row in await tx.execute(query)]


async def list_described(
    tx: AsyncConnection, tenant: str, *, after: str | None = None, limit: int | None = None
) -> Sequence[str]:
    """Return the names of the tools that something is written about, in order, those behind ``after``."""
    query = select(tool_description.c.name).where(tool_description.c.tenant == tenant)
    query = paged(query, by_code_point(tx, tool_description.c.name), behind=after, limit=limit)
    return list((await tx.execute(query)).scalars())


async def count_descriptions(tx: AsyncConnection, tenant: str) -> int:
    """Return about how many tools something is written."""
    query = select(func.count()).select_from(tool_description).where(tool_description.c.tenant == tenant)
    return int((await tx.execute(query)).scalar_one())


async def put_description(tx: AsyncConnection, tenant: str, stored: StoredDescription) -> None:
    """Store what is written about a tool, in the place of what was."""
    key = {"tenant": tenant, "name": stored.name}
    values = {"document": dict(stored.document), "origin": ORIGIN_API, "updated": stored.updated}
    await _put(tx, tool_description, [{**key, **values}], list(key))


async def remove_description(tx: AsyncConnection, tenant: str, name: str) -> bool:
    """Remove what is written about a tool; return False where that is nothing."""
    query = delete(tool_description).where(
        (tool_description.c.tenant == tenant) & (tool_description.c.name == name)
    )
    return bool((await tx.execute(query)).rowcount)


async def put_disclosures(
    tx: AsyncConnection, tenant: str, principal: str, digests: Mapping[str, str], expires: datetime
) -> None:
    """Note which definitions a caller has read, until ``expires``."""
    rows = [
        {"tenant": tenant, "principal": principal, "name": name, "digest": digests[name], "expires": expires}
        for name in sorted(digests)  # one order for all, so that two readers never wait for each other
    ]
    await _put(tx, disclosure, rows, ["tenant", "principal", "name"])


async def find_disclosure(
    tx: AsyncConnection, tenant: str, principal: str, name: str, moment: datetime
) -> str | None:
    """Return the digest of the definition that a caller has read, None where it read none or too long ago."""
    query = select(disclosure.c.digest).where(
        (disclosure.c.tenant == tenant)
        & (disclosure.c.principal == principal)
        & (disclosure.c.name == name)
        & (disclosure.c.expires > moment)
    )
    found: str | None = (await tx.execute(query)).scalar_one_or_none()
    return found


async def remove_expired_disclosures(tx: AsyncConnection, moment: datetime) -> int:
    """Forget, for all tenants, what expired; return how many."""
    done = await tx.execute(delete(disclosure).where(disclosure.c.expires <= moment))
    return done.rowcount


async def _put(tx: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]], key: list[str]) -> None:
    insert = postgresql.insert if tx.dialect.name == "postgresql" else sqlite.insert
    query = insert(table).values([dict(row) for row in rows])
    changing = {name: query.excluded[name] for name in rows[0] if name not in key}
    await tx.execute(query.on_conflict_do_update(index_elements=key, set_=changing))
