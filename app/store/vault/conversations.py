"""Queries on what the gateway keeps of conversations: the state of scopes, ids of providers, signed blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.bulk import document, fetch, moment
from app.store.database import Database
from app.store.insertion import insert_absent
from app.store.tables import SCOPE_ACTIVE, scope
from app.store.vault.tables import gateway_binding, gateway_signed
from app.store.vault.vault import SealedEntry

_STATE = (
    "SELECT s.generation, s.state, s.expires, s.counters, s.owner, "
    "(SELECT e.id FROM erasure e WHERE e.tenant = {0} ORDER BY e.id DESC LIMIT 1) "
    "FROM scope s WHERE s.tenant = {1} AND s.id = {2}"
)


_NEWER = (
    "SELECT e.type, e.ordinal, e.ciphertext, s.generation, s.kek_version, s.dek_wrapped "
    "FROM scope s JOIN entry e ON e.tenant = s.tenant AND e.scope = s.id "
    "WHERE s.tenant = $1 AND s.id = $2 AND s.state = $3 AND (s.expires IS NULL OR s.expires > $4) AND ({}) "
    "ORDER BY e.type, e.ordinal LIMIT $5"
)


@dataclass(frozen=True, slots=True)
class ScopeState:
    """What tells whether a scope still has the originals that it had: cheap to read, without the originals."""

    generation: int
    expires: datetime | None
    counters: Mapping[str, int]
    owner: str | None
    erasure: str | None
    """The newest erasure of the tenant."""

    @property
    def lineage(self) -> tuple[int, str | None]:
        """Return what is equal as long as originals have only been added."""
        return self.generation, self.erasure


@dataclass(frozen=True, slots=True)
class Binding:
    """What an id of a provider stands for."""

    scope: str
    provider: str
    owner: str
    handles: Sequence[str]


async def find_state(tx: AsyncConnection, tenant: str, name: str, now: datetime) -> ScopeState | None:
    """Return the state of a live scope."""
    return _state_in(await fetch(tx, *_state_query(tx.dialect.name, tenant, name)), now)


async def read_state(database: Database, tenant: str, name: str, now: datetime) -> ScopeState | None:
    """Return the state of a live scope, read by itself."""
    return _state_in(await database.select(tenant, *_state_query(database.dialect, tenant, name)), now)


def _state_query(dialect: str, tenant: str, name: str) -> tuple[str, tuple[str, str, str]]:
    marks = ("$1", "$2", "$3") if dialect == "postgresql" else ("?", "?", "?")
    return _STATE.format(*marks), (tenant, tenant, name)


def _state_in(rows: Sequence[Any], now: datetime) -> ScopeState | None:
    if not rows:
        return None
    generation, state, expires, counters, owner, erasure = rows[0]
    end = moment(expires)
    if state != SCOPE_ACTIVE or (end is not None and end <= now):
        return None
    newest = erasure.hex if isinstance(erasure, UUID) else erasure
    return ScopeState(generation, end, document(counters), owner, newest)


async def find_owner(tx: AsyncConnection, tenant: str, name: str) -> tuple[bool, str | None]:
    """Return whether the scope has ever been, and who owns it."""
    row = (
        await tx.execute(select(scope.c.owner).where(scope.c.tenant == tenant, scope.c.id == name))
    ).first()
    return row is not None, None if row is None else row.owner


async def share_scope(tx: AsyncConnection, tenant: str, name: str) -> None:
    """Let the whole tenant use a scope that had an owner."""
    await tx.execute(update(scope).where(scope.c.tenant == tenant, scope.c.id == name).values(owner=None))


async def list_newer(
    tx: AsyncConnection, tenant: str, name: str, after: Mapping[str, int], now: datetime, *, limit: int
) -> list[SealedEntry]:
    """Return the entries of a live scope whose ordinal is above ``after``, by label."""
    embedded = tx.dialect.name == "sqlite"
    values: list[Any] = [tenant, name, SCOPE_ACTIVE, now, limit]
    labels: list[str] = []
    for label, ordinal in after.items():
        labels.append(f"(e.type = ${len(values) + 1} AND e.ordinal > ${len(values) + 2})")
        values += [label, ordinal]
    query = _NEWER.format(" OR ".join(labels) or "FALSE")
    # SQLite writes the numbers of parameters as ?1.
    rows = await fetch(tx, query.replace("$", "?") if embedded else query, values)
    return [
        SealedEntry(label, ordinal, bytes(sealed), generation, version, bytes(key))
        for label, ordinal, sealed, generation, version, key in rows
        if key is not None
    ]


async def find_binding(tx: AsyncConnection, tenant: str, lookup: bytes, now: datetime) -> Binding | None:
    """Return what an id stands for, unless that has expired."""
    query = select(gateway_binding).where(
        gateway_binding.c.tenant == tenant,
        gateway_binding.c.lookup == lookup,
        gateway_binding.c.expires > now,
    )
    row = (await tx.execute(query)).first()
    return None if row is None else Binding(row.scope, row.provider, row.owner, row.handles)


async def put_binding(
    tx: AsyncConnection, tenant: str, lookup: bytes, binding: Binding, expires: datetime
) -> None:
    """Store what an id stands for, in place of what it stood for."""
    await remove_binding(tx, tenant, lookup)
    values: dict[str, Any] = {
        "tenant": tenant,
        "lookup": lookup,
        "scope": binding.scope,
        "provider": binding.provider,
        "owner": binding.owner,
        "handles": list(binding.handles),
        "expires": expires,
    }
    await insert_absent(tx, gateway_binding, values)


async def remove_binding(tx: AsyncConnection, tenant: str, lookup: bytes) -> None:
    """Forget an id."""
    mine = gateway_binding.c.tenant == tenant
    await tx.execute(delete(gateway_binding).where(mine, gateway_binding.c.lookup == lookup))


async def put_signed(
    tx: AsyncConnection, tenant: str, name: str, blocks: Mapping[bytes, bytes], created: datetime
) -> None:
    """Store sealed blocks by look-up; those that are stored stay."""
    for lookup, ciphertext in blocks.items():
        values = {"tenant": tenant, "scope": name, "lookup": lookup, "ciphertext": ciphertext}
        await insert_absent(tx, gateway_signed, {**values, "created": created})


async def list_signed(
    tx: AsyncConnection, tenant: str, name: str, lookups: Sequence[bytes]
) -> dict[bytes, bytes]:
    """Return the sealed blocks of a scope by look-up."""
    blocks: dict[bytes, bytes] = {}
    for start in range(0, len(lookups), 500):
        query = select(gateway_signed.c.lookup, gateway_signed.c.ciphertext).where(
            gateway_signed.c.tenant == tenant,
            gateway_signed.c.scope == name,
            gateway_signed.c.lookup.in_(lookups[start : start + 500]),
        )
        blocks.update({bytes(row.lookup): bytes(row.ciphertext) for row in await tx.execute(query)})
    return blocks
