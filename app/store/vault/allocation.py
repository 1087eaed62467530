"""Allocate ordinals in a transaction: one for each value, each used once, also with concurrent writers."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.bulk import document, fetch, insert_rows, moment, rows_matching, run_many
from app.store.failures import ContentionError
from app.store.tables import entry, scope
from app.store.vault.numbering import Key, Numbering, Place, ScopeRow, Want
from app.store.vault.tables import gateway_binding, gateway_signed

SCOPES = (
    "SELECT s.tenant, s.id, s.generation, s.state, s.expires, s.counters, s.restore_epoch, s.dek_wrapped, "
    "s.kek_version, s.owner FROM {q} CROSS JOIN scope s WHERE s.id = q.id AND s.tenant = q.tenant"
)
_LOCKED = SCOPES + " ORDER BY s.tenant, s.id FOR UPDATE OF s"
PLACE_NAMES = (("tenant", "text"), ("id", "text"))
# CROSS JOIN makes SQLite iterate over the wanted rows and look up each by its key.
ORDINALS = (
    "SELECT q.tenant, q.scope, q.type, q.lookup, e.ordinal FROM {q} CROSS JOIN entry e "
    "WHERE e.scope = q.scope AND e.type = q.type AND e.lookup = q.lookup AND e.tenant = q.tenant"
)
RESTORE_EPOCH = "SELECT value FROM installation WHERE name = 'restore_epoch'"
LOOKUP_NAMES = (("tenant", "text"), ("scope", "text"), ("type", "text"), ("lookup", "bytea"))
# One who makes a scope in a batch does not wait for another who makes it, but leaves it to that one.
_ANNOUNCE = (
    "SELECT pg_advisory_xact_lock(hashtextextended(q.tenant || chr(31) || q.id, 0)) "
    "FROM unnest($1::text[], $2::text[]) AS q(tenant, id)"
)
SCOPE_COLUMNS = (
    *("tenant", "id", "created", "expires", "state", "generation"),
    *("counters", "restore_epoch", "dek_wrapped", "kek_version", "owner"),
)
ENTRY_COLUMNS = (
    *("tenant", "scope", "type", "ordinal", "lookup", "ciphertext", "origin"),
    *("blind", "blind_normal", "created"),
)
_CHANGED = ("counters", "state", "expires", "generation", "dek_wrapped", "kek_version")
CHANGE_SCOPE = f"UPDATE scope SET {', '.join(f'{name} = ?' for name in _CHANGED)} WHERE tenant = ? AND id = ?"  # noqa: S608
"""Changes a scope on SQLite; its parameters are those of ``changed_scope``."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """One run inside one transaction, which on PostgreSQL serves one tenant."""

    tx: AsyncConnection
    numbering: Numbering

    async def run(self, wants: Sequence[Want]) -> list[list[int]]:
        """Return the ordinals of each want's values, in their order."""
        numbering = self.numbering
        numbering.rows |= await find_scopes(self.tx, {place for want in wants for place in want.read})
        numbering.check_owners(wants)
        for place, row in numbering.rows.items():
            if row.live(numbering.now):
                numbering.open(place)
        await self._look_up(wants)
        lacking = await numbering.lacking(wants)
        if lacking:
            await self._write(lacking)
        return await numbering.numbered(wants)

    async def _look_up(self, wants: Sequence[Want]) -> None:
        keys = await self.numbering.keys(wants)
        wanted: list[Key] = list(dict.fromkeys(key for own in keys for key in own or ()))
        for tenant, name, label, lookup, ordinal in await rows_matching(
            self.tx, ORDINALS, LOOKUP_NAMES, wanted
        ):
            self.numbering.ordinals[tenant, name, label, bytes(lookup)] = ordinal

    async def _write(self, wants: Sequence[Want]) -> None:
        """Lock existing scopes, look up again, number the values still missing, and insert them in few statements."""
        numbering = self.numbering
        places = {want.place for want in wants} & numbering.rows.keys()
        # SQLite has had no other writer since the transaction began, so what was read then is still so.
        alone = self.tx.dialect.name == "sqlite"
        existing = (
            {place: numbering.rows[place] for place in places}
            if alone
            else await lock_scopes(self.tx, places)
        )
        if existing.keys() != places:
            raise ContentionError("The scope's tombstone was deleted meanwhile; try again.")
        for place, row in existing.items():
            numbering.rows[place] = row
            if row.live(numbering.now):
                numbering.open(place)
            else:
                await remove_contents(self.tx, [place])
                numbering.renew(place, next(want for want in wants if want.place == place))
        if not alone:
            await self._look_up([want for want in wants if want.place in numbering.rows])
        new = any(want.place not in numbering.rows for want in wants)
        made = numbering.make(wants, await get_restore_epoch(self.tx)) if new else []
        numbering.check_owners(wants)
        await numbering.number(wants)
        await self._insert_scopes(made)
        await insert_rows(self.tx, entry, ENTRY_COLUMNS, numbering.entries)
        await self._update_scopes(existing)

    async def _insert_scopes(self, places: Sequence[Place]) -> None:
        if not places:
            return
        numbering = self.numbering
        rows = [new_scope(place, numbering.rows[place], numbering.now) for place in places]
        postgresql = self.tx.dialect.name == "postgresql"
        if postgresql:
            await fetch(self.tx, _ANNOUNCE, [list(names) for names in zip(*places, strict=True)])
        inserted = await insert_rows(
            self.tx, scope, SCOPE_COLUMNS, rows, after=" ON CONFLICT (tenant, id) DO NOTHING RETURNING id"
        )
        if postgresql and len(inserted) < len(rows):
            raise ContentionError("Another writer made this scope first; try again.")

    async def _update_scopes(self, rows: dict[Place, ScopeRow]) -> None:
        if not rows:
            return
        values = [changed_scope(place, row) for place, row in rows.items()]
        if self.tx.dialect.name == "sqlite":
            await run_many(self.tx, CHANGE_SCOPE, values)
            return
        await self.tx.exec_driver_sql(
            "UPDATE scope SET counters = q.counters, state = q.state, expires = q.expires, "
            "generation = q.generation, dek_wrapped = q.dek_wrapped, kek_version = q.kek_version "
            "FROM unnest($1::jsonb[], $2::text[], $3::timestamptz[], $4::bigint[], $5::bytea[], $6::bigint[], "
            "$7::text[], $8::text[]) "
            "AS q(counters, state, expires, generation, dek_wrapped, kek_version, tenant, id) "
            "WHERE scope.tenant = q.tenant AND scope.id = q.id",
            tuple(list(column) for column in zip(*values, strict=True)),
        )


