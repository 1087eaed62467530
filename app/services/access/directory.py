"""One directory for all shards: no two of them give out the same id of a key, or have a tenant of the same name."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.core.access import DEFAULT_TENANT, SYSTEM_TENANT, ApiKey
from app.core.errors import ConflictError, StoreUnavailableError
from app.store.access.access import list_keys
from app.store.access.directory import (
    KeyPlace,
    add_key_place,
    add_tenant_place,
    find_key_place,
    find_tenant_place,
    list_key_places,
)
from app.store.access.tenants import list_tenants
from app.store.audit.audit import Transaction
from app.store.database import Database

OF_EVERY_SHARD: Final = frozenset({SYSTEM_TENANT, DEFAULT_TENANT})
"""Tenants that every shard has for itself."""

_DRAWS = 3
_PAGE = 1000

log = logging.getLogger("sluice.access")


class Adopted(NamedTuple):
    """What a shard has told the directory: how much, and what another shard has already."""

    tenants: int
    keys: int
    taken: list[str]


@dataclass(frozen=True, slots=True)
class Directory:
    """What a shard asks before it makes a tenant or a key; calls never wait for it.

    Each claim is a transaction of the directory alone, committed before one of the shard begins: none has rows of two
    databases. A claim that the shard then does not use stays, and takes one id of four billion.
    """

    database: Database
    shard: str

    async def draw_key(self, tenant: str) -> ApiKey:
        """Return a new key of a tenant of this shard, whose id no shard has."""
        for _ in range(_DRAWS):
            key = ApiKey.generate()
            async with self._transaction() as tx:
                if await add_key_place(tx, KeyPlace(key.id, tenant, self.shard)):
                    return key
        raise ConflictError("No free key id was found; try again.", retry_after_s=1.0)

    async def claim_key(self, key_id: str, tenant: str) -> str:
        """Return which shard has a key; this one from now on, if none had."""
        async with self._transaction() as tx:
            await add_key_place(tx, KeyPlace(key_id, tenant, self.shard))
            place = await find_key_place(tx, key_id)
        return place.shard if place is not None else self.shard

    async def claim_tenant(self, name: str) -> str:
        """Return which shard has a tenant; this one from now on, if none had."""
        if name in OF_EVERY_SHARD:
            return self.shard
        async with self._transaction() as tx:
            await add_tenant_place(tx, name, self.shard)
            return await find_tenant_place(tx, name) or self.shard

    async def adopt(self, shard: Database) -> Adopted:
        """Claim every tenant and key that ``shard`` has from before there was a directory; it may be repeated."""
        tenants, keys, taken = 0, 0, []
        after: str | None = None
        while True:
            async with shard.system_transaction(write=False) as tx:
                page = await list_tenants(tx, after=after, limit=_PAGE)
            for tenant in page:
                holder = await self.claim_tenant(tenant.name)
                tenants += holder == self.shard
                if holder != self.shard:
                    taken.append(f"tenant {tenant.name}: {holder}")
                added, foreign = await self._adopt_keys(shard, tenant.name)
                keys, taken = keys + added, taken + foreign
            if len(page) < _PAGE:
                return Adopted(tenants, keys, taken)
            after = page[-1].name

    async def _adopt_keys(self, shard: Database, tenant: str) -> tuple[int, list[str]]:
        claimed, taken, after = 0, [], None
        while True:
            async with shard.system_transaction(write=False) as tx:
                page = await list_keys(tx, tenant, after=after, limit=_PAGE)
            for info in page:
                holder = await self.claim_key(info.id, tenant)
                claimed += holder == self.shard
                if holder != self.shard:
                    taken.append(f"key {info.id} of {tenant}: {holder}")
            if len(page) < _PAGE:
                return claimed, taken
            after = page[-1].id

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Transaction]:
        try:
            async with self.database.system_transaction() as tx:
                yield tx
        except StoreUnavailableError:
            raise StoreUnavailableError(
                "The directory of the shards does not answer: until it does, no tenant and no key can be made.",
                retry_after_s=1.0,
            ) from None


async def every_place(database: Database) -> AsyncIterator[KeyPlace]:
    """Yield where each key is, in order of the ids, from the database of the directory."""
    after: str | None = None
    while True:
        async with database.system_transaction(write=False) as tx:
            page = await list_key_places(tx, after=after, limit=_PAGE)
        for place in page:
            yield place
        if len(page) < _PAGE:
            return
        after = page[-1].id
