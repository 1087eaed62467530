"""The model providers of a tenant: stored, changed, tested and removed by its operators, and chosen for requests."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Any, Final

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_FAILED, OUTCOME_OK
from app.core.errors import ConflictError, ForbiddenError, InternalError, NotFoundError
from app.core.events import Changed
from app.core.gateway.credentials import ProviderCredential
from app.core.gateway.providers import MAX_PROVIDERS, PROVIDERS_CHANGED, ProviderEntry, in_order
from app.core.request import RequestInfo
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.services.gateway.provider_sealing import (
    SubmittedProvider,
    changed_members,
    opened_provider,
    sealed_secrets,
    stored_document,
)
from app.services.gateway.provider_trials import ProviderTrial, tried
from app.store.audit.audit import Transaction
from app.store.changes import EVERYTHING, announce
from app.store.database import Database
from app.store.gateway.providers import PROVIDERS, ProviderOrigin, StoredProvider
from app.upstream.providers.client import ProviderClient
from app.upstream.providers.requests import ProviderEndpoint

_STALE_S: Final = 5.0
_CACHED_TENANTS: Final = 1_000
_BEHIND: Final = 10
"""The distance of a new provider's ``order`` to the last one's, so that others fit in between."""
_DECLARED: Final = (
    "The provider is declared in the file that this service applies; change it there and apply that."
)


@dataclass(frozen=True, slots=True)
class ProviderRecord:
    """A provider as stored, and its entry with the secrets, which are never shown (``shown_provider``)."""

    stored: StoredProvider
    entry: ProviderEntry


@dataclass(frozen=True, slots=True)
class ProviderService:
    """Administers providers and hands them to the doors; subscribe ``changed`` to announcements.

    Providers declared in a file belong to the file: over REST they are tested, not edited. ``host`` arguments: the
    caller works on the host, where such providers may be edited. ``networks`` are those that an operator may name in
    ``allowedNetworks`` over REST; the file and the host may name any.
    """

    database: Database
    audit: AuditService
    client: ProviderClient
    networks: tuple[str, ...] = ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    memory: ShortMemory[str, Sequence[ProviderEndpoint]] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_TENANTS)
    )

    async def of_tenant(self, tenant: str) -> Sequence[ProviderEndpoint]:
        """Return a tenant's providers, secrets included, in the order in which they are asked for a model.

        One whose secrets cannot be decrypted is left out.
        """
        return self.memory.peek(tenant) or await self.memory.get(tenant, self._load) or ()

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has made stale."""
        if changed.kind == EVERYTHING or (changed.kind == PROVIDERS_CHANGED and changed.tenant is None):
            self.memory.forget_where(lambda _providers: True)
        elif changed.kind == PROVIDERS_CHANGED and changed.tenant is not None:
            self.memory.forget(changed.tenant)

    async def list(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sequence[ProviderRecord]:
        """Return providers ordered by name, those after ``after``."""
        async with self.audit.refusals(caller, "providers.list", request):
            caller.require(Role.OPERATOR)
        async with self._reading(caller) as tx:
            listed = await PROVIDERS.list(tx, caller.tenant, after=after, limit=limit)
        return [self._open(stored) for stored in listed]

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> ProviderRecord:
        """Return one provider, or raise NotFoundError."""
        async with self.audit.refusals(caller, "providers.get", request):
            caller.require(Role.OPERATOR)
            async with self._reading(caller) as tx:
                return self._open(await _require(tx, caller.tenant, name))

    async def put(
        self,
        caller: Caller,
        name: str,
        submitted: SubmittedProvider,
        request: RequestInfo | None = None,
        *,
        host: bool = False,
    ) -> ProviderRecord:
        """Store a provider, or replace the settings of one; secrets that are not repeated stay.

        Raises InvalidArgumentsError, also where stored secrets would go to another address; ForbiddenError for
        networks that only the host may name; ConflictError for a provider of the file.
        """
        async with self.audit.refusals(caller, "providers.put", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                stored = await PROVIDERS.find(tx, caller.tenant, name, lock=True)
                before = self._open(stored) if stored is not None else None
                if stored is not None:
                    _check_editable(stored, host=host)
                entry = submitted.entry(name, before.entry if before is not None else None)
                if not host:
                    self._check_networks(entry)
                origin: ProviderOrigin = "host" if host else "api"
                if stored is not None and stored.origin == "file":
                    origin = "file"
                record = await self._store(tx, caller, before, entry, origin)
                changed = changed_members(before.entry, entry) if before is not None else ""
                await self._record(
                    tx, caller, "providers.put", name, request, created=before is None, changed=changed
                )
        self._follow(caller)
        return record

    async def remove(
        self, caller: Caller, name: str, request: RequestInfo | None = None, *, host: bool = False
    ) -> None:
        """Remove a provider and its secrets."""
        async with self.audit.refusals(caller, "providers.remove", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                _check_editable(await _require(tx, caller.tenant, name, lock=True), host=host)
                await PROVIDERS.remove(tx, caller.tenant, name)
                await self._record(tx, caller, "providers.remove", name, request)
        self._follow(caller)

    async def test(self, caller: Caller, name: str, request: RequestInfo | None = None) -> ProviderTrial:
        """Ask a provider for its models once, with its sealed key; a failure is a result, not an error."""
        async with self.audit.refusals(caller, "providers.test", request):
            caller.require(Role.OPERATOR)
            async with self._reading(caller) as tx:
                stored = await _require(tx, caller.tenant, name)
            record = ProviderRecord(stored, opened_provider(self.audit.keys, stored))
        trial = await tried(self.client, self.endpoint(record), ProviderCredential(record.entry.api_key))
        details = {"provider": name, "ready": trial.ready, "models": len(trial.models)}
        outcome = OUTCOME_OK if trial.ready else OUTCOME_FAILED
        await self.audit.record(
            self.audit.new_event(caller, "providers.test", outcome, request, details=details)
        )
        return trial

    async def declared(self, tx: Transaction, tenant: str) -> Mapping[str, ProviderOrigin]:
        """Return the names of a tenant's providers and who wrote them, to compare a file with."""
        return {stored.name: stored.origin for stored in await PROVIDERS.list(tx, tenant)}

    async def declare(self, tx: Transaction, caller: Caller, entry: ProviderEntry) -> bool:
        """Store a file's entry of a provider; return whether that changed anything."""
        stored = await PROVIDERS.find(tx, caller.tenant, entry.name, lock=True)
        before = self._open(stored) if stored is not None else None
        if before is not None and before.stored.origin == "file" and before.entry == entry:
            return False
        await self._store(tx, caller, before, entry, "file")
        changed = changed_members(before.entry, entry) if before is not None else ""
        await self._record(
            tx, caller, "providers.declare", entry.name, None, created=before is None, changed=changed
        )
        return True

    async def withdraw(self, tx: Transaction, caller: Caller, name: str) -> bool:
        """Remove a provider that the file no longer has; return whether one from the file existed."""
        stored = await PROVIDERS.find(tx, caller.tenant, name, lock=True)
        if stored is None or stored.origin != "file":
            return False
        await PROVIDERS.remove(tx, caller.tenant, name)
        await self._record(tx, caller, "providers.withdraw", name, None)
        return True

    def endpoint(self, record: ProviderRecord) -> ProviderEndpoint:
        """Return where to send requests; networks named over REST count while the settings still allow them."""
        networks = tuple(record.entry.allowed_networks)
        if record.stored.origin == "api":
            networks = tuple(network for network in networks if self._allows(network))
        return ProviderEndpoint(record.stored.tenant, record.entry, networks)

    async def _load(self, tenant: str) -> Sequence[ProviderEndpoint]:
        async with self.database.transaction(tenant, write=False) as tx:
            rows = await PROVIDERS.list(tx, tenant)
        endpoints = {}
        for stored in rows:
            try:
                record = ProviderRecord(stored, opened_provider(self.audit.keys, stored))
            except InternalError:
                continue
            endpoints[stored.name] = self.endpoint(record)
        return [endpoints[entry.name] for entry in in_order(place.entry for place in endpoints.values())]

    def _open(self, stored: StoredProvider) -> ProviderRecord:
        """Decrypt a provider; one whose secrets are lost is still shown, so it can be corrected."""
        try:
            return ProviderRecord(stored, opened_provider(self.audit.keys, stored))
        except InternalError:
            return ProviderRecord(stored, opened_provider(self.audit.keys, replace(stored, secrets=None)))

    def _reading(self, caller: Caller) -> AbstractAsyncContextManager[Transaction]:
        return self.database.transaction(caller.tenant, write=False)

    async def _store(
        self,
        tx: Transaction,
        caller: Caller,
        before: ProviderRecord | None,
        entry: ProviderEntry,
        origin: ProviderOrigin,
    ) -> ProviderRecord:
        moment = self.now()
        if before is not None:
            moment = max(moment, before.stored.updated + timedelta(microseconds=1))
        elif await PROVIDERS.count(tx, caller.tenant) >= MAX_PROVIDERS:
            raise ConflictError(f"A tenant has at most {MAX_PROVIDERS} providers; remove one first.")
        if entry.order is None:
            entry = entry.model_copy(update={"order": await self._next_order(tx, caller.tenant)})
        stored = StoredProvider(
            tenant=caller.tenant,
            name=entry.name,
            document=stored_document(entry),
            secrets=sealed_secrets(self.audit.keys, caller.tenant, entry),
            origin=origin,
            created=moment if before is None else before.stored.created,
            created_by=caller.key_id if before is None else before.stored.created_by,
            updated=moment,
        )
        if before is not None:
            await PROVIDERS.update(tx, stored)
        elif not await PROVIDERS.add(tx, stored):
            raise ConflictError("Somebody else stored a provider of that name meanwhile; read it and repeat.")
        return ProviderRecord(stored, entry)

    async def _next_order(self, tx: Transaction, tenant: str) -> int:
        orders = [stored.document.get("order") or 0 for stored in await PROVIDERS.list(tx, tenant)]
        return min(max(orders, default=0) + _BEHIND, 1_000_000)

    def _check_networks(self, entry: ProviderEntry) -> None:
        for number, network in enumerate(entry.allowed_networks):
            if not self._allows(network):
                raise ForbiddenError(
                    "A network in allowedNetworks is not one that operators may name over REST: whoever runs this "
                    "service allows it with SLUICE_UPSTREAMS__ALLOWED_NETWORKS, or declares the provider in the file.",
                    details={"pointer": f"/allowedNetworks/{number}"},
                )

    def _allows(self, text: str) -> bool:
        network = ip_network(text, strict=False)
        return any(
            network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]
            for other in (ip_network(allowed, strict=False) for allowed in self.networks)
        )

    def _follow(self, caller: Caller) -> None:
        """Apply the change in this process before the caller is answered; the others get the announcement."""
        self.changed(Changed(PROVIDERS_CHANGED, caller.tenant))

    async def _record(
        self,
        tx: Transaction,
        caller: Caller,
        action: str,
        name: str,
        request: RequestInfo | None,
        **details: str | int,
    ) -> None:
        """Record a change, names and counts only, and announce it with the transaction."""
        event_details: dict[str, Any] = {"provider": name, **details}
        await self.audit.record_with(
            tx, self.audit.new_event(caller, action, OUTCOME_OK, request, details=event_details)
        )
        await announce(tx, Changed(PROVIDERS_CHANGED, caller.tenant, name))


async def _require(tx: Transaction, tenant: str, name: str, *, lock: bool = False) -> StoredProvider:
    stored = await PROVIDERS.find(tx, tenant, name, lock=lock)
    if stored is None:
        raise NotFoundError("There is no such provider.")
    return stored


def _check_editable(stored: StoredProvider, *, host: bool) -> None:
    if stored.origin == "file" and not host:
        raise ConflictError(_DECLARED)
