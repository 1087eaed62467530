"""API keys: create, list, rotate and revoke them."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from app.core.access import (
    FIRST_START,
    HOST_ACTOR,
    HOST_ACTORS,
    SYSTEM_TENANT,
    ApiKey,
    Caller,
    Role,
    check_tenant,
    check_union,
    parse_roles,
)
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.errors import (
    ConflictError,
    InvalidArgumentsError,
    NotFoundError,
)
from app.core.events import Changed
from app.core.request import RequestInfo
from app.services.access import custody
from app.services.access.credentials import (
    KEYS_CHANGED,
    Authenticator,
    checked_cidrs,
    checked_expiry,
    checked_name,
)
from app.services.access.directory import Directory
from app.services.access.tenant_keys import TenantKeys
from app.services.audit.audit import AuditService
from app.store.access.access import (
    KeyInfo,
    StoredKey,
    add_key,
    find_key,
    list_keys,
    list_keys_due,
    update_key_grant,
    update_key_revoked,
    update_key_secret,
)
from app.store.access.tenants import Tenant, add_tenant, find_tenant
from app.store.audit.audit import Transaction
from app.store.changes import announce
from app.store.database import Database

HOST = Caller(SYSTEM_TENANT, HOST_ACTOR, frozenset({Role.OPERATOR, Role.KEY_CUSTODIAN}))
"""The command line on the host: with access to the database, it may administer tenants and keys."""

DEFAULT_OVERLAP_S = 24 * 3600
MAX_OVERLAP_S = 90 * 24 * 3600
_ID_DRAWS = 3


class NewKey(NamedTuple):
    """A new key with its secret, which is never shown again; some of its roles may wait for an approval."""

    key: ApiKey
    info: KeyInfo


@dataclass(slots=True)
class Authority:
    """Who may act for all tenants: callers of the tenant system, and in development the first key."""

    development_keys: frozenset[str] = frozenset()

    def reaches_all(self, caller: Caller) -> bool:
        """Return whether the roles of ``caller`` apply in every tenant."""
        return caller.tenant == SYSTEM_TENANT or caller.key_id in self.development_keys

    def is_exempt(self, caller: Caller) -> bool:
        """Return whether ``caller`` may grant every role alone: the host, or development's first key."""
        is_host = caller.tenant == SYSTEM_TENANT and caller.key_id in HOST_ACTORS
        return is_host or caller.key_id in self.development_keys

    @property
    def trusted_makers(self) -> frozenset[str]:
        """Return who may make keys without being thought of as their holder: they could grant every role anyway."""
        return HOST_ACTORS | {FIRST_START} | self.development_keys


