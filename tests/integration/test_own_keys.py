"""The key of a tenant's own: read, kept, wrapped again, told of, missing; in processes that share a database."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app import __version__
from app.core.errors import ConflictError, StoreUnavailableError
from app.core.events import Changed
from app.engines.cipher import KeyKeeper, KeyRing, RecordKeys
from app.services.access.access import HOST
from app.services.access.tenant_keys import TenantKeys
from app.services.access.tenants import TenantService
from app.services.vault.keyring import KeyringService
from app.services.vault.mark import MarkKeeper
from app.services.vault.replay import ReplayService
from app.services.vault.tenant_erasure import TenantErasure
from app.store.changes import EVERYTHING, Changes
from app.store.database import Database
from app.store.vault.keys import DIGEST_PURPOSE, add_tenant_key, find_tenant_key, list_keyless
from app.store.vault.mark_files import MarkFolder
from app.store.vault.serving_processes import ServingProcess, announce_process, remove_process
from tests.factories import TEST_RING, as_owner, erasure_sink, random_ring
from tests.integration.access_setup import Replica, replica_on


def process_of(replica: Replica, ring: KeyRing = TEST_RING) -> TenantKeys:
    """Give a replica the keys of tenants, as the whole service does."""
    return TenantKeys.over(replica.database, ring, replica.keys)


def tenants_of(replica: Replica, own: TenantKeys) -> TenantService:
    return TenantService(replace(replica.access, tenant_keys=own))


def admitted(replica: Replica, name: str) -> bool:
    """Return whether digests of a tenant can be made as things are."""
    try:
        return bool(replica.audit.scope_ref(name, "talk"))
    except StoreUnavailableError:
        return False


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def test_no_digest_is_made_before_the_key_is_read_and_none_costs_a_read(
    database: Database, tenant: str
) -> None:
    async with replica_on(database) as replica:
        own = process_of(replica)
        await tenants_of(replica, own).create(HOST, f"{tenant}-new")
        with pytest.raises(StoreUnavailableError, match="not read yet"):
            replica.audit.scope_ref(f"{tenant}-new", "talk")
        await replica.keys.ready(f"{tenant}-new")
        replica.statements.clear()
        await replica.keys.ready(f"{tenant}-new")
        first = replica.audit.scope_ref(f"{tenant}-new", "talk")
        assert replica.statements == []
        assert first != RecordKeys(replica.keys._root).digest(f"{tenant}-new", b"talk")
        own.changed(Changed(EVERYTHING))
        assert replica.audit.scope_ref(f"{tenant}-new", "talk") == first, "requests under way go on"
        await replica.keys.ready(f"{tenant}-new")
        assert replica.statements
        assert replica.audit.scope_ref(f"{tenant}-new", "talk") == first


async def test_equal_values_of_two_tenants_and_of_one_after_its_erasure_have_other_digests(
    database: Database, tenant: str
) -> None:
    names = [f"{tenant}-{number}" for number in range(2)]
    async with replica_on(database) as replica:
        tenants = tenants_of(replica, process_of(replica))
        digests = []
        for name in names:
            await tenants.create(HOST, name)
            await replica.keys.ready(name)
            digests += [replica.audit.scope_ref(name, "talk"), replica.keys.blind(name, b"Ada").hex()]
        await tenants.disable(HOST, names[0])
        await TenantErasure(tenants, erasure_sink(None)).erase(HOST, names[0])
        for _ in range(2):
            replica.keys.drop(names[0])
            await replica.keys.ready(names[0])
            digests += [replica.audit.scope_ref(names[0], "talk"), replica.keys.blind(names[0], b"Ada").hex()]
        assert len(set(digests)) == 8


async def test_every_process_drops_the_key_of_a_tenant_that_another_one_erases(
    database: Database, tenant: str
) -> None:
    name = f"{tenant}-new"
    async with replica_on(database) as here, replica_on(database) as there:
        tenants, own = tenants_of(here, process_of(here)), process_of(there)
        await tenants.create(HOST, name)
        for keys in (here.keys, there.keys):
            await keys.ready(name)
        assert here.audit.scope_ref(name, "talk") == there.audit.scope_ref(name, "talk")
        changes = Changes(database)
        changes.subscribe(own.changed)
        async with changes.running():
            await tenants.disable(HOST, name)
            await until(lambda: not admitted(there, name))
            await there.keys.ready(name)
            await TenantErasure(tenants, erasure_sink(None)).erase(HOST, name)
            await until(lambda: not admitted(there, name))
        assert not admitted(here, name)


async def test_a_key_that_is_gone_from_a_living_tenant_is_no_other_key(
    database: Database, tenant: str
) -> None:
    name = f"{tenant}-new"
    async with replica_on(database) as replica:
        own = process_of(replica)
        await tenants_of(replica, own).create(HOST, name)
        await as_owner(database, "DELETE FROM tenant_key WHERE tenant = :name", name=name)
        with pytest.raises(StoreUnavailableError, match="is missing: restore a backup"):
            await replica.keys.ready(name)
        with pytest.raises(StoreUnavailableError):
            replica.audit.scope_ref(name, "talk")


async def test_what_could_not_be_stored_leaves_no_key_behind(
    database: Database, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{tenant}-new"
    async with replica_on(database) as replica:
        tenants = tenants_of(replica, process_of(replica))

        async def fail(*_given: Any) -> None:
            raise StoreUnavailableError("no record")

        with monkeypatch.context() as patched:
            patched.setattr(type(replica.audit), "record_with", fail)
            with pytest.raises(StoreUnavailableError, match="no record"):
                await tenants.create(HOST, name)
        assert not admitted(replica, name)
        await tenants.create(HOST, name)
        await replica.keys.ready(name)
        before = replica.audit.scope_ref(name, "talk")
        with pytest.raises(ConflictError):
            await tenants.create(HOST, name)
        assert replica.audit.scope_ref(name, "talk") == before


async def test_no_tenant_is_made_while_a_process_of_another_release_serves(own_database_url: str) -> None:
    async with Database(own_database_url) as database, replica_on(database) as replica:
        tenants = tenants_of(replica, process_of(replica))
        for release, refused in (("0.0.1", True), (None, True), (__version__, False)):
            process = ServingProcess("other", "elsewhere", TEST_RING.versions, release)
            async with database.system_transaction() as tx:
                await announce_process(tx, process)
            if refused:
                with pytest.raises(ConflictError, match="another release serves on elsewhere"):
                    await tenants.create(HOST, "acme")
            else:
                await tenants.create(HOST, "acme")
            async with database.system_transaction() as tx:
                await remove_process(tx, ["other"])


async def test_a_key_that_is_wrapped_again_makes_the_same_digests(own_database_url: str) -> None:
    grown = KeyRing({**TEST_RING.keys, 2: random_ring().keys[1]}, 2)
    async with Database(own_database_url) as database, replica_on(database) as replica:
        tenants = tenants_of(replica, process_of(replica))
        names = [f"acme-{number}" for number in range(3)]
        for name in names:
            await tenants.create(HOST, name)
            await replica.keys.ready(name)
        before = [replica.audit.scope_ref(name, "talk") for name in names]
        receipt = await KeyringService(database, grown).rewrap()
        assert (receipt.rewrapped, receipt.left) == (len(names) + 1, 0)
        async with database.connection() as tx:
            versions = set((await tx.execute(text("SELECT kek_version FROM tenant_key"))).scalars())
        assert versions == {2}
        # With the old version alone nothing is read any more.
        process_of(replica)
        for name in names:
            replica.keys.drop(name)
            with pytest.raises(StoreUnavailableError, match="version 2 is not in the key ring"):
                await replica.keys.ready(name)
        process_of(replica, grown)
        for name in names:
            await replica.keys.ready(name)
        assert [replica.audit.scope_ref(name, "talk") for name in names] == before


async def test_a_key_that_came_back_with_a_backup_is_destroyed_again(
    own_database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "erasures.jsonl"
    async with Database(own_database_url) as database, replica_on(database) as replica:
        tenants = tenants_of(replica, process_of(replica))
        for name in ("acme", "stays"):
            await tenants.create(HOST, name)
            await replica.keys.ready(name)
        digest = replica.audit.scope_ref("acme", "talk")
        async with database.system_transaction(write=False) as tx:
            version, wrapped = (await find_tenant_key(tx, "acme", DIGEST_PURPOSE)) or (0, b"")
        await tenants.disable(HOST, "acme")
        await TenantErasure(tenants, erasure_sink(file)).erase(HOST, "acme")
        # The database as its backup has it.
        await as_owner(database, "UPDATE tenant SET erased = NULL, disabled = NULL WHERE id = 'acme'")
        await as_owner(database, "DELETE FROM erasure WHERE tenant = 'acme'")
        async with database.system_transaction() as tx:
            await add_tenant_key(tx, "acme", DIGEST_PURPOSE, version, wrapped, replica.clock.now())
        await replica.keys.ready("acme")
        assert replica.audit.scope_ref("acme", "talk") == digest
        marks = MarkKeeper(database, MarkFolder(tmp_path, shared=False), database.address)
        replay = ReplayService(database, replica.audit, KeyKeeper(TEST_RING), marks, [file])
        assert (await replay.replay(HOST, [file])).repeated == 1
        async with database.system_transaction(write=False) as tx:
            assert await list_keyless(tx, DIGEST_PURPOSE) == ["acme"]
        await replica.keys.ready("acme")
        assert replica.audit.scope_ref("acme", "talk") != digest
