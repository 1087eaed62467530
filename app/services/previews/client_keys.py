"""The keys of a tenant as its operators see them: who a client is, never what its key is."""

from collections.abc import Sequence

from app.core.access import Caller, Role
from app.core.errors import NotFoundError
from app.core.request import RequestInfo
from app.services.access.access import AccessService
from app.store.access.access import KeyInfo, find_key, list_keys

MOST_LISTED = 500


async def list_clients(
    access: AccessService, caller: Caller, request: RequestInfo | None = None
) -> Sequence[KeyInfo]:
    """Return the first keys of the caller's tenant that count now, by id; needs the role operator."""
    async with access.audit.refusals(caller, "client.list", request):
        caller.require(Role.OPERATOR)
    moment = access.now()
    async with access.database.transaction(caller.tenant, write=False) as tx:
        keys = await list_keys(tx, caller.tenant, limit=MOST_LISTED)
    return [info.settled(moment) for info in keys if info.state(moment) not in {"revoked", "expired"}]


async def find_client(
    access: AccessService, caller: Caller, key_id: str, request: RequestInfo | None = None
) -> KeyInfo:
    """Return a key of the caller's tenant, or raise NotFoundError; needs the role operator."""
    async with access.audit.refusals(caller, "client.get", request):
        caller.require(Role.OPERATOR)
        async with access.database.transaction(caller.tenant, write=False) as tx:
            stored = await find_key(tx, key_id, tenant_name=caller.tenant)
        if stored is None:
            raise NotFoundError("There is no such key.")
    return stored.info.settled(access.now())


def caller_of(info: KeyInfo) -> Caller:
    """Return the caller that a key makes."""
    return Caller(info.tenant, info.id, info.roles, key_name=info.name)
