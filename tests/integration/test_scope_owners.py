"""A scope that a caller makes for itself is an unknown one to every other key and end user, on both databases."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import func, select

from app.core.access import Caller, Role
from app.core.content.handles import Handle
from app.core.errors import NotFoundError
from app.services.vault.vault import VaultReceipt
from app.store.database import Database
from app.store.insertion import insert_absent
from app.store.vault.tables import gateway_binding, gateway_signed
from tests.factories import Vault, caller_of, open_vault

ADA = Handle("PERSON", 1)
OTHERS: dict[str, Callable[[Caller], Caller]] = {
    "another key": lambda caller: replace(caller, key_id="ffffffff"),
    "another end user": lambda caller: replace(caller, end_user="bob"),
    "no end user": lambda caller: replace(caller, end_user=None),
    "an end user of no name": lambda caller: replace(caller, end_user=""),
    "an end user named like the key": lambda caller: replace(caller, end_user=caller.key_id),
}


async def store_privately(vault: Vault, caller: Caller, scope: str, *names: str) -> VaultReceipt:
    """Store ``names`` in a scope of the caller alone."""
    return await vault.store(caller, scope, *names, owner=vault.service.identity(caller))


@pytest.mark.parametrize("who", OTHERS)
async def test_another_caller_meets_an_unknown_scope(database: Database, tenant: str, who: str) -> None:
    ada = replace(caller_of(tenant), end_user="ada")
    other = OTHERS[who](ada)
    async with open_vault(database) as vault:
        assert (await store_privately(vault, ada, "talk", "Ada")).handles == [ADA]
        assert await vault.service.read(other, "talk", [ADA]) == {}
        assert await vault.service.known(other, "talk", [ADA]) == set()
        with pytest.raises(NotFoundError, match=r"There is no such scope\."):
            await vault.store(other, "talk", "Ada")
        with pytest.raises(NotFoundError):
            await vault.service.entries(other, "talk", originals=True)
        with pytest.raises(NotFoundError):
            await vault.service.get_scope(replace(other, roles=frozenset({Role.INVOKER})), "talk")
        # The control: the owner itself, and a scope that belongs to the tenant.
        assert (await vault.service.read(ada, "talk", [ADA]))[ADA].text == "Ada"
        assert (await vault.store(ada, "talk", "Ada")).handles == [ADA]
        assert (await vault.service.entries(ada, "talk", originals=True)).items[0].original == "Ada"
        await vault.store(ada, "shared", "Ada")
        assert (await vault.service.read(other, "shared", [ADA]))[ADA].text == "Ada"


async def test_writers_of_one_moment_cannot_share_a_new_scope(database: Database, tenant: str) -> None:
    ada, bob = (replace(caller_of(tenant), end_user=name) for name in ("ada", "bob"))
    async with open_vault(database) as vault:
        await vault.store(ada, "other", "Zoe")
        await store_privately(vault, ada, "talk", "Ada")
        with pytest.raises(NotFoundError):
            await store_privately(vault, bob, "talk", "Bob")
        assert (await store_privately(vault, ada, "talk", "Eve")).handles == [Handle("PERSON", 2)]


async def test_an_owned_scope_stays_owned_when_it_is_erased_and_used_again(
    database: Database, tenant: str
) -> None:
    ada, bob = (replace(caller_of(tenant), end_user=name) for name in ("ada", "bob"))
    async with open_vault(database) as vault:
        await store_privately(vault, ada, "talk", "Ada")
        moment = {"expires": datetime(2090, 1, 1, tzinfo=UTC)}
        async with database.transaction(tenant) as tx:
            row = {"tenant": tenant, "lookup": b"id", "scope": "talk", "owner": "o", "provider": "main"}
            await insert_absent(tx, gateway_binding, {**row, **moment, "handles": ["PERSON_1"]})
            row = {"tenant": tenant, "lookup": b"id", "scope": "talk", "ciphertext": b"sealed"}
            await insert_absent(tx, gateway_signed, {**row, "created": datetime.now(UTC)})
        await vault.service.erase_scope(caller_of(tenant), "talk")
        async with database.transaction(tenant, write=False) as tx:
            for table in (gateway_binding, gateway_signed):
                rows = select(func.count()).select_from(table).where(table.c.tenant == tenant)
                assert (await tx.execute(rows)).scalar_one() == 0
        with pytest.raises(NotFoundError):
            await vault.store(bob, "talk", "Bob")
        assert (await store_privately(vault, ada, "talk", "Eve")).handles == [Handle("PERSON", 2)]
