"""Allocate ordinals to the values of a scope: one for each value, each used once, also with concurrent writers."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.errors import NotFoundError
from app.store.bulk import document, fetch, insert_rows, moment, rows_matching, run_many, storable
from app.store.database import ContentionError
from app.store.tables import SCOPE_ACTIVE, entry, scope
from app.store.vault.tables import gateway_binding, gateway_signed

EPOCH_STRIDE = 2_000_000
"""How far ordinals jump after a restore from a backup: more than the backup's gap could have lost."""

STABLE_ORDINALS = 1_000_000
"""Ordinals of a tenant's stable scope come after so many, in each epoch: no other scope gives the same handles."""

_YIELD_EVERY = 256

_SCOPES = (
    "SELECT s.id, s.generation, s.state, s.expires, s.counters, s.restore_epoch, s.dek_wrapped, s.kek_version, "
    "s.owner FROM {q} CROSS JOIN scope s WHERE s.id = q.id AND s.tenant = {0}"
)
_LOCKED = _SCOPES + " ORDER BY s.id FOR UPDATE OF s"
# CROSS JOIN makes SQLite iterate over the wanted rows and look up each by its key.
ORDINALS = (
    "SELECT q.scope, q.type, q.lookup, e.ordinal FROM {q} CROSS JOIN entry e "
    "WHERE e.scope = q.scope AND e.type = q.type AND e.lookup = q.lookup AND e.tenant = {0}"
)
LOOKUP_NAMES = (("scope", "text"), ("type", "text"), ("lookup", "bytea"))
_SCOPE_COLUMNS = (
    *("tenant", "id", "created", "expires", "state", "generation"),
    *("counters", "restore_epoch", "dek_wrapped", "kek_version", "owner"),
)
_ENTRY_COLUMNS = ("tenant", "scope", "type", "ordinal", "lookup", "ciphertext", "origin", "created")


class ScopeUse(Protocol):
    """The part of a scope's data key that allocation uses (``engines.cipher.ScopeKeys``)."""

    def lookup(self, label: str, payload: bytes, *, canonical: bool) -> bytes:
        """Return the keyed look-up digest of a value."""

    def seal(self, label: str, ordinal: int, payload: bytes) -> bytes:
        """Return the ciphertext of a value, bound to its label and ordinal."""


class DataKeys(Protocol):
    """What allocation needs of the holder of data keys (``engines.cipher.KeyKeeper``)."""

    def create(self, tenant: str, scope: str, generation: int) -> tuple[int, bytes, Any]:
        """Make a new data key; return the wrapping version, the wrapped key and the opened key."""

    def open(self, tenant: str, scope: str, generation: int, version: int, wrapped: bytes) -> Any:
        """Unwrap a stored data key and return the opened key."""

    def keep(self, name: tuple[str, str, int], keys: Any) -> None:
        """Cache an opened new data key, once it is stored."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value to allocate: its label, the bytes to seal and those to look up, and how (see ``entry.origin``)."""

    label: str
    payload: bytes
    looked_up: bytes
    origin: str

    @property
    def canonical(self) -> bool:
        """Return whether values that are equal after folding share a handle."""
        return self.origin == "canonical"


@dataclass(frozen=True, slots=True)
class Want:
    """The values of one request, all of one scope; ``expires`` and ``owner`` count only where the scope is new.

    ``identity`` is who asks: a scope that another one owns is refused. Ordinals are above ``above`` in each epoch.
    """

    scope: str
    values: Sequence[Value]
    expires: datetime | None
    fresh: bool = False
    owner: str | None = None
    identity: str | None = None
    above: int = 0


@dataclass(slots=True)
class ScopeRow:
    """A scope as stored."""

    id: str
    generation: int
    state: str
    expires: datetime | None
    counters: dict[str, int]
    restore_epoch: int
    dek_wrapped: bytes | None
    kek_version: int | None
    owner: str | None = None

    def live(self, now: datetime) -> bool:
        """Return whether its entries may be read."""
        return self.state == SCOPE_ACTIVE and (self.expires is None or self.expires > now)

    def take(self, label: str, above: int = 0) -> int:
        """Return the next ordinal of ``label`` and count it as used."""
        last = max(self.counters.get(label, 0), self.restore_epoch * EPOCH_STRIDE + above)
        self.counters[label] = last + 1
        return last + 1


Key = tuple[str, str, bytes]


