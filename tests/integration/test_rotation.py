"""Keys rotate while the service serves, and a start with a wrong ring is refused."""

import asyncio
import secrets
from pathlib import Path

import pytest
from sqlalchemy import event, text

from app.core.access import Role
from app.core.content.handles import Handle
from app.core.errors import ForbiddenError, StoreUnavailableError
from app.engines.cipher import KeyRing, KeyRingError
from app.engines.ring_file import RingFile
from app.services.audit.audit import AuditQuery
from app.services.vault import restore_epoch
from app.services.vault.keyring import KeyringService
from app.store.database import Database
from app.store.vault.numbering import STABLE_ORDINALS
from app.store.vault.serving_processes import list_processes
from tests.factories import PATIENT, caller_of, open_vault, random_ring

SCOPES = 120


async def test_rotation_under_load_loses_nothing_and_lets_the_old_key_go(own_database_url: str) -> None:
    caller, first = caller_of("acme"), random_ring()
    both = first.with_new_version().activated(2)
    old, new = Database(own_database_url, patience=PATIENT), Database(own_database_url, patience=PATIENT)
    async with open_vault(old, ring=first.with_new_version()) as distributed:
        for number in range(SCOPES):
            await distributed.store(caller, f"talk {number}", f"name {number}")
    async with open_vault(old, ring=KeyRing(both.keys, 1)) as before, open_vault(new, ring=both) as after:
        wrong: list[object] = []
        stop = asyncio.Event()

        async def restore() -> int:
            reads = 0
            while not stop.is_set():
                number = secrets.randbelow(SCOPES)
                texts = await after.texts(caller, f"talk {number}", [Handle("PERSON", 1)])
                wrong.extend(found for found in texts if found != f"name {number}")
                reads += 1
            return reads

        async def write() -> int:
            writes = 0
            while not stop.is_set():
                await before.store(caller, f"new {writes}", "Ada", f"name {writes}")
                await after.store(caller, f"talk {writes % SCOPES}", f"later {writes}")
                writes += 1
                await asyncio.sleep(0.002)
            return writes

        tasks = [asyncio.create_task(restore()), asyncio.create_task(write())]
        await asyncio.sleep(0.2)
        receipt = await after.service.rewrap(caller)
        assert receipt.rewrapped >= SCOPES + 1
        stop.set()
        reads, writes = await asyncio.gather(*tasks)
        assert (wrong, reads > 0, writes > 0) == ([], True, True)
        # The last processes that still wrapped under the old version are gone by now; one more pass gets theirs.
        assert (await after.service.rewrap(caller)).left == 0
    async with open_vault(new, ring=both.without(1)) as alone:
        for number in range(SCOPES):
            assert await alone.texts(caller, f"talk {number}", [Handle("PERSON", 1)]) == [f"name {number}"]
        for number in range(writes):
            assert await alone.texts(caller, f"new {number}", [Handle("PERSON", 2)]) == [f"name {number}"]
    await old.close()
    await new.close()


async def test_a_start_without_a_key_that_is_in_use_is_refused(own_database_url: str) -> None:
    caller, ring = caller_of("acme"), random_ring()
    database = Database(own_database_url, patience=PATIENT)
    async with open_vault(database, ring=ring) as vault:
        await vault.store(caller, "talk", "Ada")
    grown = ring.with_new_version().activated(2)
    with pytest.raises(KeyRingError, match="version 1 is not in the key ring, but 2 keys depend on it"):
        await KeyringService(database, grown.without(1)).start()
    with pytest.raises(KeyRingError, match="version 1 is not the key that wrapped this"):
        await KeyringService(database, KeyRing({1: secrets.token_bytes(32)}, 1)).start()
    await KeyringService(database, ring).start()
    await KeyringService(database, ring).check()
    with pytest.raises(KeyRingError):
        await KeyringService(database, grown).check()
    await database.close()


async def test_a_start_counts_no_keys_however_many_there_are(own_database_url: str) -> None:
    first = random_ring()
    both = first.with_new_version().activated(2)
    database = Database(own_database_url, patience=PATIENT)
    for ring in (KeyRing(both.keys, 1), both):
        async with open_vault(database, ring=ring) as vault:
            for number in range(3):
                await vault.store(caller_of("acme"), f"talk {ring.active} {number}", "a name")
    statements: list[str] = []
    event.listen(
        database._engine.sync_engine,
        "before_cursor_execute",
        lambda *given: statements.append(" ".join(given[2].split())),
    )
    await KeyringService(database, both).start()
    about_scopes = [statement for statement in statements if "FROM scope" in statement]
    # One look for each of the two versions, and one that finds no more.
    assert len(about_scopes) == 3
    assert all("LIMIT" in statement and "count(" not in statement for statement in about_scopes)
    for missing in (1, 2):
        ring = KeyRing(
            {version: key for version, key in both.keys.items() if version != missing}, 3 - missing
        )
        with pytest.raises(KeyRingError, match=f"version {missing} is not in the key ring, but [34] keys"):
            await KeyringService(database, ring).start()
    await database.close()


async def test_a_version_that_left_the_ring_unused_takes_no_other_canary_with_it(
    own_database_url: str,
) -> None:
    first = random_ring()
    three = first.with_new_version().activated(2).with_new_version().activated(3)
    database = Database(own_database_url, patience=PATIENT)
    for active in (1, 2, 3):
        async with open_vault(database, ring=KeyRing(three.keys, active)) as vault:
            await vault.service.rewrap(caller_of("acme"))
    await KeyringService(database, three.without(2)).start()
    with pytest.raises(KeyRingError, match="version 1 is not the key that wrapped this"):
        await KeyringService(database, KeyRing({**three.keys, 1: secrets.token_bytes(32)}, 3)).start()
    await database.close()


