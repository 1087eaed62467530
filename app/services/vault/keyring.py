"""Check that the key ring and the database belong together, and move data keys to another key version."""

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
    """The result of a re-wrap: keys that moved, and keys that still depend on a version other than the active one."""

    active: int
    rewrapped: int
    left: int


@dataclass(frozen=True, slots=True)
class KeyringService:
    """Key ring tasks for the whole installation; ``VaultService`` checks who may start them."""

    database: Database
    provider: KeyProvider
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def start(self) -> RecordKeys:
        """Check the ring against the canaries, then return the keys of the audit record, which are made once.

        Raise ``KeyRingError`` if a version is missing or has another key than before: the service would then make
        originals unreadable one by one.
        """
        async with self.database.system_transaction() as tx:
            stored = await list_canaries(tx)
            used = await count_by_version(tx)
            for version in sorted(used.keys() - self.provider.versions):
                raise KeyRingError(
                    f"Key version {version} is not in the key ring, but {used[version]} keys depend on it."
                )
            for version, wrapped in stored.items():
                if version not in self.provider.versions:
                    await remove_canary(tx, version)
                elif self.provider.unwrap(version, wrapped) != CANARY:
                    raise KeyRingError(f"Key version {version} has another key than before.")
            if self.provider.active not in stored:
                version, wrapped = self.provider.wrap(CANARY)
                await add_canary(tx, version, wrapped, self.now())
        return await self._record_keys()

    async def check(self) -> None:
        """Unwrap the canary of the active version (readiness), or raise ``KeyRingError``.

        A version that another process already uses and this one does not have is an error too.
        """
        async with self.database.system_transaction(write=False) as tx:
            stored = await list_canaries(tx)
        if not self.provider.versions >= stored.keys():
            raise KeyRingError(
                "Another process uses a key that this process does not have: restart this process."
            )
        wrapped = stored.get(self.provider.active)
        if wrapped is None or self.provider.unwrap(self.provider.active, wrapped) != CANARY:
            raise KeyRingError("The active key has no canary in this database.")

    async def left(self) -> int:
        """Return how many keys depend on a version other than the active one; at 0, old versions may be removed."""
        async with self.database.system_transaction(write=False) as tx:
            used = await count_by_version(tx)
        return sum(count for version, count in used.items() if version != self.provider.active)

    async def rewrap(self) -> RewrapReceipt:
        """Wrap every key with the active version in short batches, while the service keeps running."""
        active = self.provider.active
        async with self.database.system_transaction() as tx:
            rewrapped = await rewrap_tenant_keys(tx, active, self._rewrapped)
        while True:
            async with self.database.system_transaction() as tx:
                batch = await rewrap_scopes(tx, active, self._rewrapped, limit=_BATCH)
            rewrapped += batch
            if batch == 0:
                break
        return RewrapReceipt(active, rewrapped, await self.left())

    def _rewrapped(self, version: int, wrapped: bytes) -> tuple[int, bytes]:
        return self.provider.wrap(self.provider.unwrap(version, wrapped))

    async def _record_keys(self) -> RecordKeys:
        async with self.database.system_transaction() as tx:
            stored = await find_tenant_key(tx, SYSTEM_TENANT, AUDIT_PURPOSE)
            if stored is None:
                version, wrapped = self.provider.wrap(secrets.token_bytes(KEY_BYTES))
                await add_tenant_key(tx, SYSTEM_TENANT, AUDIT_PURPOSE, version, wrapped, self.now())
                stored = await find_tenant_key(tx, SYSTEM_TENANT, AUDIT_PURPOSE)
        if stored is None:
            raise KeyRingError("The key of the audit record could not be stored.")
        return RecordKeys(self.provider.unwrap(*stored))