@dataclass(frozen=True, slots=True)
class AccessService:
    """Administers API keys; ``authenticator`` is told at once what has changed.

    ``directory`` is asked for ids where this database is one of several shards.
    """

    database: Database
    audit: AuditService
    authenticator: Authenticator
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    authority: Authority = field(default_factory=Authority)
    directory: Directory | None = None
    tenant_keys: TenantKeys | None = None
    """What gives new tenants keys of their own; None: nobody does."""

    async def create_key(
        self,
        caller: Caller,
        roles: Iterable[str],
        request: RequestInfo | None = None,
        *,
        tenant: str | None = None,
        name: str | None = None,
        expires: datetime | None = None,
        cidrs: Iterable[str] = (),
        override_unions: bool = False,
    ) -> NewKey:
        """Create a key of the caller's tenant; a key custodian of the tenant system may name another tenant.

        ``override_unions`` allows a combination of roles that is otherwise refused, and is recorded. The roles
        restorer and operator are without effect until another custodian approves them, or the delay of the policy has
        passed.
        """
        async with self.audit.refusals(caller, "key.create", request):
            target = self._administered_tenant(caller, tenant)
            granted = parse_roles(roles)
            check_union(granted, override=override_unions)
            moment = self.now()
            info = KeyInfo(
                tenant=target,
                id="",
                name=checked_name(name),
                roles=granted,
                cidrs=checked_cidrs(cidrs),
                created=moment,
                created_by=caller.key_id,
                expires=checked_expiry(expires, moment),
            )
            drawn = await self.directory.draw_key(target) if self.directory is not None else None
            async with self._writing(caller, target) as tx:
                if await find_tenant(tx, target) is None:
                    raise _no_tenant()
                exempt = self.authority.is_exempt(caller)
                after = await custody.held_back(tx, info, caller, moment, exempt=exempt)
                new_key = await self.store_key(tx, after, drawn)
                details = {**grant_details(new_key.info), **custody.details_of(after, exempt=exempt)}
                events = self.events_of(caller, "key.create", target, request, details)
                await self.audit.record_with(tx, *events)
        return new_key

    async def list_keys(
        self,
        caller: Caller,
        tenant: str | None = None,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int = 1000,
    ) -> Sequence[KeyInfo]:
        """Return keys ordered by id, those after the id ``after``; without secrets or their digests."""
        async with self.audit.refusals(caller, "key.list", request):
            target = self._administered_tenant(caller, tenant)
        async with self._reading(caller, target) as tx:
            if await find_tenant(tx, target) is None:
                raise _no_tenant()
            keys = await list_keys(tx, target, after=after, limit=limit)
        return [info.settled(self.now()) for info in keys]

    async def get_key(self, caller: Caller, key_id: str, request: RequestInfo | None = None) -> KeyInfo:
        """Return one key, or raise NotFoundError."""
        async with self.audit.refusals(caller, "key.get", request):
            caller.require(Role.KEY_CUSTODIAN)
        async with self._reading(caller, caller.tenant) as tx:
            return (await self._find_key(tx, caller, key_id)).info.settled(self.now())

    async def revoke_key(self, caller: Caller, key_id: str, request: RequestInfo | None = None) -> KeyInfo:
        """End a key at once, in this process before this returns; repeating it does no harm."""
        async with self.audit.refusals(caller, "key.revoke", request):
            caller.require(Role.KEY_CUSTODIAN)
            async with self._writing(caller, caller.tenant) as tx:
                stored = await self._find_key(tx, caller, key_id, lock=True)
                if stored.info.revoked is not None:
                    return stored.info
                tenant, moment = stored.info.tenant, self.now()
                await update_key_revoked(tx, tenant, key_id, moment)
                events = self.events_of(caller, "key.revoke", tenant, request, {"key": key_id})
                await self.audit.record_with(tx, *events)
                await announce(tx, Changed(KEYS_CHANGED, tenant, key_id))
        self.authenticator.memory.forget(key_id)
        return replace(stored.info.settled(moment), revoked=moment, rotating_until=None)

    async def rotate_key(
        self,
        caller: Caller,
        key_id: str,
        request: RequestInfo | None = None,
        *,
        overlap_s: float = DEFAULT_OVERLAP_S,
    ) -> NewKey:
        """Give a key a new secret; the old one stays valid for ``overlap_s`` seconds (0: it ends at once).

        At most two secrets are valid: during a rotation only ``overlap_s=0`` is allowed. Whoever rotates a key sees
        its secret, so the new one restores only after an approval or the delay, as a new key does.
        """
        async with self.audit.refusals(caller, "key.rotate", request):
            caller.require(Role.KEY_CUSTODIAN)
            if not 0 <= overlap_s <= MAX_OVERLAP_S:
                raise InvalidArgumentsError(
                    "Two secrets may be valid at once for at most 90 days.",
                    details={"pointer": "/overlap_s", "maximum": MAX_OVERLAP_S},
                )
            moment = self.now()
            until = moment + timedelta(seconds=overlap_s) if overlap_s else None
            async with self._writing(caller, caller.tenant) as tx:
                stored = await self._find_key(tx, caller, key_id, lock=True)
                before = replace(stored, info=stored.info.settled(moment))
                self._check_rotation(before.info, until)
                fresh = ApiKey(key_id, ApiKey.generate().secret)
                exempt, tenant = self.authority.is_exempt(caller), before.info.tenant
                after = await custody.held_back(tx, before.info, caller, moment, exempt=exempt)
                await update_key_secret(tx, before, fresh.digest, until, after)
                details = {"key": key_id, "overlap_s": int(overlap_s)}
                details |= custody.details_of(after, exempt=exempt)
                events = self.events_of(caller, "key.rotate", tenant, request, details)
                await self.audit.record_with(tx, *events)
                await announce(tx, Changed(KEYS_CHANGED, tenant, key_id))
        self.authenticator.memory.forget(key_id)
        return NewKey(fresh, replace(after, rotating_until=until))

    async def approve_key(self, caller: Caller, key_id: str, request: RequestInfo | None = None) -> KeyInfo:
        """Give a key the roles for which it waits; the approval of whoever may know its secret does not count."""
        async with self.audit.refusals(caller, "key.approve", request):
            caller.require(Role.KEY_CUSTODIAN)
            moment, exempt = self.now(), self.authority.is_exempt(caller)
            # Who made the approver's key may be a custodian of another tenant.
            async with self.database.system_transaction() as tx:
                info = (await self._find_key(tx, caller, key_id, lock=True)).info.settled(moment)
                custody.check_waits(info, moment)
                if not exempt:
                    await custody.check_other_hands(tx, info, caller, moment, self.authority.trusted_makers)
                await update_key_grant(tx, info.granted())
                await announce(tx, Changed(KEYS_CHANGED, info.tenant, key_id))
                details = custody.approval_details(info, exempt=exempt)
                events = self.events_of(caller, "key.approve", info.tenant, request, details)
                await self.audit.record_with(tx, *events)
        self.authenticator.memory.forget(key_id)
        return info.granted()

    async def settle_keys(self) -> None:
        """Store and record the roles for which keys have waited long enough; they have them already."""
        async with self.database.system_transaction() as tx:
            for info in await list_keys_due(tx, self.now()):
                await update_key_grant(tx, info.granted())
                actor = Caller(info.tenant, custody.DELAY_ACTOR, frozenset())
                details = custody.approval_details(info, exempt=False)
                await self.audit.record_with(
                    tx, *self.events_of(actor, "key.settle", info.tenant, None, details)
                )

    async def store_key(self, tx: Transaction, info: KeyInfo, drawn: ApiKey | None = None) -> NewKey:
        """Store a new key under an unused id; ``drawn`` has one that the directory keeps for it."""
        for _ in range(_ID_DRAWS if drawn is None else 1):
            key = drawn or ApiKey.generate()
            named = replace(info, id=key.id)
            if await add_key(tx, StoredKey(named, key.digest)):
                return NewKey(key, named)
        raise ConflictError("No free key id was found; try again.", retry_after_s=1.0)

    async def store_tenant(self, tx: Transaction, tenant: Tenant) -> bool:
        """Store a tenant with a key of its own; return False and change nothing where the name is taken.

        Where the transaction fails, whoever began it calls ``forget_tenant``.
        """
        if self.tenant_keys is None or tenant.name == SYSTEM_TENANT:
            return await add_tenant(tx, tenant)
        if not await add_tenant(tx, replace(tenant, own_key=True)):
            return False
        await self.tenant_keys.add(tx, tenant, self.now())
        return True

    def forget_tenant(self, name: str) -> None:
        """Drop the key of a tenant from memory: it was not stored, or it is destroyed."""
        if self.tenant_keys is not None:
            self.tenant_keys.forget(name)

    def events_of(
        self, caller: Caller, action: str, tenant: str, request: RequestInfo | None, details: dict[str, Any]
    ) -> list[AuditEvent]:
        """Return the audit events of an administrative act: in that tenant and in the caller's own."""
        foreign = {"actor_tenant": caller.tenant} if tenant != caller.tenant else {}
        there = self.audit.new_event(
            caller, action, OUTCOME_OK, request, tenant=tenant, details={**details, **foreign}
        )
        if not foreign:
            return [there]
        here = self.audit.new_event(
            caller, action, OUTCOME_OK, request, details={**details, "tenant": tenant}
        )
        return [there, here]

    def _administered_tenant(self, caller: Caller, tenant: str | None) -> str:
        """Return the tenant whose keys are administered; a tenant out of reach looks like an unknown one."""
        caller.require(Role.KEY_CUSTODIAN)
        target = check_tenant(tenant) if tenant is not None else caller.tenant
        if target != caller.tenant and not self.authority.reaches_all(caller):
            raise _no_tenant()
        return target

    async def _find_key(
        self, tx: Transaction, caller: Caller, key_id: str, *, lock: bool = False
    ) -> StoredKey:
        own = None if self.authority.reaches_all(caller) else caller.tenant
        stored = await find_key(tx, key_id, tenant_name=own, lock=lock)
        if stored is None:
            raise NotFoundError("There is no such key.")
        await self.audit.keys.ready(stored.info.tenant)
        return stored

    def _writing(self, caller: Caller, tenant: str) -> AbstractAsyncContextManager[Transaction]:
        return self._transaction(caller, tenant, write=True)

    def _reading(self, caller: Caller, tenant: str) -> AbstractAsyncContextManager[Transaction]:
        return self._transaction(caller, tenant, write=False)

    @asynccontextmanager
    async def _transaction(self, caller: Caller, tenant: str, *, write: bool) -> AsyncIterator[Transaction]:
        await self.audit.keys.ready(tenant)
        if self.authority.reaches_all(caller):
            async with self.database.system_transaction(write=write) as tx:
                yield tx
        else:
            async with self.database.transaction(tenant, write=write) as tx:
                yield tx

    def _check_rotation(self, info: KeyInfo, until: datetime | None) -> None:
        moment = self.now()
        if info.revoked is not None or (info.expires is not None and info.expires <= moment):
            raise ConflictError("The key has ended; create a new one.", details={"key": info.id})
        if until is not None and info.rotating_until is not None and info.rotating_until > moment:
            raise ConflictError(
                "The key still has two secrets; wait for the older to end, or rotate without overlap.",
                details={"key": info.id, "until": info.rotating_until.isoformat()},
            )


def grant_details(info: KeyInfo) -> dict[str, str | int | bool]:
    """Return a new key's details for the audit record: its roles and limits, never the secret."""
    roles = info.granted().roles
    details: dict[str, str | int | bool] = {"key": info.id, "granted": ",".join(sorted(roles))}
    if info.expires is not None:
        details["expires"] = info.expires.isoformat()
    if info.cidrs:
        details["cidrs"] = ",".join(info.cidrs)
    try:
        check_union(roles)
    except InvalidArgumentsError:
        details["override_unions"] = True
    return details


def _no_tenant() -> NotFoundError:
    return NotFoundError("There is no such tenant.")
