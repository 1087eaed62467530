"""The state of the key ring: which versions there are, who holds them, and what is left to re-wrap."""

from typing import NamedTuple

from app.core.access import Caller, Role
from app.core.errors import ForbiddenError
from app.core.request import RequestInfo
from app.services.access.access import Authority
from app.services.vault.vault import VaultService
from app.store.vault.serving_processes import ServingProcess, list_processes


class RingState(NamedTuple):
    """``left`` counts the keys under versions other than the active one, up to 10,000 of each version."""

    active: int
    versions: tuple[int, ...]
    processes: tuple[ServingProcess, ...]
    left: int


async def ring_state(
    vault: VaultService, authority: Authority, caller: Caller, request: RequestInfo | None = None
) -> RingState:
    """Return the state of the installation's key ring, for key custodians whose roles apply in every tenant."""
    async with vault.audit.refusals(caller, "vault.key_ring", request):
        caller.require(Role.KEY_CUSTODIAN)
        if not authority.reaches_all(caller):
            raise ForbiddenError("The key ring is the installation's: use a key of the tenant system.")
    keyring = vault.keyring
    async with vault.database.system_transaction(write=False) as tx:
        processes = await list_processes(tx)
    provider = keyring.provider
    return RingState(
        provider.active, tuple(sorted(provider.versions)), tuple(processes), await keyring.left()
    )