@dataclass(slots=True)
class Allocation:
    """One run for one tenant inside one transaction; ``uses`` are the opened data keys by scope.

    ``made`` are new data keys by tenant, scope and generation, to be cached once they are committed.
    """

    tx: AsyncConnection
    tenant: str
    keeper: DataKeys
    now: datetime
    uses: dict[str, Any] = field(default_factory=dict)
    ordinals: dict[Key, int] = field(default_factory=dict)
    made: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    _rows: dict[str, ScopeRow] = field(default_factory=dict)
    _entries: list[tuple[Any, ...]] = field(default_factory=list)
    _computed: dict[int, tuple[Any, list[Key]]] = field(default_factory=dict)

    async def run(self, wants: Sequence[Want]) -> list[list[int]]:
        """Return the ordinals of each want's values, in their order."""
        stored = {want.scope for want in wants if not want.fresh}
        self._rows = {row.id: row for row in await find_scopes(self.tx, self.tenant, stored)}
        self._check_owners(wants)
        for row in self._rows.values():
            if row.live(self.now):
                self._open(row)
        keys = await self._look_up(wants)
        lacking = {
            want.scope
            for want, own in zip(wants, keys, strict=True)
            if own is None or not self._all_numbered(own)
        }
        if lacking:
            await self._write([want for want in wants if want.scope in lacking])
            keys = await self._keys(wants)
        return [[self.ordinals[key] for key in own or ()] for own in keys]

    def _all_numbered(self, keys: Iterable[Key]) -> bool:
        return all(key in self.ordinals for key in keys)

    def _check_owners(self, wants: Sequence[Want]) -> None:
        for want in wants:
            row = self._rows.get(want.scope)
            if row is not None and row.owner not in {None, want.identity}:
                raise NotFoundError("There is no such scope.")

    def _open(self, row: ScopeRow) -> None:
        if row.dek_wrapped is None or row.kek_version is None:
            raise ContentionError("The scope is being erased; try again.")
        self.uses[row.id] = self.keeper.open(
            self.tenant, row.id, row.generation, row.kek_version, row.dek_wrapped
        )

    async def _keys(self, wants: Sequence[Want]) -> list[list[Key] | None]:
        """Return each want's look-ups, or None where its scope has no key yet; computed once per data key."""
        keys: list[list[Key] | None] = []
        for want in wants:
            use = self.uses.get(want.scope)
            if use is None:
                keys.append(None)
                continue
            done, own = self._computed.get(id(want), (None, []))
            if done is not use:
                own = await self._compute(want, use)
                self._computed[id(want)] = use, own
            keys.append(own)
        return keys

    async def _compute(self, want: Want, use: ScopeUse) -> list[Key]:
        own: list[Key] = []
        for at, value in enumerate(want.values):
            lookup = use.lookup(value.label, value.looked_up, canonical=value.canonical)
            own.append((want.scope, value.label, lookup))
            if at % _YIELD_EVERY == _YIELD_EVERY - 1:
                await asyncio.sleep(0)
        return own

    async def _look_up(self, wants: Sequence[Want]) -> list[list[Key] | None]:
        keys = await self._keys(wants)
        wanted = list(dict.fromkeys(key for own in keys for key in own or ()))
        for name, label, lookup, ordinal in await rows_matching(
            self.tx, ORDINALS, LOOKUP_NAMES, wanted, self.tenant
        ):
            self.ordinals[name, label, bytes(lookup)] = ordinal
        return keys

    async def _write(self, wants: Sequence[Want]) -> None:
        """Lock existing scopes, look up again, number the values still missing, and insert them in few statements."""
        existing = sorted({want.scope for want in wants} & self._rows.keys())
        changed: list[ScopeRow] = []
        for row in await lock_scopes(self.tx, self.tenant, existing):
            self._rows[row.id] = row
            if not row.live(self.now):
                await self._renew(row, next(want for want in wants if want.scope == row.id))
            else:
                self._open(row)
            changed.append(row)
        await self._look_up([want for want in wants if want.scope in self._rows])
        made = await self._make(wants)
        self._check_owners(wants)
        keys = await self._keys(wants)
        for want, own in zip(wants, keys, strict=True):
            await self._number(want, own or [])
        await self._insert_scopes(made)
        await insert_rows(self.tx, entry, _ENTRY_COLUMNS, self._entries)
        await self._update_scopes(changed)

    async def _number(self, want: Want, keys: Sequence[Key]) -> None:
        use, row = self.uses[want.scope], self._rows[want.scope]
        for at, (value, key) in enumerate(zip(want.values, keys, strict=True)):
            if key in self.ordinals:
                continue
            ordinal = self.ordinals[key] = row.take(value.label, want.above)
            sealed = use.seal(value.label, ordinal, value.payload)
            self._entries.append(
                (self.tenant, want.scope, value.label, ordinal, key[2], sealed, value.origin, self.now)
            )
            if at % _YIELD_EVERY == _YIELD_EVERY - 1:
                await asyncio.sleep(0)

    async def _make(self, wants: Sequence[Want]) -> list[ScopeRow]:
        """Prepare the scopes that do not exist yet; they are stored later, with their final counters."""
        missing = {want.scope: want for want in reversed(wants) if want.scope not in self._rows}
        if not missing:
            return []
        epoch = await get_restore_epoch(self.tx)
        made = []
        for name in sorted(missing):
            version, wrapped, use = self.keeper.create(self.tenant, name, 1)
            self.made[self.tenant, name, 1] = use
            first = missing[name]
            row = ScopeRow(
                name, 1, SCOPE_ACTIVE, first.expires, {}, epoch, wrapped, version, owner=first.owner
            )
            self._rows[name], self.uses[name] = row, use
            made.append(row)
        return made

    async def _renew(self, row: ScopeRow, want: Want) -> None:
        """Give an erased or expired scope a new data key; its counters continue, so old handles stay unresolved."""
        await remove_contents(self.tx, [(self.tenant, row.id)])
        row.generation += 1
        row.state, row.expires = SCOPE_ACTIVE, want.expires
        row.kek_version, row.dek_wrapped, use = self.keeper.create(self.tenant, row.id, row.generation)
        self.uses[row.id] = self.made[self.tenant, row.id, row.generation] = use

    async def _insert_scopes(self, made: Sequence[ScopeRow]) -> None:
        rows = [
            (
                *(self.tenant, row.id, self.now, row.expires, row.state, row.generation),
                *(json.dumps(row.counters), row.restore_epoch, row.dek_wrapped, row.kek_version, row.owner),
            )
            for row in made
        ]
        inserted = await insert_rows(
            self.tx, scope, _SCOPE_COLUMNS, rows, after=" ON CONFLICT (tenant, id) DO NOTHING RETURNING id"
        )
        if self.tx.dialect.name == "postgresql" and len(inserted) < len(rows):
            raise ContentionError("Another writer made this scope first; try again.")

    async def _update_scopes(self, rows: Sequence[ScopeRow]) -> None:
        if not rows:
            return
        fields = ("counters", "state", "expires", "generation", "dek_wrapped", "kek_version")
        values = [
            (
                json.dumps(row.counters),
                row.state,
                row.expires,
                row.generation,
                row.dek_wrapped,
                row.kek_version,
            )
            for row in rows
        ]
        if self.tx.dialect.name == "sqlite":
            marks = ", ".join(f"{name} = ?" for name in fields)
            await run_many(
                self.tx,
                f"UPDATE scope SET {marks} WHERE tenant = ? AND id = ?",  # noqa: S608 - our own names
                [(*map(storable, own), self.tenant, row.id) for own, row in zip(values, rows, strict=True)],
            )
            return
        await self.tx.exec_driver_sql(
            "UPDATE scope SET counters = q.counters, state = q.state, expires = q.expires, "
            "generation = q.generation, dek_wrapped = q.dek_wrapped, kek_version = q.kek_version "
            "FROM unnest($2::text[], $3::jsonb[], $4::text[], $5::timestamptz[], $6::bigint[], $7::bytea[], "
            "$8::bigint[]) AS q(id, counters, state, expires, generation, dek_wrapped, kek_version) "
            "WHERE scope.tenant = $1 AND scope.id = q.id",
            (self.tenant, [row.id for row in rows], *(list(own) for own in zip(*values, strict=True))),
        )