async def test_many_first_starts_agree_on_one_audit_key(own_database_url: str) -> None:
    ring, databases = random_ring(), [Database(own_database_url, patience=PATIENT) for _ in range(4)]
    keys = await asyncio.gather(*(KeyringService(database, ring).start() for database in databases))
    assert len({key.digest("acme", b"x") for key in keys}) == 1
    for database in databases:
        await database.close()


async def test_a_scope_whose_key_is_missing_fails_alone_and_closed(own_database_url: str) -> None:
    caller, ring = caller_of("acme"), random_ring()
    grown = ring.with_new_version().activated(2)
    database = Database(own_database_url, patience=PATIENT)
    async with open_vault(database, ring=ring) as vault:
        async with open_vault(database, ring=grown) as ahead:
            receipt = await ahead.store(caller, "ahead", "Ada")
        with pytest.raises(StoreUnavailableError, match="key of this scope") as refused:
            await vault.service.read(caller, "ahead", receipt.handles)
        assert refused.value.retry_after_s == 1.0, "clients that are told to wait no time ask again at once"
        results = await asyncio.gather(
            vault.store(caller, "mine", "Bob"), vault.store(caller, "ahead", "Eve"), return_exceptions=True
        )
        assert not isinstance(results[0], BaseException)
        assert isinstance(results[1], StoreUnavailableError)
    await database.close()


async def test_rotation_needs_the_key_custodian(own_database_url: str) -> None:
    database = Database(own_database_url, patience=PATIENT)
    async with open_vault(database, ring=random_ring()) as vault:
        with pytest.raises(ForbiddenError):
            await vault.service.rewrap(caller_of("acme", Role.OPERATOR))
    await database.close()


async def test_a_process_without_a_key_that_others_use_is_not_ready(own_database_url: str) -> None:
    ring, database = random_ring(), Database(own_database_url, patience=PATIENT)
    left_behind = KeyringService(database, ring)
    await left_behind.start()
    await left_behind.check()
    await KeyringService(database, ring.with_new_version().activated(2)).start()
    with pytest.raises(KeyRingError):
        await left_behind.check()
    await database.close()


async def test_other_processes_hear_of_a_ring_as_soon_as_it_was_read_again(
    own_database_url: str, tmp_path: Path
) -> None:
    ring, path = random_ring(), tmp_path / "ring.json"
    ring.save(path)
    async with Database(own_database_url, patience=PATIENT) as database:
        service = KeyringService(database, RingFile(path, ring))
        await service.start()
        await service.announce()

        async def heard() -> list[frozenset[int]]:
            async with database.system_transaction(write=False) as tx:
                return [process.versions for process in await list_processes(tx)]

        assert await heard() == [{1}]
        assert not await service.reread() and await heard() == [{1}]
        ring.with_new_version().save(path)
        assert await service.reread() and await heard() == [{1, 2}]


async def test_ordinals_jump_after_a_restore_from_backup(
    own_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore_epoch, "BATCH", 2)
    caller, database = caller_of("acme"), Database(own_database_url, patience=PATIENT)
    async with open_vault(database, ring=random_ring()) as vault:
        for scope in ("talk", "a", "b", "c", "z"):
            await vault.store(caller, scope, "Ada")
        assert await vault.service.restore_epoch(caller) == 1
        assert (await vault.store(caller, "talk", "Ada", "Bob")).handles == [
            Handle("PERSON", 1),
            Handle("PERSON", 2_000_001),
        ]
        lost = await vault.store(caller, "made after the backup", "Eve", ("EMAIL", "a@b.c"))
        assert lost.handles == [Handle("PERSON", 2_000_001), Handle("EMAIL", 2_000_001)]
        assert await vault.service.restore_epoch(caller) == 2
        assert (await vault.store(caller, "talk", "Zoe")).handles == [Handle("PERSON", 4_000_001)]
        noted = (await vault.audit.query(caller, AuditQuery(action="vault.restore_epoch"))).items
        assert [(event.outcome, dict(event.details)) for event in noted] == [
            ("ok", {"epoch": 2}),
            ("ok", {"epoch": 1}),
        ]
    async with database.system_transaction(write=False) as tx:
        assert {row.restore_epoch for row in await tx.execute(text("SELECT restore_epoch FROM scope"))} == {2}
    await database.close()


async def test_no_handle_of_a_stable_scope_is_one_of_another_scope(own_database_url: str) -> None:
    caller, database = caller_of("acme"), Database(own_database_url, patience=PATIENT)
    async with open_vault(database, ring=random_ring()) as vault:

        async def store(*names: str) -> list[Handle]:
            receipt = await vault.store(caller, "stable", *names, owner="stable", above=STABLE_ORDINALS)
            return receipt.handles

        assert await store("Acme", "Bolt") == [Handle("PERSON", 1_000_001), Handle("PERSON", 1_000_002)]
        assert (await vault.store(caller, "talk", "Ada")).handles == [Handle("PERSON", 1)]
        await vault.service.restore_epoch(caller)
        ordinal = (await vault.store(caller, "talk", "Eve")).handles[0].ordinal
        assert ordinal > 1_000_002
        assert await store("Core") == [Handle("PERSON", ordinal + STABLE_ORDINALS)]
    await database.close()
