"""Store what the requests of many tenants write in one statement of PostgreSQL, after reading in another.

Both are functions of the database that take the role ``sluice_batch``: it sees scopes and makes rows of the tenants
that have a request in the batch, reads neither ciphertexts nor records, and refuses a row of another tenant than its
request's. See docs/decisions/0022-batches-of-many-tenants.md.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.store.database import Database
from app.store.tables import WRITTEN_BY, audit_event
from app.store.vault.allocation import scope_row
from app.store.vault.numbering import Key, Numbering, Place, Want

AUDIT_COLUMNS = tuple(column.name for column in audit_event.columns if column.name != WRITTEN_BY)

_SCOPE_COLUMNS = 10
_ENTRY_COLUMNS = 10
_READ = "SELECT * FROM sluice_read_batch($1, $2, $3, $4, $5, $6, $7)"
_MARKS = ", ".join(
    f"${at}" for at in range(1, 3 + _SCOPE_COLUMNS + _ENTRY_COLUMNS + 1 + len(AUDIT_COLUMNS) + 1)
)
_STORE = f"SELECT sluice_store_batch({_MARKS})"


@dataclass(slots=True)
class TenantBatch:
    """One attempt to store a batch; ``tenants`` are those of its requests, in their order.

    ``apart`` are scopes whose requests need a transaction of their own: the scope has ended, or others write to it.
    """

    database: Database
    tenants: Sequence[str]
    numbering: Numbering
    apart: set[Place] = field(default_factory=set)
    _epoch: int = 0
    _before: dict[Place, str] = field(default_factory=dict)
    _changed: list[Place] = field(default_factory=list)

    async def number(self, wants: Sequence[Want]) -> None:
        """Give the values of ``wants`` numbers by one reading, without locks; see ``apart`` afterwards.

        A second reading follows where a scope's data key is not in memory.
        """
        numbering = self.numbering
        stored = sorted({place for want in wants for place in want.read})
        guessed: dict[Place, int] = {}
        for place in stored:
            cached = numbering.keeper.recall(*place)
            if cached is not None:
                guessed[place], numbering.uses[place] = cached
        await self._read(stored, await self._keys(wants))
        cold = [want for want in wants if self._open(want.place, guessed)]
        if cold:
            await self._read([], await self._keys(cold))
        near = [want for want in wants if want.place not in self.apart]
        numbering.check_owners(near)
        lacking = await numbering.lacking(near)
        self._changed = sorted({want.place for want in lacking})
        for place in self._changed:
            if place in numbering.rows:
                self._before[place] = json.dumps(numbering.rows[place].counters)
        numbering.make(lacking, self._epoch)
        await numbering.number(lacking)

    async def store(
        self, scopes: Sequence[Place | None], events: Sequence[tuple[int, tuple[Any, ...]]]
    ) -> None:
        """Store the values and ``events``: pairs of the request's number, from 0, and the row of the record.

        ``scopes`` are the scopes that the requests write to. What belongs to a scope that others lock, or have
        changed since it was read, is not stored; that scope is ``apart`` then.
        """
        units = {place: at for at, place in enumerate(self._changed, 1)}
        rows = self.numbering.rows
        changes = [
            (
                *(*place, row.generation, row.restore_epoch, self._before.get(place)),
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

    def condition(self, place: Place | None) -> Place | None:
        """Return the scope without whose change a request's records are not stored; None where nothing can fail."""
        return place if place in self._changed else None

    async def _keys(self, wants: Sequence[Want]) -> list[Key]:
        return list(dict.fromkeys(key for own in await self.numbering.keys(wants) for key in own or ()))

    async def _read(self, places: Sequence[Place], keys: Sequence[Key]) -> None:
        rows = await self.database.run_alone(
            _READ, (list(self.tenants), *_columns(places, 2), *_columns(keys, 4)), write=False
        )
        for kind, at, ordinal, *scope in rows:
            if kind == "scope":
                self.numbering.rows[places[at - 1]] = scope_row(scope)
            elif kind == "entry":
                self.numbering.ordinals[keys[at - 1]] = ordinal
            else:
                self._epoch = ordinal

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


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]
