"""Named records of a tenant whose secrets are sealed: one row each; a field of the dataclass is a column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import ColumnElement, Row, Table, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.insertion import insert_absent
from app.store.paging import paged

_FIXED: Final = frozenset({"tenant", "name", "created", "created_by"})
"""Columns that an update leaves as they are."""


@dataclass(frozen=True, slots=True)
class NamedRecord:
    """One record; ``document`` is its settings without name and secrets, ``secrets`` is ciphertext."""

    tenant: str
    name: str
    document: Mapping[str, Any]
    secrets: bytes | None = field(repr=False)
    created: datetime
    created_by: str
    updated: datetime


R = TypeVar("R", bound=NamedRecord)


class NamedRecords(Generic[R]):
    """Queries on a table of named records."""

    def __init__(self, table: Table, record: type[R]) -> None:
        """Read rows of ``table`` as instances of the dataclass ``record``."""
        self._table = table
        self._record = record
        self._columns = tuple(column.name for column in fields(record))

    async def add(self, tx: AsyncConnection, added: R) -> bool:
        """Store a record; return False and change nothing where the name is taken."""
        return await insert_absent(tx, self._table, self._values(added))

    async def find(self, tx: AsyncConnection, tenant: str, name: str, *, lock: bool = False) -> R | None:
        """Return a record; ``lock`` keeps others from changing it until the transaction ends."""
        query = select(self._table).where(self._named(tenant, name))
        row = (await tx.execute(query.with_for_update() if lock else query)).one_or_none()
        return self._read(row) if row is not None else None

    async def list(
        self, tx: AsyncConnection, tenant: str, *, after: str | None = None, limit: int | None = None
    ) -> Sequence[R]:
        """Return a tenant's records in order of name, after the name ``after``."""
        columns = self._table.c
        query = select(self._table).where(columns.tenant == tenant)
        return [
            self._read(row) for row in await tx.execute(paged(query, columns.name, behind=after, limit=limit))
        ]

    async def count(self, tx: AsyncConnection, tenant: str) -> int:
        """Return how many records a tenant has."""
        query = select(func.count()).select_from(self._table).where(self._table.c.tenant == tenant)
        return int((await tx.execute(query)).scalar_one())

    async def update(self, tx: AsyncConnection, changed: R) -> None:
        """Replace everything of a record except who made it and when."""
        values = {name: value for name, value in self._values(changed).items() if name not in _FIXED}
        await tx.execute(
            update(self._table).where(self._named(changed.tenant, changed.name)).values(**values)
        )

    async def remove(self, tx: AsyncConnection, tenant: str, name: str) -> bool:
        """Delete a record, and what refers to it; return False where there was none."""
        done = await tx.execute(delete(self._table).where(self._named(tenant, name)))
        return bool(done.rowcount)

    def _named(self, tenant: str, name: str) -> ColumnElement[bool]:
        return (self._table.c.tenant == tenant) & (self._table.c.name == name)

    def _values(self, stored: R) -> Mapping[str, Any]:
        return {name: getattr(stored, name) for name in self._columns}

    def _read(self, row: Row[Any]) -> R:
        return self._record(**{name: getattr(row, name) for name in self._columns})
