"""Number the values of scopes by what is stored of them: the part of an allocation that asks no database."""

import asyncio
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from app.core.errors import NotFoundError
from app.store.failures import ContentionError
from app.store.tables import SCOPE_ACTIVE

EPOCH_STRIDE = 2_000_000
"""How far ordinals jump after a restore from a backup: more than the backup's gap could have lost."""

STABLE_ORDINALS = 1_000_000
"""Ordinals of a tenant's stable scope come after so many, in each epoch: no other scope gives the same handles."""

FLOOR = ""
"""Name of a tenant's row that has the highest ordinals of its deleted tombstones; no scope can be named so."""

_YIELD_EVERY = 256

Place = tuple[str, str]
"""Tenant and name of a scope."""

Key = tuple[str, str, str, bytes]
"""Tenant, scope, label and look-up of a value."""


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

    def recall(self, tenant: str, scope: str) -> tuple[int, Any] | None:
        """Return the generation and the opened key that are in memory for a scope, which may have another by now."""

    def keep(self, name: tuple[str, str, int], keys: Any) -> None:
        """Cache an opened new data key, once it is stored."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value to allocate: its label, the bytes to seal and those to look up, and how (see ``entry.origin``).

    ``blind`` is its digest in the tenant's blind index, ``blind_normal`` that of its normal form.
    """

    label: str
    payload: bytes
    looked_up: bytes
    origin: str
    blind: bytes
    blind_normal: bytes

    @property
    def canonical(self) -> bool:
        """Return whether values that are equal after folding share a handle."""
        return self.origin == "canonical"


@dataclass(frozen=True, slots=True)
class Want:
    """The values of one request, all of one scope; ``expires`` and ``owner`` count only where the scope is new.

    ``identity`` is who asks: a scope that another one owns is refused. Ordinals are above ``above`` in each epoch.
    """

    tenant: str
    scope: str
    values: Sequence[Value]
    expires: datetime | None
    fresh: bool = False
    owner: str | None = None
    identity: str | None = None
    above: int = 0

    @property
    def place(self) -> Place:
        """Return tenant and name of the scope."""
        return self.tenant, self.scope

    @property
    def read(self) -> tuple[Place, ...]:
        """Return what must be read to number its values: its scope, if that may exist, and its tenant's floor."""
        return () if self.fresh else (self.place, (self.tenant, FLOOR))


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


@dataclass(slots=True)
class Numbering:
    """What is known of the scopes of a batch, and what numbering its values adds.

    ``uses`` are the opened data keys and ``rows`` the stored scopes, by place. ``made`` are new data keys by tenant,
    scope and generation, to be cached once they are committed; ``entries`` are new rows of the table.
    """

    keeper: DataKeys
    now: datetime
    rows: dict[Place, ScopeRow] = field(default_factory=dict)
    uses: dict[Place, Any] = field(default_factory=dict)
    ordinals: dict[Key, int] = field(default_factory=dict)
    made: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    entries: list[tuple[Any, ...]] = field(default_factory=list)
    _computed: dict[int, tuple[Any, list[Key]]] = field(default_factory=dict)

    def open(self, place: Place) -> None:
        """Open the data key of a live scope."""
        row = self.rows[place]
        if row.dek_wrapped is None or row.kek_version is None:
            raise ContentionError("The scope is being erased; try again.")
        self.uses[place] = self.keeper.open(*place, row.generation, row.kek_version, row.dek_wrapped)

    def check_owners(self, wants: Iterable[Want]) -> None:
        """Raise NotFoundError where a want's scope belongs to another caller."""
        for want in wants:
            row = self.rows.get(want.place)
            if row is not None and row.owner not in {None, want.identity}:
                raise NotFoundError("There is no such scope.")

    async def keys(self, wants: Sequence[Want]) -> list[list[Key] | None]:
        """Return each want's look-ups, or None where its scope has no key yet; computed once per data key."""
        keys: list[list[Key] | None] = []
        for want in wants:
            use = self.uses.get(want.place)
            if use is None:
                keys.append(None)
                continue
            done, own = self._computed.get(id(want), (None, []))
            if done is not use:
                own = await self._compute(want, use)
                self._computed[id(want)] = use, own
            keys.append(own)
        return keys

    async def lacking(self, wants: Sequence[Want]) -> list[Want]:
        """Return the wants of scopes in which a value still has no number."""
        keys = await self.keys(wants)
        places = {
            want.place
            for want, own in zip(wants, keys, strict=True)
            if own is None or any(key not in self.ordinals for key in own)
        }
        return [want for want in wants if want.place in places]

    async def number(self, wants: Sequence[Want]) -> None:
        """Give numbers to the values of ``wants`` that have none; their scopes are known and open."""
        for want, keys in zip(wants, await self.keys(wants), strict=True):
            await self._number(want, keys or [])

    async def numbered(self, wants: Sequence[Want]) -> list[list[int]]:
        """Return the ordinals of each want's values, in their order."""
        return [[self.ordinals[key] for key in own or ()] for own in await self.keys(wants)]

    def make(self, wants: Sequence[Want], epoch: int) -> list[Place]:
        """Prepare the scopes that do not exist yet; they are stored later, with their final counters.

        One whose name may have been used before counts on from its tenant's floor.
        """
        missing = {want.place: want for want in reversed(wants) if want.place not in self.rows}
        for place in sorted(missing):
            version, wrapped, use = self.keeper.create(*place, 1)
            first = missing[place]
            floor = self.rows.get((place[0], FLOOR)) if not first.fresh else None
            counters = dict(floor.counters) if floor is not None else {}
            self.rows[place] = ScopeRow(
                place[1], 1, SCOPE_ACTIVE, first.expires, counters, epoch, wrapped, version, owner=first.owner
            )
            self.uses[place] = self.made[*place, 1] = use
        return sorted(missing)

    def renew(self, place: Place, want: Want) -> None:
        """Give an erased or expired scope a new data key; its counters continue, so old handles stay unresolved."""
        row = self.rows[place]
        row.generation += 1
        row.state, row.expires = SCOPE_ACTIVE, want.expires
        row.kek_version, row.dek_wrapped, use = self.keeper.create(*place, row.generation)
        self.uses[place] = self.made[*place, row.generation] = use

    def keep(self, apart: Container[Place] = ()) -> None:
        """Cache the new data keys, which are committed now, but for scopes that are not."""
        for name, use in self.made.items():
            if name[:2] not in apart:
                self.keeper.keep(name, use)

    async def _compute(self, want: Want, use: ScopeUse) -> list[Key]:
        own: list[Key] = []
        for at, value in enumerate(want.values):
            lookup = use.lookup(value.label, value.looked_up, canonical=value.canonical)
            own.append((*want.place, value.label, lookup))
            if at % _YIELD_EVERY == _YIELD_EVERY - 1:
                await asyncio.sleep(0)
        return own

    async def _number(self, want: Want, keys: Sequence[Key]) -> None:
        use, row = self.uses[want.place], self.rows[want.place]
        for at, (value, key) in enumerate(zip(want.values, keys, strict=True)):
            if key in self.ordinals:
                continue
            ordinal = self.ordinals[key] = row.take(value.label, want.above)
            sealed = use.seal(value.label, ordinal, value.payload)
            digests = (value.blind, value.blind_normal)
            self.entries.append(
                (*want.place, value.label, ordinal, key[3], sealed, value.origin, *digests, self.now)
            )
            if at % _YIELD_EVERY == _YIELD_EVERY - 1:
                await asyncio.sleep(0)
