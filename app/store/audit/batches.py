"""Store what the requests of a batch write at once, after one reading.

On SQLite both take a turn of the connection's thread, within one transaction. On PostgreSQL both are functions of the
database that take the role ``sluice_batch``: it sees scopes and makes rows of the tenants that have a request in the
batch, reads neither ciphertexts nor records, and refuses a row of another tenant than its request's.
See docs/decisions/0022-batches-of-many-tenants.md.
"""

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.store.bulk import insert_here, rows_matching_here
from app.store.database import Database
from app.store.tables import WRITTEN_BY, audit_event, entry, scope
from app.store.turns import Turn
from app.store.vault.allocation import (
    CHANGE_SCOPE,
    ENTRY_COLUMNS,
    LOOKUP_NAMES,
    ORDINALS,
    PLACE_NAMES,
    RESTORE_EPOCH,
    SCOPE_COLUMNS,
    SCOPES,
    changed_scope,
    epoch_of,
    new_scope,
    scope_row,
)
from app.store.vault.numbering import Key, Numbering, Place, Want

AUDIT_COLUMNS = tuple(column.name for column in audit_event.columns if column.name != WRITTEN_BY)

_SCOPE_COLUMNS = 10
_ENTRY_COLUMNS = 10
_READ = "SELECT * FROM sluice_read_batch($1, $2, $3, $4, $5, $6, $7)"
_MARKS = ", ".join(
    f"${at}" for at in range(1, 3 + _SCOPE_COLUMNS + _ENTRY_COLUMNS + 1 + len(AUDIT_COLUMNS) + 1)
)
_STORE = f"SELECT sluice_store_batch({_MARKS})"


Event = tuple[int, tuple[Any, ...]]
"""The number of a request in the batch, from 0, and a row of the record."""


@dataclass(slots=True)
class Batch(ABC):
    """One attempt to store a batch.

    ``apart`` are scopes whose requests need a transaction of their own: the scope has ended, or others write to it.
    """

    numbering: Numbering
    apart: set[Place] = field(default_factory=set, kw_only=True)
    _changed: list[Place] = field(default_factory=list, kw_only=True)
    _before: dict[Place, dict[str, int]] = field(default_factory=dict, kw_only=True)
    """The counters of the changed scopes that existed, as they were read."""

    async def number(self, wants: Sequence[Want]) -> None:
        """Give the values of ``wants`` numbers by one reading; see ``apart`` afterwards.

        A second reading follows where a scope's data key is not in memory.
        """
        numbering = self.numbering
        stored = sorted({place for want in wants for place in want.read})
        guessed: dict[Place, int] = {}
        for place in stored:
            cached = numbering.keeper.recall(*place)
            if cached is not None:
                guessed[place], numbering.uses[place] = cached
        epoch = await self._read(stored, await self._keys(wants))
        cold = [want for want in wants if self._open(want.place, guessed)]
        if cold:
            await self._read([], await self._keys(cold))
        near = [want for want in wants if want.place not in self.apart]
        numbering.check_owners(near)
        lacking = await numbering.lacking(near)
        self._changed = sorted({want.place for want in lacking})
        rows = numbering.rows
        self._before = {place: dict(rows[place].counters) for place in self._changed if place in rows}
        numbering.make(lacking, epoch)
        await numbering.number(lacking)

    @abstractmethod
    async def store(self, scopes: Sequence[Place | None], events: Sequence[Event]) -> None:
        """Store the values and ``events``; ``scopes`` are the scopes that the requests write to.

        What belongs to a scope that others lock, or have changed since it was read, is not stored; that scope is
        ``apart`` then.
        """

    def condition(self, place: Place | None) -> Place | None:
        """Return the scope without whose change a request's records are not stored; None where nothing can fail."""
        return place if place in self._changed else None

    @abstractmethod
    async def _read(self, places: Sequence[Place], keys: Sequence[Key]) -> int:
        """Learn the scopes and the ordinals of ``keys`` that are stored; return the restore epoch."""

    async def _keys(self, wants: Sequence[Want]) -> list[Key]:
        return list(dict.fromkeys(key for own in await self.numbering.keys(wants) for key in own or ()))

    def _open(self, place: Place, guessed: dict[Place, int]) -> bool:
        """Open the data key of a scope as it was read; return whether its values must be looked up again."""
        numbering = self.numbering
        row = numbering.rows.get(place)
        if row is None or not row.live(numbering.now):
            numbering.uses.pop(place, None)
            if row is not None:
                self.apart.add(place)
            return False
        numbering.open(place)
        return guessed.get(place) != row.generation