def new_scope(place: Place, row: ScopeRow, now: datetime) -> tuple[Any, ...]:
    """Return the row of a scope that is made at ``now``, in the order of ``SCOPE_COLUMNS``."""
    return (
        *(*place, now, row.expires, row.state, row.generation),
        *(json.dumps(row.counters), row.restore_epoch, row.dek_wrapped, row.kek_version, row.owner),
    )


def changed_scope(place: Place, row: ScopeRow) -> tuple[Any, ...]:
    """Return what an allocation may change of a scope, then its tenant and name."""
    return (
        *(json.dumps(row.counters), row.state, row.expires),
        *(row.generation, row.dek_wrapped, row.kek_version, *place),
    )


async def find_scopes(tx: AsyncConnection, places: Iterable[Place]) -> dict[Place, ScopeRow]:
    """Return the scopes at ``places`` that exist, without waiting for locks."""
    return await _scopes(tx, SCOPES, places)


async def lock_scopes(tx: AsyncConnection, places: Iterable[Place]) -> dict[Place, ScopeRow]:
    """Return the same scopes, locked until the transaction ends, in the order of their names; for PostgreSQL.

    SQLite has one writer at a time and needs no row locks.
    """
    return await _scopes(tx, _LOCKED, places)


async def get_restore_epoch(tx: AsyncConnection) -> int:
    """Return the restore epoch of this installation (0: never restored from a backup)."""
    return epoch_of(await fetch(tx, RESTORE_EPOCH, ()))


def epoch_of(rows: Sequence[Sequence[Any]]) -> int:
    """Return the epoch from what ``RESTORE_EPOCH`` found."""
    return int(document(rows[0][0])) if rows else 0


async def remove_contents(tx: AsyncConnection, names: Sequence[Place]) -> None:
    """Delete everything that scopes (tenant, name) hold, but for the scopes themselves."""
    for table in (entry, gateway_signed, gateway_binding):
        await tx.execute(table.delete().where(tuple_(table.c.tenant, table.c.scope).in_(names)))


async def _scopes(tx: AsyncConnection, select: str, places: Iterable[Place]) -> dict[Place, ScopeRow]:
    rows = await rows_matching(tx, select, PLACE_NAMES, sorted(places))
    return {(row[0], row[1]): scope_row(row[1:]) for row in rows}


def scope_row(row: Sequence[Any]) -> ScopeRow:
    """Return a scope from the columns of its table, in the order of the fields."""
    name, generation, state, expires, counters, epoch, wrapped, version, owner = row
    wrapped = None if wrapped is None else bytes(wrapped)
    return ScopeRow(
        name, generation, state, moment(expires), document(counters), epoch, wrapped, version, owner
    )
