"""How many people and groups the identity provider of a tenant mirrors here."""

from typing import NamedTuple

from app.core.access import Caller, Role
from app.core.request import RequestInfo
from app.services.audit.audit import AuditService
from app.store.access.provisioned import count_entries, count_inactive


class MirrorCounts(NamedTuple):
    """People who are ``active``, people who are not, and groups; without those that were removed."""

    active: int
    inactive: int
    groups: int


async def mirror_counts(
    audit: AuditService, caller: Caller, request: RequestInfo | None = None
) -> MirrorCounts:
    """Return the counts of the caller's tenant; needs the role key custodian."""
    async with audit.refusals(caller, "directory.count", request):
        caller.require(Role.KEY_CUSTODIAN)
    async with audit.database.transaction(caller.tenant, write=False) as tx:
        people = await count_entries(tx, caller.tenant, "User")
        inactive = await count_inactive(tx, caller.tenant)
        return MirrorCounts(people - inactive, inactive, await count_entries(tx, caller.tenant, "Group"))
