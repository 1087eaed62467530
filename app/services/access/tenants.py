"""Tenants: created, listed, disabled and enabled by an operator of the tenant system or on the host."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.access import SYSTEM_TENANT, Caller, Role, check_tenant
from app.core.errors import ConflictError, ForbiddenError, NotFoundError
from app.core.events import Changed
from app.core.request import RequestInfo
from app.services.access.access import AccessService
from app.services.access.credentials import TENANT_CHANGED
from app.store.access.tenants import Tenant, find_tenant, list_tenants, update_tenant
from app.store.changes import announce


@dataclass(frozen=True, slots=True)
class TenantService:
    """Administers tenants; every change is recorded both in that tenant and in the caller's own."""

    access: AccessService

    async def create(self, caller: Caller, name: str, request: RequestInfo | None = None) -> Tenant:
        """Create a tenant; a name that was ever used stays taken."""
        audit = self.access.audit
        async with audit.refusals(caller, "tenant.create", request):
            self.check(caller)
            tenant = Tenant(check_tenant(name), self.access.now(), caller.key_id)
            if (directory := self.access.directory) is not None:
                holder = await directory.claim_tenant(tenant.name)
                if holder != directory.shard:
                    raise ConflictError("A tenant of that name exists.", details={"pointer": "/name"})
            await audit.keys.ready(tenant.name)
            added = False
            try:
                async with self.access.database.system_transaction() as tx:
                    added = await self.access.store_tenant(tx, tenant)
                    if not added:
                        raise ConflictError("A tenant of that name exists.", details={"pointer": "/name"})
                    events = self.access.events_of(caller, "tenant.create", tenant.name, request, {})
                    await audit.record_with(tx, *events)
            finally:
                if added:  # read again with the first request: where this failed, there is no such key
                    self.access.forget_tenant(tenant.name)
        return tenant

    async def list(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int = 1000,
    ) -> Sequence[Tenant]:
        """Return tenants ordered by name, those after the name ``after``."""
        async with self.access.audit.refusals(caller, "tenant.list", request):
            self.check(caller)
        async with self.access.database.system_transaction(write=False) as tx:
            return await list_tenants(tx, after=after, limit=limit)

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> Tenant:
        """Return one tenant, or raise NotFoundError."""
        async with self.access.audit.refusals(caller, "tenant.get", request):
            self.check(caller)
        async with self.access.database.system_transaction(write=False) as tx:
            tenant = await find_tenant(tx, name)
        if tenant is None:
            raise NotFoundError("There is no such tenant.")
        return tenant

    async def disable(self, caller: Caller, name: str, request: RequestInfo | None = None) -> Tenant:
        """Refuse every key of a tenant from now on; its data stays."""
        return await self._set_disabled(caller, name, request, disabled=True)

    async def enable(self, caller: Caller, name: str, request: RequestInfo | None = None) -> Tenant:
        """Accept the keys of a disabled tenant again."""
        return await self._set_disabled(caller, name, request, disabled=False)

    async def _set_disabled(
        self, caller: Caller, name: str, request: RequestInfo | None, *, disabled: bool
    ) -> Tenant:
        audit = self.access.audit
        action = "tenant.disable" if disabled else "tenant.enable"
        async with audit.refusals(caller, action, request):
            self.check(caller)
            if name == SYSTEM_TENANT:
                raise ConflictError("The tenant system administers the others and cannot be disabled.")
            await audit.keys.ready(name)
            async with self.access.database.system_transaction() as tx:
                tenant = await find_tenant(tx, name, lock=True)
                if tenant is None:
                    raise NotFoundError("There is no such tenant.")
                if tenant.erased is not None and not disabled:
                    raise ConflictError("An erased tenant cannot be enabled again.")
                if (tenant.disabled is not None) == disabled:
                    return tenant
                changed = replace(tenant, disabled=self.access.now() if disabled else None)
                await update_tenant(tx, name, disabled=changed.disabled)
                await audit.record_with(tx, *self.access.events_of(caller, action, name, request, {}))
                await announce(tx, Changed(TENANT_CHANGED, name))
        self.access.authenticator.changed(Changed(TENANT_CHANGED, name))
        return changed

    def check(self, caller: Caller) -> None:
        """Raise ForbiddenError unless ``caller`` may administer tenants."""
        caller.require(Role.OPERATOR)
        if not self.access.authority.reaches_all(caller):
            raise ForbiddenError("Tenants are administered by an operator of the tenant system.")
