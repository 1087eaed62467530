"""A key of each tenant's own, with which its digests and its blind index are made, and which ends with the tenant.

It is random, wrapped by the key ring, and stored beside the tenant that it is made with. Tenants of older releases
have none: their digests are made with a key that comes from the record's, as before, or what is stored could not be
found any more.
"""

import secrets
from datetime import datetime
from typing import Final

from app import __version__
from app.core.access import SYSTEM_TENANT
from app.core.errors import ConflictError, StoreUnavailableError
from app.core.events import Changed
from app.engines.cipher import KEY_BYTES, KeyProvider, KeyRingError, RecordKeys
from app.services.access.credentials import TENANT_CHANGED
from app.services.caching import ShortMemory
from app.store.access.tenants import Tenant, find_tenant
from app.store.audit.audit import Transaction
from app.store.changes import EVERYTHING
from app.store.database import Database
from app.store.vault.keys import DIGEST_PURPOSE, add_tenant_key, find_tenant_key, remove_tenant_keys
from app.store.vault.serving_processes import list_processes

_STALE_S: Final = 5.0
_CACHED: Final = 8192


class TenantKeys:
    """Reads the keys of tenants for ``keys``, makes them and destroys them.

    Subscribe ``changed`` to the announcements of other processes; without them, the key of a tenant that is erased
    stays in memory until its tenant is emptied, or asked for after five seconds.
    """

    def __init__(self, database: Database, provider: KeyProvider, keys: RecordKeys) -> None:
        self._database = database
        self._provider = provider
        self._keys = keys
        self._forgotten = 0
        self.memory: ShortMemory[str, bool] = ShortMemory(ttl_s=_STALE_S, size=_CACHED)

    @classmethod
    def over(cls, database: Database, provider: KeyProvider, keys: RecordKeys) -> "TenantKeys":
        """Return what ``keys`` ask from now on for the key of a tenant."""
        made = cls(database, provider, keys)
        keys.follow(made.read, made.memory.peek)
        return made

    async def read(self, tenant: str) -> None:
        """Read with which key a tenant's digests are made, or raise StoreUnavailableError.

        A tenant that is erased gets a random one that nobody keeps: what is still said of it names nobody.
        """
        if self.memory.peek(tenant) is not None:
            self.memory.forget(tenant)  # the key itself was dropped
        await self.memory.get(tenant, self._load)

    async def add(self, tx: Transaction, tenant: Tenant, moment: datetime) -> None:
        """Store a key for a tenant that the same transaction stores with ``own_key``; ``forget`` where that fails.

        Raises ConflictError while a process of another release serves: it would make digests that nobody finds.
        """
        others = {process.host for process in await list_processes(tx) if process.release != __version__}
        if others:
            raise ConflictError(
                f"A process of another release serves on {', '.join(sorted(others))}, or ended less than a minute "
                "ago: create tenants once all processes have this one."
            )
        key = secrets.token_bytes(KEY_BYTES)
        version, wrapped = self._provider.wrap(key)
        await add_tenant_key(tx, tenant.name, DIGEST_PURPOSE, version, wrapped, moment)
        self._keys.admit(tenant.name, key)

    async def destroy(self, tx: Transaction, tenant: str) -> bool:
        """Delete the keys of a tenant that is marked as erased; return whether it had any. Then ``forget`` it."""
        return await remove_tenant_keys(tx, tenant) > 0

    def forget(self, tenant: str) -> None:
        """Drop what is in memory of a tenant's key."""
        self._forgotten += 1
        self.memory.forget(tenant)
        self._keys.drop(tenant)

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has made stale."""
        if changed.kind == EVERYTHING:
            # What requests under way need stays until it is read again.
            self._forgotten += 1
            self.memory.forget_where(lambda _read: True)
        elif changed.kind == TENANT_CHANGED and changed.tenant is not None:
            self.forget(changed.tenant)

    async def _load(self, name: str) -> bool | None:
        while True:
            forgotten = self._forgotten
            async with self._database.system_transaction(write=False) as tx:
                tenant = await find_tenant(tx, name)
                own = tenant is not None and tenant.own_key and name != SYSTEM_TENANT
                stored = await find_tenant_key(tx, name, DIGEST_PURPOSE) if own else None
            if forgotten == self._forgotten:
                break
        self._keys.admit(name, self._opened(tenant, stored) if own else None)
        return tenant is not None or None

    def _opened(self, tenant: Tenant | None, stored: tuple[int, bytes] | None) -> bytes:
        if stored is not None:
            try:
                return self._provider.unwrap(*stored)
            except KeyRingError as error:
                raise StoreUnavailableError(f"The key of the tenant's digests: {error}") from None
        if tenant is None or tenant.erased is None:
            raise StoreUnavailableError("The key of the tenant's digests is missing: restore a backup.")
        return secrets.token_bytes(KEY_BYTES)
