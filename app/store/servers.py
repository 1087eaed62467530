"""Queries on the MCP servers of a tenant and on the approved definitions of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Row, delete, insert, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.named_records import NamedRecord, NamedRecords
from app.store.tables import server, server_pin, tenant

SERVER_PENDING: Literal["pending"] = "pending"
SERVER_APPROVED: Literal["approved"] = "approved"
SERVER_PAUSED: Literal["paused"] = "paused"

ServerState = Literal["pending", "approved", "paused"]
Origin = Literal["file", "api"]


@dataclass(frozen=True, slots=True)
class StoredServer(NamedRecord):
    """One server; ``pinned`` is when the definitions under the present settings were first approved (None: never)."""

    origin: Origin
    state: ServerState
    pinned: datetime | None


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


SERVERS: Final = NamedRecords(server, StoredServer)


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


def _of(tenant_name: str, server_name: str) -> ColumnElement[bool]:
    return (server_pin.c.tenant == tenant_name) & (server_pin.c.server == server_name)


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
