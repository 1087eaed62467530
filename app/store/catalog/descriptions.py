"""Queries on the descriptions that operators write of tools, and on those that callers have read."""

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
    """The description of the tool with one exposed name."""

    name: str
    document: Mapping[str, Any]
    updated: datetime


async def list_descriptions(
    tx: AsyncConnection, tenant: str, names: Sequence[str] | None = None
) -> Sequence[StoredDescription]:
    """Return the descriptions of the tools with these names (None: all)."""
    query = select(tool_description).where(tool_description.c.tenant == tenant)
    if names is not None:
        query = query.where(tool_description.c.name.in_(names))
    return [StoredDescription(row.name, row.document, row.updated) for row in await tx.execute(query)]


async def list_described(
    tx: AsyncConnection, tenant: str, *, after: str | None = None, limit: int | None = None
) -> Sequence[str]:
    """Return the names of the described tools in order, after the name ``after``."""
    query = select(tool_description.c.name).where(tool_description.c.tenant == tenant)
    query = paged(query, by_code_point(tx, tool_description.c.name), behind=after, limit=limit)
    return list((await tx.execute(query)).scalars())


async def count_descriptions(tx: AsyncConnection, tenant: str) -> int:
    """Return the number of described tools."""
    query = select(func.count()).select_from(tool_description).where(tool_description.c.tenant == tenant)
    return int((await tx.execute(query)).scalar_one())


async def put_description(tx: AsyncConnection, tenant: str, stored: StoredDescription) -> None:
    """Store or replace the description of a tool."""
    key = {"tenant": tenant, "name": stored.name}
    values = {"document": dict(stored.document), "origin": ORIGIN_API, "updated": stored.updated}
    await _put(tx, tool_description, [{**key, **values}], list(key))


async def remove_description(tx: AsyncConnection, tenant: str, name: str) -> bool:
    """Remove the description of a tool; return False where there is none."""
    query = delete(tool_description).where(
        (tool_description.c.tenant == tenant) & (tool_description.c.name == name)
    )
    return bool((await tx.execute(query)).rowcount)


async def put_disclosures(
    tx: AsyncConnection, tenant: str, principal: str, digests: Mapping[str, str], expires: datetime
) -> None:
    """Record which definitions a caller has read; the record is valid until ``expires``."""
    rows = [
        {"tenant": tenant, "principal": principal, "name": name, "digest": digests[name], "expires": expires}
        for name in sorted(digests)  # all writers use one order, so that they cannot deadlock
    ]
    await _put(tx, disclosure, rows, ["tenant", "principal", "name"])


async def find_disclosure(
    tx: AsyncConnection, tenant: str, principal: str, name: str, moment: datetime
) -> str | None:
    """Return the digest of the definition that a caller has read, or None where it read none or that expired."""
    query = select(disclosure.c.digest).where(
        (disclosure.c.tenant == tenant)
        & (disclosure.c.principal == principal)
        & (disclosure.c.name == name)
        & (disclosure.c.expires > moment)
    )
    digest: str | None = (await tx.execute(query)).scalar_one_or_none()
    return digest


async def remove_expired_disclosures(tx: AsyncConnection, moment: datetime) -> int:
    """Delete expired disclosures of all tenants; return how many."""
    done = await tx.execute(delete(disclosure).where(disclosure.c.expires <= moment))
    return done.rowcount


async def _put(tx: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]], key: list[str]) -> None:
    insert = postgresql.insert if tx.dialect.name == "postgresql" else sqlite.insert
    query = insert(table).values([dict(row) for row in rows])
    changing = {name: query.excluded[name] for name in rows[0] if name not in key}
    await tx.execute(query.on_conflict_do_update(index_elements=key, set_=changing))
