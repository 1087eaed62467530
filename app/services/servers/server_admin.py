"""The MCP servers of a tenant: added, changed, tested, approved, paused and removed by its operators."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_FAILED, OUTCOME_OK
from app.core.catalog.primitives import SERVERS_CHANGED
from app.core.catalog.servers import ServerEntry
from app.core.catalog.tool_filter import ExposedTools
from app.core.errors import (
    ConflictError,
    ForbiddenError,
    InternalError,
    InvalidArgumentsError,
)
from app.core.events import Changed
from app.core.request import RequestInfo
from app.services.audit.audit import AuditService
from app.services.servers.approval import Approval, WantedDefinition, choose, pinned
from app.services.servers.pins import PinName, review
from app.services.servers.sealing import (
    SubmittedServer,
    changed_parts,
    check_credentials,
    connection_of,
    document_of,
    opened,
    reached,
    sealed,
)
from app.services.servers.server_records import (
    ServerDetail,
    ServerRecord,
    Trial,
    digests,
    pins_of,
    require_server,
)
from app.services.servers.upstreams import UpstreamService
from app.store.audit.audit import Transaction
from app.store.changes import announce
from app.store.database import Database
from app.store.servers import (
    SERVER_APPROVED,
    SERVER_PAUSED,
    SERVER_PENDING,
    SERVERS,
    Origin,
    ServerState,
    StoredPin,
    StoredServer,
    add_pins,
    remove_pins,
)

_DECLARED: Final = (
    "The server is declared in the file that this service applies; change it there and apply that."
)


@dataclass(frozen=True, slots=True)
class ServerService:
    """Administers servers; ``upstreams`` serves them.

    Servers declared in a file belong to the file: over REST they are approved, paused and resumed, not edited.
    ``host`` arguments: the caller works on the host, where such servers may be edited and commands (stdio) added.
    """

    database: Database
    audit: AuditService
    upstreams: UpstreamService
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def list(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sequence[ServerRecord]:
        """Return servers ordered by name, those after ``after``."""
        async with self.audit.refusals(caller, "servers.list", request):
            caller.require(Role.OPERATOR)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            listed = await SERVERS.list(tx, caller.tenant, after=after, limit=limit)
        return [self._open(stored) for stored in listed]

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> ServerDetail:
        """Return one server with the state of its definitions, or raise NotFoundError."""
        async with self.audit.refusals(caller, "servers.get", request):
            caller.require(Role.OPERATOR)
            async with self._reading(caller) as tx:
                stored = await require_server(tx, caller.tenant, name)
                pins = await pins_of(tx, caller.tenant, name)
        offers = self.upstreams.listing(caller.tenant, name)
        reviews = review(offers, digests(pins)) if offers is not None else None
        return ServerDetail(self._open(stored), reviews, pins)

    async def add(
        self,
        caller: Caller,
        name: str,
        submitted: SubmittedServer,
        request: RequestInfo | None = None,
        *,
        host: bool = False,
    ) -> ServerRecord:
        """Store a new server, which waits for approval; raise ConflictError if the name is taken."""
        async with self.audit.refusals(caller, "servers.add", request):
            caller.require(Role.OPERATOR)
            entry = submitted.entry(name)
            self._check(entry, host=host)
            added = self._new(caller, entry, "api", SERVER_PENDING)
            async with self._writing(caller) as tx:
                if not await SERVERS.add(tx, added):
                    raise ConflictError("There is a server of that name.", details={"pointer": "/name"})
                await self._record_change(tx, caller, "servers.add", name, request, type=entry.settings.type)
        await self._follow(caller, name)
        return ServerRecord(added, entry)

    async def put(
        self,
        caller: Caller,
        name: str,
        submitted: SubmittedServer,
        request: RequestInfo | None = None,
        *,
        host: bool = False,
    ) -> ServerRecord:
        """Replace a server's settings; if that changes how it is reached, it waits for approval again."""
        async with self.audit.refusals(caller, "servers.put", request):
            caller.require(Role.OPERATOR)
            async with self._writing(caller) as tx:
                before = self._open(await require_server(tx, caller.tenant, name, lock=True))
                _check_editable(before.stored, host=host)
                entry = submitted.entry(name, before.entry.settings)
                self._check(entry, host=host)
                changed = self._changed(before, entry)
                if connection_of(entry.settings) != connection_of(before.entry.settings):
                    state = SERVER_PAUSED if before.stored.state == SERVER_PAUSED else SERVER_PENDING
                    changed = replace(changed, state=state, pinned=None)
                await SERVERS.update(tx, changed)
                parts = changed_parts(before.entry, entry)
                await self._record_change(
                    tx, caller, "servers.put", name, request, changed=parts, state=changed.state
                )
        await self._follow(caller, name)
        return ServerRecord(changed, entry)

    async def test(self, caller: Caller, name: str, request: RequestInfo | None = None) -> Trial:
        """Connect to a server once, list it and disconnect; a failure is a result, not an error."""
        async with self.audit.refusals(caller, "servers.test", request):
            record, pins = await self._open_whole(caller, name)
        inspected = await self.upstreams.inspect(caller.tenant, record.entry, record.stored.origin)
        reviews = review(inspected.offers, digests(pins)) if inspected.ready else []
        details = {"server": name, "ready": inspected.ready, "definitions": len(reviews)}
        outcome = OUTCOME_OK if inspected.ready else OUTCOME_FAILED
        await self.audit.record(
            self.audit.new_event(caller, "servers.test", outcome, request, details=details)
        )
        return Trial(inspected, reviews, pins)

    async def approve(
        self,
        caller: Caller,
        name: str,
        wanted: Sequence[WantedDefinition] | None = None,
        request: RequestInfo | None = None,
        *,
        listing: str | None = None,
    ) -> Approval:
        """Connect, list and pin what the server offers now: all of it, or the ``wanted`` definitions only.

        With a ``listing`` (``Inspection.digest``) or digests in ``wanted``, a change by the server since then is a
        ConflictError. Definitions that can never be approved are left out, or refused if ``wanted`` names them.
        """
        async with self.audit.refusals(caller, "servers.approve", request):
            record, _ = await self._open_whole(caller, name)
            inspected = await self.upstreams.inspect(caller.tenant, record.entry, record.stored.origin)
            inspected.check(listing)
            async with self._writing(caller) as tx:
                stored = await require_server(tx, caller.tenant, name, lock=True)
                if stored.updated != record.stored.updated:
                    raise ConflictError("The server's settings were changed meanwhile; approve them again.")
                approved_digests = digests(await pins_of(tx, caller.tenant, name))
                chosen = choose(review(inspected.offers, approved_digests), wanted)
                moment = self.now()
                await remove_pins(tx, caller.tenant, name, None if wanted is None else chosen.names)
                await add_pins(tx, pinned(chosen.offers, caller, name, moment))
                changed = replace(
                    stored, state=SERVER_APPROVED, pinned=stored.pinned or moment, updated=self._later(stored)
                )
                await SERVERS.update(tx, changed)
                counts = {"approved": len(chosen.offers), "held_back": len(chosen.held_back)}
                await self._record_change(tx, caller, "servers.approve", name, request, **counts)
        await self._follow(caller, name)
        return Approval(changed, inspected, chosen)

    async def pause(self, caller: Caller, name: str, request: RequestInfo | None = None) -> ServerRecord:
        """Serve nothing of a server until it is resumed; repeating it does no harm."""
        return await self._set_state(caller, "servers.pause", name, request, lambda _stored: SERVER_PAUSED)

    async def resume(self, caller: Caller, name: str, request: RequestInfo | None = None) -> ServerRecord:
        """Serve a paused server as before; one that was never approved waits for approval again."""

        def before(stored: StoredServer) -> ServerState:
            if stored.state != SERVER_PAUSED:
                return stored.state
            return SERVER_APPROVED if stored.pinned or stored.origin == "file" else SERVER_PENDING

        return await self._set_state(caller, "servers.resume", name, request, before)

    async def remove(
        self, caller: Caller, name: str, request: RequestInfo | None = None, *, host: bool = False
    ) -> None:
        """Remove a server, its secrets and its approvals."""
        async with self.audit.refusals(caller, "servers.remove", request):
            caller.require(Role.OPERATOR)
            async with self._writing(caller) as tx:
                _check_editable(await require_server(tx, caller.tenant, name, lock=True), host=host)
                await SERVERS.remove(tx, caller.tenant, name)
                await self._record_change(tx, caller, "servers.remove", name, request)
        await self._follow(caller, name)

    async def declared(self, tx: Transaction, tenant: str) -> Mapping[str, tuple[ServerEntry, Origin]]:
        """Return every server's entry, secrets included, and its origin, to compare a file with."""
        return {
            stored.name: (opened(self.audit.keys, stored), stored.origin)
            for stored in await SERVERS.list(tx, tenant)
        }

    async def declare(self, tx: Transaction, caller: Caller, entry: ServerEntry) -> bool:
        """Store a file's entry of a server, which approves it; return whether that changed anything.

        A server that an operator paused stays paused. If the file names another program or address, the server's next
        complete listing is approved anew; otherwise the approvals stay.
        """
        self._check(entry, host=True)
        stored = await SERVERS.find(tx, caller.tenant, entry.name, lock=True)
        if stored is None:
            await SERVERS.add(tx, self._new(caller, entry, "file", SERVER_APPROVED))
            await self._record_change(
                tx, caller, "servers.declare", entry.name, None, type=entry.settings.type
            )
            return True
        before = self._open(stored)
        if stored.origin == "file" and before.entry == entry:
            return False
        same = reached(entry.settings) == reached(before.entry.settings)
        changed = replace(
            self._changed(before, entry),
            origin="file",
            state=SERVER_PAUSED if stored.state == SERVER_PAUSED else SERVER_APPROVED,
            pinned=stored.pinned if same else None,
        )
        await SERVERS.update(tx, changed)
        parts = changed_parts(before.entry, entry)
        await self._record_change(
            tx, caller, "servers.declare", entry.name, None, changed=parts, state=changed.state
        )
        return True

    async def withdraw(self, tx: Transaction, caller: Caller, name: str) -> bool:
        """Remove a server that the file no longer has; return whether one from the file existed."""
        stored = await SERVERS.find(tx, caller.tenant, name, lock=True)
        if stored is None or stored.origin != "file":
            return False
        await SERVERS.remove(tx, caller.tenant, name)
        await self._record_change(tx, caller, "servers.withdraw", name, None)
        return True

    async def _set_state(
        self,
        caller: Caller,
        action: str,
        name: str,
        request: RequestInfo | None,
        state_of: Callable[[StoredServer], ServerState],
    ) -> ServerRecord:
        async with self.audit.refusals(caller, action, request):
            caller.require(Role.OPERATOR)
            async with self._writing(caller) as tx:
                stored = await require_server(tx, caller.tenant, name, lock=True)
                state = state_of(stored)
                if state != stored.state:
                    stored = replace(stored, state=state, updated=self._later(stored))
                    await SERVERS.update(tx, stored)
                    await self._record_change(tx, caller, action, name, request, state=state)
        await self._follow(caller, name)
        return self._open(stored)

    async def _open_whole(
        self, caller: Caller, name: str
    ) -> tuple[ServerRecord, Mapping[PinName, StoredPin]]:
        """Return a server to connect to, with its approvals."""
        caller.require(Role.OPERATOR)
        async with self._reading(caller) as tx:
            stored = await require_server(tx, caller.tenant, name)
            return self._open(stored, whole=True), await pins_of(tx, caller.tenant, name)

    def _reading(self, caller: Caller) -> AbstractAsyncContextManager[Transaction]:
        return self.database.transaction(caller.tenant, write=False)

    def _writing(self, caller: Caller) -> AbstractAsyncContextManager[Transaction]:
        return self.database.transaction(caller.tenant)

    def _open(self, stored: StoredServer, *, whole: bool = False) -> ServerRecord:
        """Decrypt a server; unless ``whole``, a server with lost secrets is still shown, so it can be corrected."""
        try:
            return ServerRecord(stored, opened(self.audit.keys, stored))
        except InternalError:
            if whole:
                raise
            return ServerRecord(stored, opened(self.audit.keys, replace(stored, secrets=None)))

    def _new(self, caller: Caller, entry: ServerEntry, origin: Origin, state: ServerState) -> StoredServer:
        moment = self.now()
        return StoredServer(
            tenant=caller.tenant,
            name=entry.name,
            document=document_of(entry),
            secrets=sealed(self.audit.keys, caller.tenant, entry),
            origin=origin,
            state=state,
            pinned=None,
            created=moment,
            created_by=caller.key_id,
            updated=moment,
        )

    def _changed(self, before: ServerRecord, entry: ServerEntry) -> StoredServer:
        return replace(
            before.stored,
            document=document_of(entry),
            secrets=sealed(self.audit.keys, before.stored.tenant, entry),
            updated=self._later(before.stored),
        )

    def _later(self, stored: StoredServer) -> datetime:
        """Return a time after the last change: the column distinguishes two states of a server."""
        return max(self.now(), stored.updated + timedelta(microseconds=1))

    def _check(self, entry: ServerEntry, *, host: bool) -> None:
        if entry.settings.type == "stdio" and not host and not self.upstreams.rules.stdio_over_rest:
            raise ForbiddenError(
                "A command would run on this host, so it is not accepted over REST: declare the server in the file "
                "(sluice apply), or set SLUICE_UPSTREAMS__STDIO_OVER_REST=true.",
                details={"pointer": "/settings/command"},
            )
        check_credentials(entry.settings)
        try:
            ExposedTools.parse(entry.tool_filter)
        except ValueError as error:
            raise InvalidArgumentsError(
                f"{error}.".capitalize(), details={"pointer": "/toolFilter"}
            ) from None

    async def _follow(self, caller: Caller, name: str) -> None:
        """Apply the change in this process before the caller is answered; the others get the announcement."""
        self.upstreams.changed(Changed(SERVERS_CHANGED, caller.tenant, name))
        await self.upstreams.caught_up(caller.tenant)

    async def _record_change(
        self,
        tx: Transaction,
        caller: Caller,
        action: str,
        name: str,
        request: RequestInfo | None,
        **details: str | int,
    ) -> None:
        """Record a change, names and counts only, and announce it with the transaction."""
        event_details: dict[str, Any] = {"server": name, **details}
        await self.audit.record_with(
            tx, self.audit.new_event(caller, action, OUTCOME_OK, request, details=event_details)
        )
        await announce(tx, Changed(SERVERS_CHANGED, caller.tenant, name))


def _check_editable(stored: StoredServer, *, host: bool) -> None:
    if stored.origin == "file" and not host:
        raise ConflictError(_DECLARED)
