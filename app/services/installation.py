"""Look at a whole installation at once: its keys, mark, tenants, servers and processes. Nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.engines.cipher import KeyProvider, KeyRingError
from app.services.vault.keyring import KeyringService
from app.services.vault.mark import MarkKeeper, Standing
from app.store.access.access import find_key
from app.store.access.tenants import Tenant, list_tenants
from app.store.database import Database
from app.store.servers import ServerState, list_server_states
from app.store.vault.mark_files import MarkUnreadableError
from app.store.vault.serving_processes import ServingProcess, list_processes

MOST_TENANTS = 1000


@dataclass(frozen=True, slots=True)
class KeysInUse:
    """The key ring beside what the database needs of it; ``left`` are data keys under other versions than the active.

    ``fault`` is one sentence: the ring does not fit this database.
    """

    versions: tuple[int, ...]
    active: int
    left: int
    fault: str | None


@dataclass(frozen=True, slots=True)
class InstallationView:
    """What one look shows; ``mark`` is the sentence of a fault where the mark could not be read."""

    keys: KeysInUse
    mark: Standing | str
    tenants: Sequence[Tenant]
    servers: Sequence[tuple[str, str, ServerState]]
    processes: Sequence[ServingProcess]
    key_tenant: str | None
    """Tenant of the key that was asked for; None: there is no such key."""


async def view_installation(
    database: Database, provider: KeyProvider, marks: MarkKeeper, key_id: str | None = None
) -> InstallationView:
    """Read what the database and its surroundings say of the installation; the schema must be this release's.

    ``key_id``: look up whose this API key is.
    """
    async with database.system_transaction(write=False) as tx:
        tenants = await list_tenants(tx, after=None, limit=MOST_TENANTS)
        servers = await list_server_states(tx)
        processes = await list_processes(tx)
        key = await find_key(tx, key_id, tenant_name=None) if key_id is not None else None
    mark: Standing | str
    try:
        mark = await marks.standing()
    except MarkUnreadableError as error:
        mark = str(error)
    return InstallationView(
        await _keys(database, provider),
        mark,
        tenants,
        servers,
        processes,
        key.info.tenant if key is not None else None,
    )


async def _keys(database: Database, provider: KeyProvider) -> KeysInUse:
    keyring = KeyringService(database, provider)
    fault: str | None = None
    try:
        await keyring.check()
    except KeyRingError as error:
        fault = str(error)
    return KeysInUse(tuple(sorted(provider.versions)), provider.active, await keyring.left(), fault)
