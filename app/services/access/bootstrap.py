"""The first key of an installation, which can create all the others.

Development: the key belongs to the tenant ``default`` and has all roles, including combinations that are otherwise
refused; it also acts for all tenants, so that one key is enough to try everything. Both are recorded.
Production: a configured key belongs to ``default`` and has only the role key custodian: it creates the working keys,
and tenants are created on the host. A production start refuses a first key that was made in development.
"""

import logging
from datetime import datetime
from typing import Final, Literal

from app.core.access import DEFAULT_TENANT, FIRST_START, SYSTEM_TENANT, ApiKey, Caller, Role, check_union
from app.core.errors import ConflictError, InvalidArgumentsError, StoreUnavailableError
from app.services.access.access import AccessService, grant_details
from app.services.access.custody import details_of
from app.store.access.access import KeyInfo, StoredKey, add_key, count_keys, find_key, list_keys_made_by
from app.store.access.tenants import Tenant, find_tenant
from app.store.audit.audit import Transaction

Environment = Literal["development", "production"]
BOOTSTRAP: Final = Caller(SYSTEM_TENANT, FIRST_START, frozenset())
"""The actor that makes the first key, in the audit record and in the key's ``created_by``."""

_ROLES: Final[dict[Environment, frozenset[Role]]] = {
    "development": frozenset(Role),
    "production": frozenset({Role.KEY_CUSTODIAN}),
}

log = logging.getLogger("sluice.access")


async def bootstrap(access: AccessService, given_key: str | None, environment: Environment) -> ApiKey | None:
    """Make the tenants ``default`` and ``system`` and the first key; any number of processes may do so at once.

    Return a key only if this call generated one (development, no key configured and none stored): show it once.
    A configured key is stored as it is; if it was rotated or revoked later, that is never undone.
    """
    supplied = ApiKey.parse(given_key) if given_key is not None else None
    if given_key is not None and supplied is None:
        raise InvalidArgumentsError(
            "SLUICE_AUTH__BOOTSTRAP_KEY must be slc_<8 lower-case hex digits>_<43 characters of base64url>."
        )
    if supplied is not None:
        await _claim(access, supplied)
    try:
        generated = await access.database.retried(lambda: _attempt(access, supplied, environment))
    finally:
        # Read again with the first request: the key of an attempt that failed is none.
        access.forget_tenant(DEFAULT_TENANT)
    if generated is not None:
        await _claim(access, generated)
    return generated


async def list_first_keys(access: AccessService) -> list[str]:
    """Return the ids of the first keys of this installation that are still good."""
    async with access.database.system_transaction(write=False) as tx:
        made = await list_keys_made_by(tx, BOOTSTRAP.key_id)
    return sorted(info.id for info in made if _is_alive(info, access.now()))


async def _claim(access: AccessService, key: ApiKey) -> None:
    """Tell the directory where the first key is; while it is away, a service starts all the same."""
    if access.directory is None:
        return
    try:
        holder = await access.directory.claim_key(key.id, DEFAULT_TENANT)
    except StoreUnavailableError:
        log.warning("The directory does not answer, so it may not know the first key, %s, yet.", key.id)
        return
    if holder != access.directory.shard:
        raise ConflictError(f"The shard {holder} has a key with the id {key.id}: generate a new first key.")


async def _attempt(access: AccessService, supplied: ApiKey | None, environment: Environment) -> ApiKey | None:
    moment = access.now()
    generated: ApiKey | None = None
    async with access.database.system_transaction() as tx:
        for name in (SYSTEM_TENANT, DEFAULT_TENANT):
            await _ensure_tenant(access, tx, Tenant(name, moment, BOOTSTRAP.key_id))
        # A process that starts at the same time waits here and then sees the key that this transaction made.
        await find_tenant(tx, DEFAULT_TENANT, lock=True)
        if supplied is not None:
            await _adopt(access, tx, supplied, environment)
        elif environment == "development" and await count_keys(tx) == 0:
            generated = ApiKey.generate()
            await _store(access, tx, generated, environment)
        first_keys = [
            info for info in await list_keys_made_by(tx, BOOTSTRAP.key_id) if _is_alive(info, moment)
        ]
        if environment == "production":
            _refuse_development_keys(first_keys)
    if environment == "development":
        access.authority.development_keys = frozenset(info.id for info in first_keys)
    return generated


async def _ensure_tenant(access: AccessService, tx: Transaction, tenant: Tenant) -> None:
    if await access.store_tenant(tx, tenant):
        events = access.events_of(BOOTSTRAP, "tenant.create", tenant.name, None, {})
        await access.audit.record_with(tx, *events)


async def _adopt(access: AccessService, tx: Transaction, supplied: ApiKey, environment: Environment) -> None:
    stored = await find_key(tx, supplied.id, tenant_name=None)
    if stored is None:
        await _store(access, tx, supplied, environment)
        return
    matches = supplied.matches(stored.digest) or (
        stored.previous_digest is not None and supplied.matches(stored.previous_digest)
    )
    if not matches and stored.info.created_by != BOOTSTRAP.key_id:
        raise ConflictError(
            f"SLUICE_AUTH__BOOTSTRAP_KEY has the id of another key, {supplied.id}: generate a new one."
        )
    if not matches or not _is_alive(stored.info, access.now()):
        log.warning(
            "The configured bootstrap key %s was rotated or has ended; it stays as it is.", supplied.id
        )


async def _store(access: AccessService, tx: Transaction, key: ApiKey, environment: Environment) -> None:
    info = KeyInfo(
        tenant=DEFAULT_TENANT,
        id=key.id,
        name="bootstrap",
        roles=_ROLES[environment],
        cidrs=(),
        created=access.now(),
        created_by=BOOTSTRAP.key_id,
    )
    await add_key(tx, StoredKey(info, key.digest))
    details = {**grant_details(info), **details_of(info, exempt=True), "environment": environment}
    await access.audit.record_with(
        tx, *access.events_of(BOOTSTRAP, "key.create", DEFAULT_TENANT, None, details)
    )


def _refuse_development_keys(first_keys: list[KeyInfo]) -> None:
    for info in first_keys:
        try:
            check_union(info.roles)
        except InvalidArgumentsError:
            raise ConflictError(
                f"The key {info.id} was made in development and has all roles: "
                f"run `sluice keys revoke {info.id}` before a start in production."
            ) from None


def _is_alive(info: KeyInfo, moment: datetime) -> bool:
    return info.revoked is None and (info.expires is None or info.expires > moment)
