"""The issuers that operators have added, as this process trusts them: read once, and again when one changes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from app.core.access import SYSTEM_TENANT
from app.core.background import meanwhile
from app.core.errors import InternalError, InvalidArgumentsError, ServiceError
from app.core.events import Changed
from app.core.identities import TrustedIssuer
from app.core.tokens import TokenReader
from app.services.access.identity.issuer_sealing import opened_issuer
from app.services.access.issuer_keys import IssuerKeys
from app.services.access.token_states import TokenState
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.store.access.issuers import ISSUERS, StoredIssuer
from app.store.changes import EVERYTHING
from app.upstream.issuers import IssuerClient

ISSUERS_CHANGED: Final = "issuers"
"""The kind of ``Changed`` when an operator adds, changes or removes an issuer; its name is the issuer's."""
_STALE_S: Final = 5.0
_ALL: Final = "all"

log = logging.getLogger("sluice.identity")


@dataclass(frozen=True, slots=True)
class IssuerSet:
    """Issuers by their names, and those among them that say whether a token counts.

    ``unreadable`` are names of records that are no issuers any more: nobody comes in by them.
    """

    keys: Mapping[str, IssuerKeys] = field(default_factory=dict)
    asked: Mapping[str, TokenState] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()


class StoredIssuers:
    """Reads the stored issuers except ``own``, those of the settings, which come first and stay as they are.

    Call ``ready`` before ``seen`` is relied on. Subscribe ``changed`` to announcements.
    """

    def __init__(
        self, audit: AuditService, client: IssuerClient, reader: TokenReader, own: Collection[str] = ()
    ) -> None:
        self.audit, self.own = audit, frozenset(own)
        self.memory: ShortMemory[str, IssuerSet] = ShortMemory(ttl_s=_STALE_S, size=1)
        self._client, self._reader = client, reader
        self._seen = IssuerSet()
        self._wanted = asyncio.Event()

    @property
    def seen(self) -> IssuerSet:
        """Return the issuers as they were read last, without a query."""
        return self._seen

    async def ready(self) -> IssuerSet:
        """Return the issuers as they are now; what was read is kept while it is fresh."""
        fresh = self.memory.peek(_ALL)
        if fresh is None:
            loaded = await self.memory.get(_ALL, self._load)
            # A change may have come while this was read: then it is not kept, and read again with the next request.
            fresh = self.memory.peek(_ALL) or loaded or IssuerSet()
        # What another has just read is fresh here before that one goes on.
        self._seen = fresh
        return fresh

    def forget(self) -> None:
        """Read the issuers again, at once."""
        self.memory.forget(_ALL)
        self._wanted.set()

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has made stale."""
        if changed.kind in (EVERYTHING, ISSUERS_CHANGED):
            self.forget()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep ``seen`` up to date while the body runs: with each change, and where none is announced every 5 s."""
        await self.ready()
        async with meanwhile(self._follow(), name="issuers"):
            yield

    async def close(self) -> None:
        """Stop fetching keys."""
        for keys in self.seen.keys.values():
            await keys.close()

    async def _follow(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_STALE_S):
                    await self._wanted.wait()
            self._wanted.clear()
            try:
                await self.ready()
            except ServiceError:
                # What was read last is told on; tokens are refused with 503 until the database answers.
                await asyncio.sleep(1)
                self._wanted.set()

    async def _load(self, _all: str) -> IssuerSet:
        await self.audit.keys.ready(SYSTEM_TENANT)
        async with self.audit.database.system_transaction(write=False) as tx:
            rows = await ISSUERS.list(tx, SYSTEM_TENANT)
        before, keys, asked, unreadable = self.seen, {}, {}, set()
        for row in rows:
            if row.name in self.own:
                continue
            issuer = self._opened(row)
            if issuer is None:
                unreadable.add(row.name)
                continue
            former = before.keys.get(row.name)
            if former is None:
                keys[row.name] = IssuerKeys(issuer, self._client, self._reader)
            else:
                keys[row.name] = former if former.issuer == issuer else former.renewed(issuer)
            if issuer.introspection is not None:
                state = before.asked.get(row.name)
                is_same = state is not None and state.issuer == issuer
                made = state if is_same else None
                asked[row.name] = made or TokenState(issuer, issuer.introspection, self._client, self._reader)
        return IssuerSet(keys, asked, frozenset(unreadable))

    def _opened(self, row: StoredIssuer) -> TrustedIssuer | None:
        try:
            return opened_issuer(self.audit.keys, row).trusted()
        except (InternalError, InvalidArgumentsError, ValueError) as error:
            # Without its secret it could not be asked whether a token was revoked: it is not trusted at all.
            log.warning("stored issuer %s cannot be read: %s", row.name, type(error).__name__)
            return None
