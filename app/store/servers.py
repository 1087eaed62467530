"""Queries on the MCP servers of a tenant and on the approved definitions of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Row, delete, insert, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.insertion import insert_absent
from app.store.paging import paged
from app.store.tables import server, server_pin, tenant

SERVER_PENDING: Literal["pending"] = "pending"
SERVER_APPROVED: Literal["approved"] = "approved"
SERVER_PAUSED: Literal["paused"] = "paused"

ServerState = Literal["pending", "approved", "paused"]
Origin = Literal["file", "api"]


@dataclass(frozen=True, slots=True)
class StoredServer:
    """One server; ``document`` is its entry without name and secrets, ``secrets`` is ciphertext.

    ``pinned`` is when the definitions under the present settings were first approved (None: never).
    """

    tenant: str
    name: str
    document: Mapping[str, Any]
    secrets: bytes | None = field(repr=False)
    origin: Origin
    state: ServerState
    pinned: datetime | None
    created: datetime
    created_by: str
    updated: datetime


@dataclass(frozen=True, slots=True)
class StoredPin:
    """One approved definition of a server: the digest decides; the definition is there for people to compare."""

    tenant: str
    server: str
    kind: str
    name: str
    digest: str
    definition: Mapping[str, Any]
    approved: datetime
    approved_by: str


async def add_server(tx: AsyncConnection, added: StoredServer) -> bool:
    """Store a server; return False and change nothing where the name is taken."""
    return await insert_absent(tx, server, _values(added))


async def find_server(
    tx: AsyncConnection, tenant_name: str, name: str, *, lock: bool = False
) -> StoredServer | None:
    """Return a server; ``lock`` keeps others from changing it until the transaction ends."""
    query = select(server).where(_named(tenant_name, name))
    row = (await tx.execute(query.with_for_update() if lock else query)).one_or_none()
    return _server(row) if row is not None else None


async def list_servers(
    tx: AsyncConnection, tenant_name: str, *, after: str | None = None, limit: int | None = None
) -> Sequence[StoredServer]:
    """Return a tenant's servers in order of name, after the name ``after``."""
    query = select(server).where(server.c.tenant == tenant_name)
    query = paged(query, server.c.name, behind=after, limit=limit)
    return [_server(row) for row in await tx.execute(query)]


async def list_server_names(tx: AsyncConnection) -> Sequence[tuple[str, str]]:
    """Return tenant and name of every server of every tenant that is not disabled (system transactions)."""
    query = (
        select(server.c.tenant, server.c.name)
        .join(tenant, tenant.c.id == server.c.tenant)
        .where(tenant.c.disabled.is_(None))
        .order_by(server.c.tenant, server.c.name)
    )
    return [(row.tenant, row.name) for row in await tx.execute(query)]


async def list_server_states(tx: AsyncConnection) -> Sequence[tuple[str, str, ServerState]]:
    """Return tenant, name and state of every server of every tenant (system transactions)."""
    query = select(server.c.tenant, server.c.name, server.c.state).order_by(server.c.tenant, server.c.name)
    return [(row.tenant, row.name, row.state) for row in await tx.execute(query)]


async def update_server(tx: AsyncConnection, changed: StoredServer) -> None:
    """Replace everything of a server except who made it and when."""
    values = _values(changed)
    for fixed in ("tenant", "name", "created", "created_by"):
        del values[fixed]
    await tx.execute(update(server).where(_named(changed.tenant, changed.name)).values(**values))


async def remove_server(tx: AsyncConnection, tenant_name: str, name: str) -> bool:
    """Delete a server and its approved definitions; return False where there was none."""
    done = await tx.execute(delete(server).where(_named(tenant_name, name)))
    return bool(done.rowcount)


async def list_pins(tx: AsyncConnection, tenant_name: str, server_name: str) -> Sequence[StoredPin]:
    """Return the approved definitions of a server in order of kind and name."""
    query = (
        select(server_pin).where(_of(tenant_name, server_name)).order_by(server_pin.c.kind, server_pin.c.name)
    )
    return [_pin(row) for row in await tx.execute(query)]


async def list_pin_digests(tx: AsyncConnection, tenant_name: str) -> Mapping[tuple[str, str, str], str]:
    """Return the digests of all approved definitions by server, kind and name."""
    columns = (server_pin.c.server, server_pin.c.kind, server_pin.c.name, server_pin.c.digest)
    query = select(*columns).where(server_pin.c.tenant == tenant_name)
    return {(row.server, row.kind, row.name): row.digest for row in await tx.execute(query)}


async def add_pins(tx: AsyncConnection, pins: Sequence[StoredPin]) -> None:
    """Store approved definitions whose keys are free (``remove_pins`` frees them)."""
    if pins:
        await tx.execute(insert(server_pin), [_pin_values(pin) for pin in pins])


async def remove_pins(
    tx: AsyncConnection, tenant_name: str, server_name: str, named: Iterable[tuple[str, str]] | None = None
) -> None:
    """Delete approved definitions of a server: all of them, or those with the ``named`` kinds and names."""
    chosen = _of(tenant_name, server_name)
    if named is not None:
        chosen &= tuple_(server_pin.c.kind, server_pin.c.name).in_(list(named))
    await tx.execute(delete(server_pin).where(chosen))


def _named(tenant_name: str, name: str) -> ColumnElement[bool]:
    return (server.c.tenant == tenant_name) & (server.c.name == name)


def _of(tenant_name: str, server_name: str) -> ColumnElement[bool]:
    return (server_pin.c.tenant == tenant_name) & (server_pin.c.server == server_name)


def _values(stored: StoredServer) -> dict[str, Any]:
    return {
        "tenant": stored.tenant,
        "name": stored.name,
        "document": dict(stored.document),
        "secrets": stored.secrets,
        "origin": stored.origin,
        "state": stored.state,
        "pinned": stored.pinned,
        "created": stored.created,
        "created_by": stored.created_by,
        "updated": stored.updated,
    }


def _server(row: Row[Any]) -> StoredServer:
    return StoredServer(
        row.tenant,
        row.name,
        row.document,
        row.secrets,
        row.origin,
        row.state,
        row.pinned,
        row.created,
        row.created_by,
        row.updated,
    )


def _pin_values(pin: StoredPin) -> dict[str, Any]:
    return {
        "tenant": pin.tenant,
        "server": pin.server,
        "kind": pin.kind,
        "name": pin.name,
        "digest": pin.digest,
        "definition": dict(pin.definition),
        "approved": pin.approved,
        "approved_by": pin.approved_by,
    }


def _pin(row: Row[Any]) -> StoredPin:
    return StoredPin(
        row.tenant,
        row.server,
        row.kind,
        row.name,
        row.digest,
        row.definition,
        row.approved,
        row.approved_by,
    )
