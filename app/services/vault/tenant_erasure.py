"""Erase a tenant: what it had is deleted in the background, and its name and its record stay."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from app.core.access import Caller
from app.core.audit import OUTCOME_OK
from app.core.errors import ConflictError, NotFoundError
from app.core.events import Changed
from app.core.ids import uuid7
from app.core.request import RequestInfo
from app.services.access.access import HOST
from app.services.access.credentials import TENANT_CHANGED
from app.services.access.tenants import TenantService
from app.services.vault.erasure import VAULT_CHANGED, ErasureReceipt, ErasureSink
from app.services.vault.mark import MarkKeeper
from app.store.access.tenants import Tenant, find_tenant, list_unemptied, mark_emptied, mark_erased
from app.store.changes import announce
from app.store.emptying import emptied_tables, remove_rows
from app.store.vault.vault import add_erasure

_ROWS = 500
_PAUSE_S = 0.01
SETTLED_S: Final = 600.0
"""What a request stored that was under way when the tenant was disabled is deleted within this time, too."""


@dataclass(frozen=True, slots=True)
class TenantErasure:
    """The use cases of operators of the tenant ``system`` that erase another tenant."""

    tenants: TenantService
    sink: ErasureSink
    marks: MarkKeeper | None = None

    async def erase(self, caller: Caller, name: str, request: RequestInfo | None = None) -> Tenant:
        """Order the erasure of a disabled tenant, which cannot be taken back; ``empty`` then deletes its data."""
        access = self.tenants.access
        async with access.audit.refusals(caller, "tenant.erase", request):
            self.tenants.check(caller)
            await access.audit.keys.ready(name)
            history = None if self.marks is None else await self.marks.admit_erasure()
            receipt = ErasureReceipt(uuid7(), "tenant", access.now(), caller.key_id, None, {})
            async with access.database.system_transaction() as tx:
                tenant = await find_tenant(tx, name, lock=True)
                if tenant is None:
                    raise NotFoundError("There is no such tenant.")
                if tenant.erased is not None:
                    return tenant
                if tenant.disabled is None:
                    raise ConflictError("Disable the tenant first: only a disabled tenant can be erased.")
                await mark_erased(tx, name, receipt.at)
                await add_erasure(tx, name, receipt.id, receipt.kind, receipt.at, receipt.actor, None, {})
                own = access.tenant_keys is not None and await access.tenant_keys.destroy(tx, name)
                details = {"receipt": str(receipt.id), "digest_key": "destroyed" if own else "shared"}
                events = access.events_of(caller, "tenant.erase", name, request, details)
                await access.audit.record_with(tx, *events)
                for kind in (TENANT_CHANGED, VAULT_CHANGED):
                    await announce(tx, Changed(kind, name))
                await self.sink.append(name, receipt, [], history)
        if self.marks is not None:
            await self.marks.note_erasure()
        access.authenticator.changed(Changed(TENANT_CHANGED, name))
        access.forget_tenant(name)
        return replace(tenant, erased=receipt.at)

    async def empty(self, tell: Callable[[str, int], None] = lambda _table, _rows: None) -> dict[str, int]:
        """Delete in short transactions what erased tenants had; return how many rows of which table.

        ``tell`` hears of each batch. It may be interrupted and called again; when nothing is left, the tenant's
        erasure is done and on record.
        """
        access = self.tenants.access
        async with access.database.system_transaction(write=False) as tx:
            pending = await list_unemptied(tx)
        deleted: Counter[str] = Counter()
        for tenant in pending:
            access.forget_tenant(
                tenant.name
            )  # another process, or a command on the host, may have ordered it
            rows = await self._empty(tenant.name, tell)
            deleted.update(rows)
            settled = (
                tenant.erased is not None and tenant.erased + timedelta(seconds=SETTLED_S) <= access.now()
            )
            if not rows and settled:
                async with access.database.system_transaction() as tx:
                    await mark_emptied(tx, tenant.name, access.now())
                    event = access.audit.new_event(
                        HOST, "tenant.emptied", OUTCOME_OK, None, tenant=tenant.name
                    )
                    await access.audit.record_with(tx, event)
        return dict(deleted)

    async def _empty(self, name: str, tell: Callable[[str, int], None]) -> dict[str, int]:
        deleted: Counter[str] = Counter()
        for table in emptied_tables():
            rows = _ROWS
            while rows == _ROWS:
                async with self.tenants.access.database.system_transaction() as tx:
                    rows = await remove_rows(tx, table, name, limit=_ROWS)
                if rows:
                    deleted[table.name] += rows
                    tell(table.name, rows)
                    await asyncio.sleep(_PAUSE_S)
        return dict(deleted)
