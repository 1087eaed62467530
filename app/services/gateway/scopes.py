"""Which conversation a request belongs to, whose it is, and what the ids stand for that providers give."""

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from app.core.access import Caller
from app.core.content.handles import Handle
from app.core.errors import NotFoundError
from app.services.vault.vault import DEFAULT_TTL_S, VaultService, check_scope
from app.store.database import Database
from app.store.vault.conversations import (
    Binding,
    find_binding,
    find_owner,
    put_binding,
    remove_binding,
    share_scope,
)

DERIVED_PREFIX: Final = "gw-"
STABLE_OWNER: Final = "stable"
"""The owner of a tenant's stable scope, which is never a caller."""

_DIGITS: Final = 40


@dataclass(frozen=True, slots=True)
class ScopeHints:
    """What a request says about its conversation; the first that is there counts.

    ``named``: the header ``X-Sluice-Scope``. ``ids``: of a conversation and of a previous response, as the provider
    gave them. ``sessions``: values of the body in the order of the family's table. ``first_user_text``: what the
    first user message says.
    """

    named: str | None = None
    ids: Sequence[str] = ()
    sessions: Sequence[str] = ()
    first_user_text: str | None = None


@dataclass(frozen=True, slots=True)
class ScopeRules:
    """What the tenant's policy says: names of scopes for all its callers, and whether it has a stable scope."""

    shared: Collection[str] = ()
    stable: bool = False
    ttl_s: int | None = None


@dataclass(frozen=True, slots=True)
class ConversationScope:
    """The vault scope of one conversation.

    ``owner``: who owns it if it is new (None: the tenant). ``derived``: the gateway made its name, so that only what
    stands in a request is known and restored there. ``stable``: the scope of ``system`` and ``tools``. ``provider``
    gave the id that led here. ``handles``: what the conversation behind that id has met.
    """

    name: str
    owner: str | None
    derived: bool
    stable: str | None = None
    provider: str | None = None
    handles: frozenset[Handle] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class GatewayScopes:
    """Finds the scope of a request, and binds a provider's ids to it."""

    database: Database
    vault: VaultService
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def find(self, caller: Caller, hints: ScopeHints, rules: ScopeRules) -> ConversationScope:
        """Return the scope of a request; raise NotFoundError for an unknown or another caller's scope or id."""
        stable = self.stable_name(caller.tenant) if rules.stable else None
        if hints.named is not None:
            return await self._named(caller, check_scope(hints.named), rules, stable)
        if hints.ids:
            return await self._bound(caller, hints.ids, rules, stable)
        session = next((value for value in hints.sessions if value), None)
        if session is not None:
            name = self._derived_name(caller, "session", session)
        elif hints.first_user_text:
            name = self._derived_name(caller, "message", hints.first_user_text)
        else:
            name = DERIVED_PREFIX + secrets.token_hex(_DIGITS // 2)
        return ConversationScope(name, self.vault.identity(caller), derived=True, stable=stable)

    async def bind(
        self,
        caller: Caller,
        scope: ConversationScope,
        provider: str,
        ids: Collection[str],
        handles: Collection[Handle],
        ttl_s: int | None = None,
    ) -> None:
        """Let ``ids`` stand for ``scope`` and the ``handles`` that the conversation has met, for this caller alone."""
        binding = Binding(
            scope.name, provider, self.vault.identity(caller), sorted(handle.name for handle in handles)
        )
        expires = self.now() + timedelta(seconds=ttl_s or DEFAULT_TTL_S)
        async with self.database.transaction(caller.tenant) as tx:
            for value in ids:
                await put_binding(tx, caller.tenant, self._lookup(caller.tenant, value), binding, expires)

    async def unbind(self, caller: Caller, ids: Collection[str]) -> None:
        """Forget ids of this caller that the provider has deleted."""
        async with self.database.transaction(caller.tenant) as tx:
            for value in ids:
                lookup = self._lookup(caller.tenant, value)
                binding = await find_binding(tx, caller.tenant, lookup, self.now())
                if binding is not None and binding.owner == self.vault.identity(caller):
                    await remove_binding(tx, caller.tenant, lookup)

    def stable_name(self, tenant: str) -> str:
        """Return the name of the tenant's stable scope; nobody can guess it and take the place before it is made."""
        return f"{DERIVED_PREFIX}stable-{self.vault.audit.digest(tenant, b'stable scope')[:_DIGITS]}"

    async def _named(
        self, caller: Caller, name: str, rules: ScopeRules, stable: str | None
    ) -> ConversationScope:
        identity = self.vault.identity(caller)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            exists, owner = await find_owner(tx, caller.tenant, name)
        if name in rules.shared:
            if owner is not None:
                async with self.database.transaction(caller.tenant) as tx:
                    await share_scope(tx, caller.tenant, name)
            return ConversationScope(name, None, derived=False, stable=stable)
        if owner not in {None, identity} or name == self.stable_name(caller.tenant):
            raise NotFoundError("There is no such scope.")
        owner = owner if exists else identity
        return ConversationScope(name, owner, derived=name.startswith(DERIVED_PREFIX), stable=stable)

    async def _bound(
        self, caller: Caller, ids: Sequence[str], rules: ScopeRules, stable: str | None
    ) -> ConversationScope:
        identity, bindings = self.vault.identity(caller), list[Binding]()
        async with self.database.transaction(caller.tenant, write=False) as tx:
            for value in ids:
                lookup = self._lookup(caller.tenant, value)
                binding = await find_binding(tx, caller.tenant, lookup, self.now())
                if binding is None or binding.owner != identity:
                    raise _unknown_id()
                bindings.append(binding)
        first = bindings[0]
        if any((other.scope, other.provider) != (first.scope, first.provider) for other in bindings):
            raise _unknown_id()
        scope = await self._named(caller, first.scope, rules, stable)
        names = {name for binding in bindings for name in binding.handles}
        handles = frozenset(handle for name in names if (handle := Handle.parse(name)) is not None)
        return ConversationScope(
            scope.name, scope.owner, scope.derived, stable, provider=first.provider, handles=handles
        )

    def _derived_name(self, caller: Caller, kind: str, value: str) -> str:
        framed = f"{self.vault.identity(caller)}\0{kind}\0".encode() + value.encode("utf-8", "surrogatepass")
        return DERIVED_PREFIX + self.vault.audit.digest(caller.tenant, b"gateway scope\0" + framed)[:_DIGITS]

    def _lookup(self, tenant: str, value: str) -> bytes:
        data = b"gateway id\0" + value.encode("utf-8", "surrogatepass")
        return bytes.fromhex(self.vault.audit.digest(tenant, data))


def _unknown_id() -> NotFoundError:
    return NotFoundError("There is no such conversation or response.")
