"""Check that the key ring and the database belong together, read it again, and move data keys to another version."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from socket import gethostname
from typing import Final

from app import __version__
from app.core.access import SYSTEM_TENANT
from app.core.background import meanwhile
from app.core.errors import ConflictError, StoreUnavailableError
from app.engines.cipher import CANARY, KEY_BYTES, KeyProvider, KeyRingError, RecordKeys
from app.engines.custody.sealed_ring import SealedRingFile
from app.engines.ring_file import RingFile
from app.store.database import Database
from app.store.vault.keys import (
    add_canary,
    add_tenant_key,
    count_keys,
    find_tenant_key,
    list_canaries,
    list_versions,
    remove_canary,
    rewrap_tenant_keys,
)
from app.store.vault.serving_processes import ServingProcess, announce_process, list_processes, remove_process
from app.store.vault.vault import rewrap_scopes

AUDIT_PURPOSE = "audit"
REREAD_S: Final = 5.0
"""Seconds between two looks at the file of the ring."""
_LOOKS_PER_WORD: Final = 4
"""After so many looks, the process says again that it lives."""
_BATCH = 500
_COUNTED: Final = 10_000
"""Where to stop counting the keys of a version: they can be millions."""

_LOOKS_PER_RENEWAL: Final = 6
"""After so many looks, a custodian is asked whether it still opens the ring."""

log = logging.getLogger("sluice.vault")


@dataclass(frozen=True, slots=True)
class RewrapReceipt:
    """The result of a re-wrap: keys that moved, and keys that still depend on a version other than the active one.

    Of each version, ``left`` counts up to 10,000.
    """

    active: int
    rewrapped: int
    left: int


@dataclass(frozen=True, slots=True)
class KeyringService:
    """Key ring tasks for the whole installation; ``VaultService`` checks who may start them."""

    database: Database
    provider: KeyProvider
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    process: str = field(default_factory=lambda: secrets.token_hex(8))
    host: str = field(default_factory=gethostname)

    async def start(self) -> RecordKeys:
        """Check the ring against the canaries, then return the keys of the audit record, which are made once.

        Raise ``KeyRingError`` if a version is missing or has another key than before: the service would then make
        originals unreadable one by one.
        """
        await self._agree(self.provider)
        return await self._record_keys()

    async def _agree(self, provider: KeyProvider) -> None:
        """Check that ``provider`` has every key in use, as it was, and store the canary of its active version."""
        async with self.database.system_transaction() as tx:
            stored = await list_canaries(tx)
            for version in sorted(await list_versions(tx) - provider.versions):
                count = await count_keys(tx, version, most=_COUNTED)
                many = f"{_COUNTED:,} keys or more" if count == _COUNTED else f"{count} keys"
                raise KeyRingError(f"Key version {version} is not in the key ring, but {many} depend on it.")
            for version, wrapped in stored.items():
                if version not in provider.versions:
                    await remove_canary(tx, version)
                elif provider.unwrap(version, wrapped) != CANARY:
                    raise KeyRingError(f"Key version {version} has another key than before.")
            if provider.active not in stored:
                version, wrapped = provider.wrap(CANARY)
                await add_canary(tx, version, wrapped, self.now())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Announce this process, and read the ring's file again when it changes, while the body runs."""
        await self.announce()
        async with meanwhile(self._run(), name="key ring"):
            yield
        with suppress(StoreUnavailableError):
            async with self.database.system_transaction(quiet=True) as tx:
                await remove_process(tx, [self.process])

    async def announce(self) -> None:
        """Tell the other processes which keys this one holds."""
        serving = ServingProcess(self.process, self.host, self.provider.versions, __version__)
        async with self.database.system_transaction(quiet=True) as tx:
            await announce_process(tx, serving)

    async def other_hosts(self) -> list[str]:
        """Return the names of the other hosts that serve from this database."""
        async with self.database.system_transaction(write=False) as tx:
            processes = await list_processes(tx)
        return sorted({process.host for process in processes} - {self.host})

    async def reread(self) -> bool:
        """Adopt the ring in the file where it changed, and return whether it did.

        A ring that does not belong to the database is refused and logged; the process stays with its own.
        """
        if not isinstance(self.provider, RingFile):
            return False
        try:
            ring = await asyncio.to_thread(self.provider.changed)
            if ring is None:
                return False
            await self._agree(ring)
        except KeyRingError as error:
            self.provider.refuse()
            log.error("The changed key ring is not used: %s", error)  # noqa: TRY400 - the sentence says it all
            return False
        self.provider.adopt(ring)
        log.info("The key ring was read again; version %s wraps.", ring.active)
        await self.announce()
        return True

    async def _run(self) -> None:
        looks = 0
        while True:
            await asyncio.sleep(REREAD_S)
            looks += 1
            if isinstance(self.provider, SealedRingFile) and looks % _LOOKS_PER_RENEWAL == 0:
                await asyncio.to_thread(self.provider.renew)
            with suppress(StoreUnavailableError):
                if not await self.reread() and looks % _LOOKS_PER_WORD == 0:
                    await self.announce()

    async def check(self) -> None:
        """Unwrap the canary of the active version (readiness), or raise ``KeyRingError``.

        A version that another process already uses and this one does not have is an error too.
        """
        async with self.database.system_transaction(write=False) as tx:
            stored = await list_canaries(tx)
        if not self.provider.versions >= stored.keys():
            raise KeyRingError(
                "Another process uses a key that this process does not have: copy the key ring to this host."
            )
        wrapped = stored.get(self.provider.active)
        if wrapped is None or self.provider.unwrap(self.provider.active, wrapped) != CANARY:
            raise KeyRingError("The active key has no canary in this database.")

    @property
    def silent_s(self) -> float:
        """Return for how many seconds the custodian of the ring has not answered; 0 where it does, or there is none."""
        return self.provider.silent_s if isinstance(self.provider, SealedRingFile) else 0.0

    def late(self, others: Callable[[], Sequence[str]] = tuple) -> Sequence[str]:
        """Return what of the keys does not work and keeps no request from being served, before what ``others`` say."""
        if not self.silent_s:
            return others()
        sentence = (
            f"The custodian of the key ring has not answered for {self.silent_s:.0f} s: no scope can begin."
        )
        return (sentence, *others())

    async def left(self) -> int:
        """Return how many keys depend on a version other than the active one; at 0, old versions may be removed.

        At 10,000 keys of a version it stops counting them.
        """
        async with self.database.system_transaction(write=False) as tx:
            others = await list_versions(tx) - {self.provider.active}
            return sum([await count_keys(tx, version, most=_COUNTED) for version in others])

    async def rewrap(self) -> RewrapReceipt:
        """Wrap every key with the active version in short batches, while the service keeps running.

        Raise ConflictError where a process that serves lacks this version: it could open nothing that was re-wrapped.
        """
        active = self.provider.active
        async with self.database.system_transaction(write=False) as tx:
            processes = await list_processes(tx)
        lacking = sorted({process.host for process in processes if active not in process.versions})
        if lacking:
            raise ConflictError(
                f"A process on {', '.join(lacking)} lacks key version {active}, or ended less than a minute ago: "
                "copy the key ring there, wait ten seconds, and try again."
            )
        rewrapped = 0
        for kind in (rewrap_tenant_keys, rewrap_scopes):
            batch = _BATCH
            while batch:
                async with self.database.system_transaction() as tx:
                    batch = await kind(tx, active, self._rewrapped, limit=_BATCH)
                rewrapped += batch
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
