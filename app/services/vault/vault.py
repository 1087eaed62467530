"""Keep originals behind handles: store them with their audit event, return them, list them."""

import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.content.handles import Handle, Original
from app.core.contracts.middleware import VaultOptions
from app.core.errors import InvalidArgumentsError, NotFoundError
from app.core.events import Changed
from app.core.offload import off_loop
from app.core.paging import page_of
from app.core.request import RequestInfo
from app.engines.cipher import KeyKeeper, KeyRingError, ScopeKeys
from app.services.access.policies import PolicyService
from app.services.audit.audit import AuditService
from app.services.vault.blind_index import BlindIndex, value_of
from app.services.vault.erasure import VAULT_CHANGED, ErasureReceipt, ErasureService, ErasureSink
from app.services.vault.keyring import KeyringService, RewrapReceipt
from app.services.vault.mark import MarkKeeper
from app.services.vault.opening import EntryOpener, identity_of, key_unavailable, tag_matches
from app.services.vault.restore_epoch import begin_epoch
from app.store.audit.audit import Transaction
from app.store.audit.writer import GroupWriter
from app.store.changes import announce
from app.store.database import Database
from app.store.vault.numbering import Want
from app.store.vault.vault import (
    StoredScope,
    find_scope,
    list_all_sealed,
    list_scopes,
    list_sealed,
    purge_expired,
    update_expiry,
)

DEFAULT_TTL_S = 30 * 24 * 3600
MAX_TTL_S = 100 * 366 * 24 * 3600
MAX_PAGE = 1000
_PURGE_BATCH = _PER_VALUE = 100
"""Scopes purged in one transaction; and the work for one original, in characters of text that cost the same."""
_SCOPE_NAME = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,200}")
_LISTERS = (Role.OPERATOR, Role.AUDITOR, Role.ERASER)
_READERS = (*_LISTERS, Role.RESTORER)


@dataclass(frozen=True, slots=True)
class VaultReceipt:
    """The result of a write: the scope, and the handles in the order of the originals."""

    scope: str
    handles: list[Handle]


@dataclass(frozen=True, slots=True)
class VaultWrite:
    """Originals of one request that need handles, and the events to store with them.

    ``scope`` None makes a new random one. ``events`` is called inside the transaction with the receipt, and again if
    the transaction is retried; if it raises, the write is rolled back. It runs in a thread if ``characters`` (how much
    text it handles) or the number of originals is large. ``ttl_s`` applies to a new scope.

    ``owner`` (see ``VaultService.identity``) is who makes the scope, if it is new, for itself alone; None: the caller
    makes it for its tenant. Ordinals are above ``above``.
    """

    scope: str | None
    originals: Sequence[tuple[str, Original]]
    options: VaultOptions
    events: Callable[[VaultReceipt], Sequence[AuditEvent]]
    ttl_s: int | None = None
    characters: int = 0
    owner: str | None = None
    above: int = 0


@dataclass(frozen=True, slots=True)
class ScopePage:
    """Scopes ordered by name, and the cursor of the next page (None: this is the last)."""

    items: list[StoredScope]
    next: str | None


@dataclass(frozen=True, slots=True)
class VaultEntry:
    """A handle of a scope; ``original`` only if it was requested with the role restorer."""

    handle: Handle
    original: str | None = None


@dataclass(frozen=True, slots=True)
class EntryPage:
    """Entries ordered by label and ordinal, and the cursor of the next page (None: this is the last)."""

    items: list[VaultEntry]
    next: str | None


