"""The mirror of a tenant's people and groups, which its identity provider keeps up to date (SCIM 2.0).

Names are sealed under the tenant's key, and found by keyed digests. Whose tokens an issuer with ``provisioning``
signs must be an active person here: who is set inactive or deleted is out in every process with the commit. Where
rules name groups, whoever comes or goes has other rights with the commit, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import uuid4

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.errors import ConflictError, NotFoundError, TooLargeError
from app.core.request import RequestInfo
from app.services.access.identity.entries import DirectoryEntry, Kind, fault
from app.services.access.identity.mirror_changes import GroupState, mirror_digest, tell_group, tell_person
from app.services.audit.audit import AuditService
from app.store.access.provisioned import (
    Part,
    StoredEntry,
    add_entry,
    count_entries,
    find_entry,
    list_entries,
    update_entry,
)
from app.store.audit.audit import Transaction

PAGE: Final = 200
MOST_ENTRIES: Final = 100_000
KEPT: Final = timedelta(days=2)
"""How long it is remembered that somebody was deleted: longer than any token counts."""
_SEALED: Final = b"provisioned"
_ATTRIBUTES: Final[Mapping[str, Part]] = {"username": "name", "displayname": "name", "externalid": "external"}


class MirrorPage(NamedTuple):
    """A part of a list, and how long the whole is."""

    total: int
    entries: Sequence[DirectoryEntry]


@dataclass(frozen=True, slots=True)
class MirrorService:
    """Reads and changes the mirror of the caller's tenant, for callers with the role provisioner."""

    audit: AuditService
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def page(
        self,
        caller: Caller,
        kind: Kind,
        request: RequestInfo,
        *,
        filter_: tuple[str, str] | None = None,
        start: int = 1,
        count: int = PAGE,
    ) -> MirrorPage:
        """Return entries in the order of their ids from the number ``start`` on, or those that a filter names."""
        await self._admit(caller, request)
        tenant = caller.tenant
        async with self.audit.database.transaction(tenant, write=False) as tx:
            if filter_ is None:
                total = await count_entries(tx, tenant, kind)
                rows = await list_entries(tx, tenant, kind, offset=start - 1, limit=min(count, PAGE))
                return MirrorPage(total, [self._opened(tenant, row) for row in rows])
            row = await self._named(tx, tenant, kind, *filter_)
        return MirrorPage(int(row is not None), [self._opened(tenant, row)] if row and count else [])

    async def get(self, caller: Caller, kind: Kind, entry_id: str, request: RequestInfo) -> DirectoryEntry:
        """Return one entry, or raise NotFoundError."""
        await self._admit(caller, request)
        async with self.audit.database.transaction(caller.tenant, write=False) as tx:
            return self._opened(caller.tenant, await self._found(tx, caller.tenant, kind, entry_id))

    async def create(self, caller: Caller, kind: Kind, body: Any, request: RequestInfo) -> DirectoryEntry:
        """Store a new entry; raises ConflictError where there is one of that name."""
        await self._admit(caller, request)
        tenant, entry = caller.tenant, DirectoryEntry.read(kind, str(uuid4()), body)
        async with self.audit.database.transaction(tenant) as tx:
            if await count_entries(tx, tenant, kind) >= MOST_ENTRIES:
                raise TooLargeError(f"A tenant mirrors at most {MOST_ENTRIES} entries of a kind.")
            former = await find_entry(
                tx, tenant, kind, "name", self._digest(tenant, kind, "name", entry.name)
            )
            if former is not None and former.removed is not None:
                await _give_up_name(tx, former)
            added = self._stored(tenant, entry)
            if not await add_entry(tx, added):
                raise _taken()
            await self._note(tx, caller, "create", entry, request)
            await self._tell(tx, None, added, entry.members)
        return entry

    async def change(
        self, caller: Caller, kind: Kind, entry_id: str, body: Any, request: RequestInfo, *, whole: bool
    ) -> DirectoryEntry:
        """Replace an entry (``whole``), or parts of it; who is no longer active is out with the commit."""
        await self._admit(caller, request)
        tenant = caller.tenant
        async with self.audit.database.transaction(tenant) as tx:
            row = await self._found(tx, tenant, kind, entry_id, lock=True)
            entry = (
                DirectoryEntry.read(kind, entry_id, body)
                if whole
                else self._opened(tenant, row).patched(body)
            )
            changed = self._stored(tenant, entry)
            same = await find_entry(tx, tenant, kind, "name", changed.name_digest)
            if same is not None and same.id != entry_id:
                if same.removed is None:
                    raise _taken()
                await _give_up_name(tx, same)
            await update_entry(tx, changed)
            await self._note(tx, caller, "change", entry, request)
            await self._tell(tx, row, changed, entry.members)
        return entry

    async def remove(self, caller: Caller, kind: Kind, entry_id: str, request: RequestInfo) -> None:
        """Delete an entry; that it was there is remembered for ``KEPT``, without a name, so that it stays out."""
        await self._admit(caller, request)
        tenant = caller.tenant
        async with self.audit.database.transaction(tenant) as tx:
            row = await self._found(tx, tenant, kind, entry_id, lock=True)
            gone = row._replace(active=False, removed=self.now(), sealed=b"")
            await update_entry(tx, gone)
            await self._note(tx, caller, "remove", self._opened(tenant, row), request)
            await self._tell(tx, row, gone, ())

    async def _admit(self, caller: Caller, request: RequestInfo) -> None:
        async with self.audit.refusals(caller, "directory.access", request):
            caller.require(Role.PROVISIONER)
        await self.audit.keys.ready(caller.tenant)

    async def _named(
        self, tx: Transaction, tenant: str, kind: Kind, attribute: str, value: str
    ) -> StoredEntry | None:
        if attribute == "id":
            row = await find_entry(tx, tenant, kind, "id", value)
        elif attribute == ("username" if kind == "Group" else "displayname"):
            raise fault(f"A {kind} is not found by this attribute.", "invalidFilter")
        else:
            part = _ATTRIBUTES[attribute]
            row = await find_entry(tx, tenant, kind, part, self._digest(tenant, kind, part, value))
        return row if row is not None and row.removed is None else None

    async def _found(
        self, tx: Transaction, tenant: str, kind: Kind, entry_id: str, *, lock: bool = False
    ) -> StoredEntry:
        row = await find_entry(tx, tenant, kind, "id", entry_id, lock=lock)
        if row is None or row.removed is not None:
            raise NotFoundError(f"There is no such {kind}.")
        return row

    async def _note(
        self, tx: Transaction, caller: Caller, action: str, entry: DirectoryEntry, request: RequestInfo
    ) -> None:
        details = {"kind": entry.kind, "id": entry.id, "active": entry.active}
        event = self.audit.new_event(caller, f"directory.{action}", OUTCOME_OK, request, details=details)
        await self.audit.record_with(tx, event)

    def _digest(self, tenant: str, kind: Kind, part: str, value: str) -> str:
        return mirror_digest(self.audit, tenant, kind, part, value)

    def _stored(self, tenant: str, entry: DirectoryEntry) -> StoredEntry:
        external = entry.external
        return StoredEntry(
            tenant=tenant,
            kind=entry.kind,
            id=entry.id,
            name_digest=self._digest(tenant, entry.kind, "name", entry.name),
            external_digest=None
            if external is None
            else self._digest(tenant, entry.kind, "external", external),
            active=entry.active,
            removed=None,
            sealed=self.audit.keys.seal(tenant, _SEALED + entry.id.encode(), entry.stored(), own=True),
        )

    def _opened(self, tenant: str, row: StoredEntry) -> DirectoryEntry:
        return opened_entry(self.audit, tenant, row)

    async def _tell(
        self, tx: Transaction, before: StoredEntry | None, after: StoredEntry, members: Sequence[str]
    ) -> None:
        """Tell every process of a change; ``members`` are those of a group afterwards."""
        if after.kind == "User":
            await tell_person(tx, before, after)
            return
        former, latter = None, None
        if before is not None:
            former = GroupState(before.name_digest, frozenset(self._opened(after.tenant, before).members))
        if after.removed is None:
            latter = GroupState(after.name_digest, frozenset(members))
        await tell_group(tx, after.tenant, former, latter)


def opened_entry(audit: AuditService, tenant: str, row: StoredEntry) -> DirectoryEntry:
    """Return an entry from its row; the keys of the tenant must be ready."""
    content = audit.keys.open(tenant, _SEALED + row.id.encode(), row.sealed, own=True)
    kind: Kind = "User" if row.kind == "User" else "Group"
    return DirectoryEntry.opened(kind, row.id, active=row.active, content=content)


async def _give_up_name(tx: Transaction, former: StoredEntry) -> None:
    """Let another entry have the name of one that was removed, whose external id stays out as long as before."""
    await update_entry(tx, former._replace(name_digest=former.id))


def _taken() -> ConflictError:
    return ConflictError("There is an entry of this name.", details={"scimType": "uniqueness"})
