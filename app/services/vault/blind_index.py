"""Find a value in all scopes of a tenant: by its digest, or scope by scope where entries have none yet."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core.content.handles import LITERAL, Original
from app.core.contracts.middleware import VaultOptions
from app.core.errors import StoreUnavailableError
from app.engines.cipher import KeyKeeper, KeyRingError, RecordKeys, ScopeKeys, SealBrokenError
from app.services.vault.normal_forms import searched_forms, stored_form
from app.store.database import Database
from app.store.vault.blind import (
    EntryKey,
    UnindexedEntry,
    count_unindexed,
    index_entries,
    list_unindexed,
    list_unindexed_scopes,
)
from app.store.vault.numbering import ScopeRow, Value
from app.store.vault.subjects import SoughtDigests, SoughtEntries
from app.store.vault.vault import EntryPlace, find_places, list_live_rows, list_spelled

_BATCH = 200
_FILLED = 500
_COUNTED = 100_000
_PAUSE_S = 0.01
"""Between two transactions that fill the index, so that on SQLite requests get the one write lock."""

log = logging.getLogger("sluice.vault")


def _log_progress(done: int, left: int) -> None:
    more = " or more" if left == _COUNTED else ""
    log.info("The blind index of the vault has %s entries more, of %s%s.", done, left, more)


@dataclass(frozen=True, slots=True)
class BlindIndex:
    """The digests of all values; ``keys`` has one secret key for each tenant."""

    database: Database
    key_keeper: KeyKeeper
    keys: RecordKeys

    def digests(self, tenant: str, value: str) -> list[bytes]:
        """Return the digests under which ``value`` may be stored: as it is, and as an equal canonical value."""
        return [blind_digest(self.keys, tenant, value, canonical=canonical) for canonical in (False, True)]

    async def unindexed_places(self, tenant: str, value: str, now: datetime) -> list[EntryPlace]:
        """Look for ``value`` in each live scope that has entries without a digest, in short transactions."""
        places: list[EntryPlace] = []
        after: str | None = None
        while True:
            async with self.database.transaction(tenant, write=False) as tx:
                names = await list_unindexed_scopes(tx, tenant, after=after, limit=_BATCH)
                rows = await list_live_rows(tx, tenant, names, now) if names else []
                opened = {row.id: self._open(tenant, row) for row in rows}
                lookups = [
                    (row.id, label, lookup)
                    for row in rows
                    for label in row.counters
                    for lookup in _lookups(opened[row.id], label, value)
                ]
                places += await find_places(tx, tenant, lookups)
                for place, sealed in await list_spelled(tx, tenant, list(opened)):
                    if _is_value(opened[place.scope], place, sealed, value):
                        places.append(place)
            if len(names) < _BATCH:
                return places
            after = names[-1]
            await asyncio.sleep(0)

    async def unindexed(
        self, tenant: str, sought: SoughtEntries
    ) -> AsyncIterator[tuple[UnindexedEntry, bytes | None]]:
        """Open the entries of a tenant that lack the digest that is sought; yield each with the digest.

        None: the entry cannot be opened, so nobody can say what it is.
        """
        after: EntryKey | None = None
        while True:
            async with self.database.transaction(tenant, write=False) as tx:
                entries = await list_unindexed(
                    tx, after=after, limit=_BATCH, tenant=tenant, normal=sought.normal, now=sought.now
                )
            for unindexed in entries:
                digests = self._digests(unindexed)
                yield unindexed, digests[sought.normal] if digests is not None else None
            if len(entries) < _BATCH:
                return
            after = entries[-1].key
            await asyncio.sleep(0)

    def sought(
        self, tenant: str, values: Sequence[tuple[str, str | None]], now: datetime | None, *, variants: bool
    ) -> SoughtEntries:
        """Return which entries have one of ``values`` (each with its type, None: any) or, also, a variant of one."""
        if variants:
            forms = [(searched_forms(value, label), label) for value, label in values]
            digests = [
                SoughtDigests(frozenset(normal_digest(self.keys, tenant, form) for form in own), label)
                for own, label in forms
            ]
        else:
            digests = [
                SoughtDigests(frozenset(self.digests(tenant, value)), label) for value, label in values
            ]
        return SoughtEntries(digests, variants, now)

    async def fill(
        self, tell: Callable[[int, int], None] = _log_progress, *, tenant: str | None = None
    ) -> int:
        """Store the digests of entries that lack one, of ``tenant`` (None: of all); return how many.

        ``tell`` hears after each batch how many are done and how many were left at the start (at most 100,000 are
        counted). An entry that cannot be opened stays as it is, and a later run tries it again.
        """
        async with self.database.system_transaction(write=False) as tx:
            left = await count_unindexed(tx, most=_COUNTED, tenant=tenant)
        done = 0
        after: EntryKey | None = None
        while left:
            async with self.database.system_transaction() as tx:
                entries = await list_unindexed(tx, after=after, limit=_FILLED, tenant=tenant)
                for name in {entry.tenant for entry in entries}:
                    await self.keys.ready(name)
                digests = [(entry.key, pair) for entry in entries if (pair := self._digests(entry))]
                await index_entries(tx, digests)
            done += len(digests)
            tell(done, left)
            if len(entries) < _FILLED:
                break
            after = entries[-1].key
            await asyncio.sleep(_PAUSE_S)
        return done

    def _digests(self, entry: UnindexedEntry) -> tuple[bytes, bytes] | None:
        sealed = entry.sealed
        try:
            keys = self.key_keeper.open(
                entry.tenant, entry.scope, sealed.generation, sealed.kek_version, sealed.dek_wrapped
            )
            payload = keys.open(sealed.label, sealed.ordinal, sealed.ciphertext)
        except (KeyRingError, SealBrokenError):
            log.error("an entry of the vault cannot be opened, so no erasure by value finds it")  # noqa: TRY400
            return None
        text = Original.decode(payload).text
        return (
            blind_digest(self.keys, entry.tenant, text, canonical=entry.canonical),
            normal_digest(self.keys, entry.tenant, stored_form(sealed.label, text)),
        )

    def _open(self, tenant: str, row: ScopeRow) -> ScopeKeys:
        if row.kek_version is None or row.dek_wrapped is None:
            raise StoreUnavailableError("A scope is being erased; try again.", retry_after_s=1.0)
        try:
            return self.key_keeper.open(tenant, row.id, row.generation, row.kek_version, row.dek_wrapped)
        except KeyRingError:
            raise StoreUnavailableError("The key of a scope is not available.") from None


def value_of(keys: RecordKeys, tenant: str, label: str, original: Original, options: VaultOptions) -> Value:
    """Return what is stored of an original and by which digests it is found."""
    payload = original.encode()
    canonical = options.canonical and label != LITERAL
    digests = (
        blind_digest(keys, tenant, original.text, canonical=canonical),
        normal_digest(keys, tenant, stored_form(label, original.text)),
    )
    if canonical:
        return Value(label, payload, folded(original.text), "canonical", *digests)
    return Value(label, payload, payload, "exact" if original.spelling is None else "spelled", *digests)


def blind_digest(keys: RecordKeys, tenant: str, text: str, *, canonical: bool) -> bytes:
    """Return the digest of a value in its tenant's blind index; exact and canonical ones never collide."""
    return keys.blind(
        tenant, b"c" + folded(text) if canonical else b"x" + text.encode("utf-8", "surrogatepass")
    )


def normal_digest(keys: RecordKeys, tenant: str, form: bytes) -> bytes:
    """Return the digest of a normal form in its tenant's blind index; it never collides with one of a value."""
    return keys.blind(tenant, b"n" + form)


def folded(text: str) -> bytes:
    """Return ``text`` without differences of case and white space, so that such values compare equal."""
    return " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")


def _lookups(keys: ScopeKeys, label: str, value: str) -> tuple[bytes, bytes]:
    exact = Original(value).encode()
    return (
        keys.lookup(label, exact, canonical=False),
        keys.lookup(label, folded(value), canonical=True),
    )


def _is_value(keys: ScopeKeys, place: EntryPlace, sealed: bytes, value: str) -> bool:
    try:
        payload = keys.open(place.label, place.ordinal, bytes(sealed))
    except SealBrokenError:
        return False
    return Original.decode(payload).text == value
