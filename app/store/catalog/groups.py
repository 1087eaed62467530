"""Queries on groups of primitives and their members."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.catalog.primitives import Member, PrimitiveKind
from app.store.paging import paged
from app.store.tables import group_member, primitive_group, server

Origin = Literal["file", "api"]
GroupTransaction = AsyncConnection
"""What the functions here work in; an open transaction of ``Database.transaction``."""


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """One group; ``document`` is its definition without name and members."""

    name: str
    document: Mapping[str, Any]
    members: Sequence[Member]
    origin: Origin
    created: datetime
    updated: datetime


async def lock_groups(tx: AsyncConnection, tenant: str) -> None:
    """Keep others from changing the tenant's groups until ``tx`` ends: two changes together could make a cycle."""
    if tx.dialect.name == "postgresql":
        digest = hashlib.sha256(f"groups {tenant}".encode()).digest()
        number = int.from_bytes(digest[:8], signed=True)
        await tx.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})


async def list_groups(
    tx: AsyncConnection, tenant: str, *, after: str | None = None, limit: int | None = None
) -> list[StoredGroup]:
    """Return a tenant's groups in order of name, after the name ``after``."""
    query = select(primitive_group).where(primitive_group.c.tenant == tenant)
    rows = (await tx.execute(paged(query, primitive_group.c.name, behind=after, limit=limit))).all()
    members: dict[str, list[Member]] = {row.name: [] for row in rows}
    wanted = select(group_member).where(group_member.c.tenant == tenant)
    if after is not None or limit is not None:
        wanted = wanted.where(group_member.c.group_name.in_(members))
    for row in await tx.execute(wanted.order_by(group_member.c.group_name, *_MEMBER_ORDER)):
        member = Member(kind=PrimitiveKind(row.kind), name=row.name, server=row.server or None)
        if row.group_name in members:  # skips members of a group that was added since the query above
            members[row.group_name].append(member)
    return [
        StoredGroup(row.name, row.document, members[row.name], row.origin, row.created, row.updated)
        for row in rows
    ]


async def list_group_parents(
    tx: AsyncConnection, tenant: str, names: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return for each of ``names`` the groups that it is a member of, sorted."""
    query = select(group_member.c.name, group_member.c.group_name).where(
        group_member.c.tenant == tenant,
        group_member.c.kind == PrimitiveKind.GROUP.value,
        group_member.c.name.in_(names),
    )
    parents: dict[str, set[str]] = {name: set() for name in names}
    for row in await tx.execute(query):
        parents[row.name].add(row.group_name)
    return {name: tuple(sorted(above)) for name, above in parents.items()}


async def add_group(tx: AsyncConnection, tenant: str, added: StoredGroup) -> None:
    """Store a new group."""
    values = {"tenant": tenant, "name": added.name, "created": added.created, **_changing(added)}
    await tx.execute(insert(primitive_group).values(**values))
    await _add_members(tx, tenant, added)


async def update_group(tx: AsyncConnection, tenant: str, changed: StoredGroup) -> None:
    """Replace a group and its members."""
    named = (primitive_group.c.tenant == tenant) & (primitive_group.c.name == changed.name)
    await tx.execute(update(primitive_group).where(named).values(**_changing(changed)))
    members = (group_member.c.tenant == tenant) & (group_member.c.group_name == changed.name)
    await tx.execute(delete(group_member).where(members))
    await _add_members(tx, tenant, changed)


async def remove_group(tx: AsyncConnection, tenant: str, name: str) -> None:
    """Remove a group with its members and its membership in others."""
    mine = group_member.c.tenant == tenant
    nested = (group_member.c.kind == PrimitiveKind.GROUP.value) & (group_member.c.name == name)
    await tx.execute(delete(group_member).where(mine, nested | (group_member.c.group_name == name)))
    named = (primitive_group.c.tenant == tenant) & (primitive_group.c.name == name)
    await tx.execute(delete(primitive_group).where(named))


async def list_server_names(tx: AsyncConnection, tenant: str) -> frozenset[str]:
    """Return the names of the tenant's servers, approved or not."""
    rows = await tx.execute(select(server.c.name).where(server.c.tenant == tenant))
    return frozenset(row.name for row in rows)


_MEMBER_ORDER = (group_member.c.kind, group_member.c.name, group_member.c.server)


def _changing(group: StoredGroup) -> dict[str, Any]:
    return {"document": dict(group.document), "origin": group.origin, "updated": group.updated}


async def _add_members(tx: AsyncConnection, tenant: str, group: StoredGroup) -> None:
    rows = [
        {
            "tenant": tenant,
            "group_name": group.name,
            "kind": member.kind.value,
            "name": member.name,
            "server": member.server or "",
        }
        for member in group.members
    ]
    if rows:
        await tx.execute(insert(group_member), rows)