async def find_scopes(tx: AsyncConnection, tenant: str, names: Iterable[str]) -> list[ScopeRow]:
    """Return the scopes of ``tenant`` among ``names``, without waiting for locks."""
    wanted = [(name,) for name in sorted(names)]
    return [_scope_row(row) for row in await rows_matching(tx, _SCOPES, (("id", "text"),), wanted, tenant)]


async def lock_scopes(tx: AsyncConnection, tenant: str, names: Iterable[str]) -> list[ScopeRow]:
    """Return the same scopes, locked until the transaction ends, always in the order of their names.

    SQLite has one writer at a time and needs no row locks.
    """
    if tx.dialect.name == "sqlite":
        return await find_scopes(tx, tenant, names)
    wanted = [(name,) for name in sorted(names)]
    return [_scope_row(row) for row in await rows_matching(tx, _LOCKED, (("id", "text"),), wanted, tenant)]


async def get_restore_epoch(tx: AsyncConnection) -> int:
    """Return the restore epoch of this installation (0: never restored from a backup)."""
    rows = await fetch(tx, "SELECT value FROM installation WHERE name = 'restore_epoch'", ())
    return int(document(rows[0][0])) if rows else 0


async def remove_contents(tx: AsyncConnection, names: Sequence[tuple[str, str]]) -> None:
    """Delete everything that scopes (tenant, name) hold, but for the scopes themselves."""
    for table in (entry, gateway_signed, gateway_binding):
        await tx.execute(table.delete().where(tuple_(table.c.tenant, table.c.scope).in_(names)))


def _scope_row(row: Any) -> ScopeRow:
    name, generation, state, expires, counters, epoch, wrapped, version, owner = row
    wrapped = None if wrapped is None else bytes(wrapped)
    return ScopeRow(
        name, generation, state, moment(expires), document(counters), epoch, wrapped, version, owner
    )
