"""See that the key ring and the database belong together, and carry data keys from one version to the next."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from app.core.access import SYSTEM_TENANT
from app.engines.cipher import CANARY, KEY_BYTES, KeyProvider, KeyRingError, RecordKeys
from app.store.database import Database
from app.store.vault.keys import (
    add_canary,
    add_tenant_key,
    find_tenant_key,
    list_canaries,
    remove_canary,
    rewrap_tenant_keys,
)
from app.store.vault.vault import count_by_version, rewrap_scopes

AUDIT_PURPOSE = "audit"
_BATCH = 500


@dataclass(frozen=True, slots=True)
class RewrapReceipt:
    """What a re-wrap did: keys carried over, and keys that still hang on another version than the active one."""

    active: int
    rewrapped: int
    left: int


@dataclass(frozen=True, slots=True)
class KeyringService:
    """The ring's duties towards the whole installation; ``VaultService`` guards who may ask for them."""

    database: Database
    provider: KeyProvider
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def start(self) -> RecordKeys:
        """Check the ring against the canaries, then return the keys of the audit record, made once.

        Raise ``KeyRingError`` where a version is missing or is not the key it was: serving then would make
        originals unreadable one by one.
        """
        async with self.database.system_transaction() as tx:
            stored = await list_canaries(tx)
            used = await count_by_version(tx)
            for version in sorted(used.keys() - self.provider.versions):
                raise KeyRingError(
                    f"Key version {version} is not in the key ring, but {used[version]} keys hang on it."
                )
            for version, wrapped in stored.items():
                if version not in self.provider.versions:
                    await remove_canary(tx, version)
                elif self.provider.unwrap(version, wrapped) != CANARY:
                    raise KeyRingError(f"Key version {version} is not the key it was.")
            if self.provider.active not in stored:
                version, wrapped = self.provider.wrap(CANARY)
                await add_canary(tx, version, wrapped, self.now())
        return await self._record_keys()

    async def check(self) -> None:
        """Unwrap the canary of the active version (readiness), or raise ``KeyRingError``.

        A version that another process has begun to use and this one does not have is a fault too.
        """
        async with self.database.system_transaction(write=False) as tx:
            stored = await list_canaries(tx)
        if not self.provider.versions >= stored.keys():
            raise KeyRingError("Another process uses a key that this one does not have: restart it.")
        wrapped = stored.get(self.provider.active)
        if wrapped is None or self.provider.unwrap(self.provider.active, wrapped) != CANARY:
            raise KeyRingError("The active key has no canary in this database.")

    async def left(self) -> int:
        """Return how many keys hang on another version than the active one; 0 lets old versions go."""
        async with self.database.system_transaction(write=False) as tx:
            used = await count_by_version(tx)
        return sum(count for version, count in used.items() if version != self.provider.active)

    async def rewrap(self) -> RewrapReceipt:
        """Carry every key to the active version in short batches, while the service goes on serving."""
        active = self.provider.active
        async with self.database.system_transaction() as tx:
            done = await rewrap_tenant_keys(tx, active, self._carried)
        while True:
            async with self.database.system_transaction() as tx:
                batch = await rewrap_scopes(tx, active, self._carried, limit=_BATCH)
            done += batch
            if batch == 0:
                break
        return RewrapReceipt(active, done, await self.left())

    def _carried(self, version: int, wrapped: bytes) -> tuple[int, bytes]:
        return self.provider.wrap(self.provider.unwrap(version, wrapped))

    async def _record_keys(self) -> RecordKeys:
        async with self.database.system_transaction() as tx:
            found = await find_tenant_key(tx, SYSTEM_TENANT, AUDIT_PURPOSE)
            if found is None:
                version, wrapped = self.provider.wrap(secrets.token_bytes(KEY_BYTES))
                await add_tenant_key(tx, SYSTEM_TENANT, AUDIT_PURPOSE, version, wrapped, self.now())
                found = await find_tenant_key(tx, SYSTEM_TENANT, AUDIT_PURPOSE)
        if found is None:
            raise KeyRingError("The key of the audit record could not be stored.")
        return RecordKeys(self.provider.unwrap(*found))