@dataclass(slots=True)
class TenantBatch(Batch):
    """A batch on PostgreSQL, read without locks; ``tenants`` are those of its requests, in their order."""

    database: Database
    tenants: Sequence[str]

    async def store(self, scopes: Sequence[Place | None], events: Sequence[Event]) -> None:
        """Store all in one statement, see ``Batch``."""
        units = {place: at for at, place in enumerate(self._changed, 1)}
        rows = self.numbering.rows
        changes = [
            (
                *(*place, row.generation, row.restore_epoch, _dumped(self._before.get(place))),
                *(json.dumps(row.counters), row.expires, row.dek_wrapped, row.kek_version, row.owner),
            )
            for place, row in ((place, rows[place]) for place in self._changed)
        ]
        entries = [(units[entry[0], entry[1]], *entry[:-1]) for entry in self.numbering.entries]
        records = [(request + 1, *row) for request, row in events]
        ((stored,),) = await self.database.run_alone(
            _STORE,
            (
                list(self.tenants),
                [None if place is None else units.get(place) for place in scopes],
                self.numbering.now,
                *_columns(changes, _SCOPE_COLUMNS),
                *_columns(entries, _ENTRY_COLUMNS),
                *_columns(records, 1 + len(AUDIT_COLUMNS)),
            ),
        )
        self.apart |= {place for place, unit in units.items() if unit not in stored}

    async def _read(self, places: Sequence[Place], keys: Sequence[Key]) -> int:
        rows = await self.database.run_alone(
            _READ, (list(self.tenants), *_columns(places, 2), *_columns(keys, 4)), write=False
        )
        epoch = 0
        for kind, at, ordinal, *own in rows:
            if kind == "scope":
                self.numbering.rows[places[at - 1]] = scope_row(own)
            elif kind == "entry":
                self.numbering.ordinals[keys[at - 1]] = ordinal
            else:
                epoch = ordinal
        return epoch


@dataclass(slots=True)
class EmbeddedBatch(Batch):
    """A batch on SQLite, which has one writer at a time: what was read is still so when it is stored."""

    turn: Turn

    async def store(self, _scopes: Sequence[Place | None], events: Sequence[Event]) -> None:
        """Store all in one turn, which commits, see ``Batch``; here nothing is kept back."""
        numbering = self.numbering
        rows = numbering.rows
        made = [new_scope(at, rows[at], numbering.now) for at in self._changed if at not in self._before]
        changed = [changed_scope(place, rows[place]) for place in self._before]
        records, entries = [row for _, row in events], numbering.entries

        def work(connection: sqlite3.Connection) -> None:
            insert_here(connection, scope, SCOPE_COLUMNS, made)
            insert_here(connection, entry, ENTRY_COLUMNS, entries)
            connection.executemany(CHANGE_SCOPE, changed).close()
            insert_here(connection, audit_event, AUDIT_COLUMNS, records)
            connection.commit()

        await self.turn(work)

    async def _read(self, places: Sequence[Place], keys: Sequence[Key]) -> int:
        def work(connection: sqlite3.Connection) -> tuple[list[Any], list[Any], list[Any]]:
            if not connection.in_transaction:
                connection.execute("BEGIN IMMEDIATE").close()
            return (
                rows_matching_here(connection, SCOPES, PLACE_NAMES, places),
                rows_matching_here(connection, ORDINALS, LOOKUP_NAMES, keys),
                connection.execute(RESTORE_EPOCH).fetchall(),
            )

        scopes, ordinals, epochs = await self.turn(work)
        self.numbering.rows |= {(row[0], row[1]): scope_row(row[1:]) for row in scopes}
        for tenant, name, label, lookup, ordinal in ordinals:
            self.numbering.ordinals[tenant, name, label, bytes(lookup)] = ordinal
        return epoch_of(epochs)


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def _dumped(counters: dict[str, int] | None) -> str | None:
    return None if counters is None else json.dumps(counters)