@dataclass(frozen=True, slots=True)
class VaultService:
    """The vault's use cases, always within the caller's own tenant."""

    database: Database
    writer: GroupWriter
    key_keeper: KeyKeeper
    audit: AuditService
    sink: ErasureSink
    default_ttl_s: int = DEFAULT_TTL_S
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    policies: PolicyService | None = None
    marks: MarkKeeper | None = None
    erasures: ErasureService = field(init=False)
    keyring: KeyringService = field(init=False)
    opener: EntryOpener = field(init=False)
    index: BlindIndex = field(init=False)

    def __post_init__(self) -> None:
        index = BlindIndex(self.database, self.key_keeper, self.audit.keys)
        erasures = ErasureService(
            self.database, self.key_keeper, self.audit, self.sink, self.now, index, self.marks
        )
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "erasures", erasures)
        object.__setattr__(self, "opener", EntryOpener(self.key_keeper))
        object.__setattr__(self, "keyring", KeyringService(self.database, self.key_keeper.provider, self.now))

    async def commit(self, caller: Caller, write: VaultWrite) -> VaultReceipt:
        """Assign every original its handle and store all of them with the events, durably, or nothing."""
        name = secrets.token_hex(16) if write.scope is None else check_scope(write.scope)
        values = [
            value_of(self.audit.keys, caller.tenant, label, original, write.options)
            for label, original in write.originals
        ]
        want = Want(
            caller.tenant,
            name,
            values,
            self._expiry(write),
            fresh=write.scope is None,
            owner=write.owner,
            identity=write.owner or self.identity(caller),
            above=write.above,
        )
        receipts: list[VaultReceipt] = []

        def receive(use: ScopeKeys, ordinals: Sequence[int]) -> Sequence[AuditEvent]:
            handles = [
                use.handle(value.label, ordinal, value.payload, tagged=write.options.tagged)
                for value, ordinal in zip(values, ordinals, strict=True)
            ]
            receipts[:] = [VaultReceipt(name, handles)]
            return write.events(receipts[0])

        async def conclude(use: ScopeKeys, ordinals: Sequence[int]) -> Sequence[AuditEvent]:
            return await off_loop(write.characters + _PER_VALUE * len(values), receive, use, ordinals)

        try:
            await self.writer.allocate(want, conclude)
        except KeyRingError as error:
            raise key_unavailable(error) from None
        return receipts[0]

    def identity(self, caller: Caller) -> str:
        """Return the keyed digest (hex) of key and end user: who owns the scopes that the caller makes for itself."""
        return identity_of(self.audit, caller)

    async def read(self, caller: Caller, scope: str, handles: Iterable[Handle]) -> dict[Handle, Original]:
        """Return the originals of ``handles``; unknown, foreign, expired and erased ones are absent.

        The code that calls this checks the role and records the reading before it passes anything on.
        """
        wanted = list(handles)
        if not wanted or not _SCOPE_NAME.fullmatch(scope):
            return {}
        places = {(handle.label, handle.ordinal) for handle in wanted}
        async with self.database.transaction(caller.tenant, write=False) as tx:
            entries = await list_sealed(tx, caller.tenant, scope, places, self.now(), self.identity(caller))
        opened: dict[tuple[str, int], tuple[ScopeKeys, bytes]] = {}
        for sealed in entries:
            keys = self.opener.keys(caller.tenant, scope, sealed)
            payload = self.opener.payload(keys, sealed)
            if payload is not None:
                opened[sealed.label, sealed.ordinal] = keys, payload
        return {
            handle: Original.decode(opened[handle.label, handle.ordinal][1])
            for handle in wanted
            if (handle.label, handle.ordinal) in opened
            and tag_matches(handle, *opened[handle.label, handle.ordinal])
        }

    async def known(self, caller: Caller, scope: str, handles: Iterable[Handle]) -> set[Handle]:
        """Return those of ``handles`` that this scope assigned and still has."""
        return set(await self.read(caller, scope, handles))

    async def list_scopes(
        self,
        caller: Caller,
        *,
        limit: int = 100,
        cursor: str | None = None,
        request: RequestInfo | None = None,
        prefix: str = "",
    ) -> ScopePage:
        """Return a page of live scopes with counts by label, never originals; ``prefix``: how their names begin."""
        async with self.audit.refusals(caller, "vault.scopes", request):
            caller.require(*_LISTERS)
            _check_page(limit)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            scopes = await list_scopes(
                tx, caller.tenant, self.now(), after=cursor, limit=limit + 1, prefix=prefix
            )
        return ScopePage(*page_of(scopes, limit, lambda scope: scope.id))

    async def get_scope(self, caller: Caller, scope: str, request: RequestInfo | None = None) -> StoredScope:
        """Return one live scope, or raise NotFoundError: also for a foreign, expired or erased one."""
        async with self.audit.refusals(caller, "vault.scope", request):
            caller.require(*_READERS, Role.INVOKER)
        return await self._live_scope(caller, scope, foreign=not caller.roles.isdisjoint(_LISTERS))

    async def _live_scope(self, caller: Caller, scope: str, *, foreign: bool) -> StoredScope:
        """Return a live scope; ``foreign``: also one that another caller owns."""
        async with self.database.transaction(caller.tenant, write=False) as tx:
            stored = await find_scope(tx, caller.tenant, check_scope(scope), self.now())
        if stored is None or not (foreign or stored.owner in {None, self.identity(caller)}):
            raise _no_scope()
        return stored

    async def set_expiry(
        self, caller: Caller, scope: str, expires: datetime | None, request: RequestInfo | None = None
    ) -> StoredScope:
        """Set when a scope ends (None: never); a past time ends it at once."""
        async with self.audit.refusals(caller, "vault.set_expiry", request):
            caller.require(Role.OPERATOR, Role.ERASER)
            event = self.audit.new_event(
                caller,
                "vault.set_expiry",
                OUTCOME_OK,
                request,
                scope_ref=self.audit.scope_ref(caller.tenant, scope),
            )
            check_scope(scope)
            if expires is not None and expires.tzinfo is None:
                raise InvalidArgumentsError("A time needs a time zone.", details={"pointer": "/expires"})
            async with self.database.transaction(caller.tenant) as tx:
                before = await find_scope(tx, caller.tenant, scope, self.now())
                changed = await update_expiry(tx, caller.tenant, scope, expires, self.now())
                if not changed or before is None:
                    raise _no_scope()
                await announce(tx, Changed(VAULT_CHANGED, caller.tenant, scope))
                await self.audit.record_with(tx, event)
        return replace(before, expires=expires)

    async def entries(
        self,
        caller: Caller,
        scope: str,
        *,
        originals: bool = False,
        limit: int = 100,
        cursor: str | None = None,
        request: RequestInfo | None = None,
    ) -> EntryPage:
        """Return a page of handles; ``originals`` needs the role restorer and is recorded before they are returned."""
        async with self.audit.refusals(caller, "vault.entries", request):
            caller.require(Role.RESTORER) if originals else caller.require(*_READERS)
            _check_page(limit)
            after = _entry_cursor(cursor)
            foreign = not originals and not caller.roles.isdisjoint(_LISTERS)
            stored = await self._live_scope(caller, scope, foreign=foreign)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            entries = await list_all_sealed(
                tx, caller.tenant, stored.id, self.now(), after=after, limit=limit + 1
            )
        page, following = page_of(entries, limit, lambda sealed: Handle(sealed.label, sealed.ordinal).name)
        handles = [Handle(sealed.label, sealed.ordinal) for sealed in page]
        readable = await self.readable(caller, handles) if originals else set()
        items = [
            VaultEntry(
                handle, self.opener.text(caller.tenant, stored.id, sealed) if handle in readable else None
            )
            for handle, sealed in zip(handles, page, strict=True)
        ]
        await self.audit.record(
            self.audit.new_event(
                caller,
                "vault.entries",
                OUTCOME_OK,
                request,
                scope_ref=self.audit.scope_ref(caller.tenant, scope),
                details={"originals": originals, "returned": len(items)},
            )
        )
        return EntryPage(items, following)

    async def readable(self, caller: Caller, handles: Sequence[Handle]) -> set[Handle]:
        """Return the handles whose originals this caller may read: the tenant's policy may withhold secrets."""
        if self.policies is None:
            return set(handles)
        _, policy = await self.policies.get(caller.tenant)
        return policy.secrets.restorable(handles, caller)

    async def erase_scope(
        self, caller: Caller, scope: str, request: RequestInfo | None = None
    ) -> ErasureReceipt:
        """Destroy a scope's data key and entries; its handles stay unresolved for ever."""
        return await self.erasures.erase_scope(caller, check_scope(scope), request)

    async def erase_handle(
        self, caller: Caller, scope: str, handle: Handle, request: RequestInfo | None = None
    ) -> ErasureReceipt:
        """Delete the original behind one handle; its ordinal is never assigned again."""
        return await self.erasures.erase_handle(caller, check_scope(scope), handle, request)

    async def erase_value(
        self, caller: Caller, value: str, request: RequestInfo | None = None
    ) -> ErasureReceipt:
        """Delete a value from every live scope of the caller's tenant, found by its keyed digest in each."""
        return await self.erasures.erase_value(caller, value, request)

    async def rewrap(self, caller: Caller, request: RequestInfo | None = None) -> RewrapReceipt:
        """Wrap every data key of the installation with the active key version; needs the role key custodian."""
        async with self.audit.refusals(caller, "vault.rewrap", request):
            caller.require(Role.KEY_CUSTODIAN)
        receipt = await self.keyring.rewrap()
        event = self.audit.new_event(caller, "vault.rewrap", OUTCOME_OK, request, details=asdict(receipt))
        await self.audit.record(event)
        return receipt

    async def restore_epoch(self, caller: Caller, request: RequestInfo | None = None) -> int:
        """Make ordinals jump after a restore from a backup, and return the epoch; if interrupted, run it again.

        Handles assigned after the backup are known outside: their ordinals must not name other values.
        """
        async with self.audit.refusals(caller, "vault.restore_epoch", request):
            caller.require(Role.KEY_CUSTODIAN)

        async def note(tx: Transaction, epoch: int) -> None:
            details = {"epoch": epoch}
            event = self.audit.new_event(caller, "vault.restore_epoch", OUTCOME_OK, request, details=details)
            await self.audit.record_with(tx, event)

        return await begin_epoch(self.database, note)

    async def purge_expired(self) -> int:
        """Remove expired scopes of all tenants in short batches; return how many."""
        total = 0
        while True:
            async with self.database.system_transaction() as tx:
                purged = await purge_expired(tx, self.now(), limit=_PURGE_BATCH)
            total += purged
            if purged < _PURGE_BATCH:
                return total

    def _expiry(self, write: VaultWrite) -> datetime:
        candidates = (write.ttl_s, write.options.ttl_s, self.default_ttl_s)
        ttl = next(value for value in candidates if value is not None)
        if not 0 < ttl <= MAX_TTL_S:
            raise InvalidArgumentsError(
                f"A scope lives for 1 to {MAX_TTL_S} seconds.", details={"pointer": "/arguments/ttl_s"}
            )
        return self.now() + timedelta(seconds=ttl)


def check_scope(name: str) -> str:
    """Return ``name`` if it can name a scope: 1 to 200 characters without control characters."""
    if not _SCOPE_NAME.fullmatch(name):
        raise InvalidArgumentsError(
            "A scope's name is 1 to 200 characters without control characters.",
            details={"pointer": "/arguments/scope"},
        )
    return name


def _check_page(limit: int) -> None:
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidArgumentsError(f"A page has 1 to {MAX_PAGE} items.", details={"pointer": "/limit"})


def _entry_cursor(cursor: str | None) -> tuple[str, int] | None:
    if cursor is None:
        return None
    handle = Handle.parse(cursor)
    if handle is None:
        raise InvalidArgumentsError(
            "The cursor was not issued by this service.", details={"pointer": "/cursor"}
        )
    return handle.label, handle.ordinal


def _no_scope() -> NotFoundError:
    return NotFoundError("There is no such scope.")
