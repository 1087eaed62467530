"""Pages end where they should, and times count to the very moment: the queries below the services."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.core.access import Caller, Role
from app.core.content.handles import Handle
from app.core.errors import InvalidArgumentsError, NotFoundError
from app.services.access.sessions import SessionService
from app.services.audit.audit import AuditQuery
from app.store.access.access import KeyInfo, StoredKey, add_key, find_key, list_keys, remove_old_secrets
from app.store.access.access import update_key_secret as rotate
from app.store.access.policies import StoredPolicy, add_policy, find_policy, list_policies
from app.store.access.sessions import StoredSession, add_session, find_session, remove_idle_sessions
from app.store.access.tenants import Tenant, add_tenant, list_tenants
from app.store.audit.audit import Transaction
from app.store.catalog.descriptions import find_disclosure, put_disclosures, remove_expired_disclosures
from app.store.database import Database
from app.store.pipelines import StoredPipeline, add_pipeline, list_pipeline_versions, list_pipelines
from app.store.vault.numbering import EPOCH_STRIDE, ScopeRow
from tests.factories import PATIENT, caller_of, open_vault

NOON = datetime(2025, 10, 4, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)


@pytest.fixture
async def tx(sqlite_database_url: str, tenant: str) -> AsyncIterator[Transaction]:
    """Return a transaction with a tenant in it."""
    database = Database(sqlite_database_url, patience=PATIENT)
    async with database.system_transaction() as opened:
        await add_tenant(opened, Tenant(tenant, NOON, "test"))
        yield opened
    await database.close()


async def test_versions_of_a_policy_come_newest_first_and_only_older_ones_than_asked(
    tx: Transaction, tenant: str
) -> None:
    assert await find_policy(tx, tenant) is None
    for number in (1, 3, 2):
        assert await add_policy(tx, StoredPolicy(tenant, number, {"n": number}, NOON, "me"))
    assert not await add_policy(tx, StoredPolicy(tenant, 3, {"n": 9}, NOON, "you"))
    for other in (f"!{tenant}", f"{tenant}-z"):  # their names come before and after in every order
        await add_tenant(tx, Tenant(other, NOON, "test"))
        assert await find_policy(tx, other) is None
        for number in (1, 2):
            assert await add_policy(tx, StoredPolicy(other, number, {"n": other}, NOON, "else"))
    newest = await find_policy(tx, tenant)
    assert newest is not None
    assert (newest.version, newest.document) == (3, {"n": 3})

    async def versions(before: int | None, limit: int) -> list[int]:
        return [one.version for one in await list_policies(tx, tenant, before=before, limit=limit)]

    assert await versions(None, 2) == [3, 2]
    assert await versions(None, 9) == [3, 2, 1], "and none of others"
    assert await versions(2, 2) == [1]
    assert await versions(1, 2) == []


async def test_versions_of_a_pipeline_are_kept_apart_by_name_and_the_newest_of_each_is_listed(
    tx: Transaction, tenant: str
) -> None:
    def version(name: str, number: int) -> StoredPipeline:
        return StoredPipeline(name, number, {"n": number}, "active", "api", NOON, "me")

    for name, number in (("b", 1), ("a", 1), ("a", 2), ("b", 3), ("b", 2)):
        assert await add_pipeline(tx, tenant, version(name, number))
    assert not await add_pipeline(tx, tenant, version("a", 2))
    assert [(one.name, one.version) for one in await list_pipelines(tx, tenant)] == [("a", 2), ("b", 3)]
    older = await list_pipeline_versions(tx, tenant, "b", before=3, limit=5)
    assert [one.version for one in older] == [2, 1]
    assert [one.version for one in await list_pipeline_versions(tx, tenant, "b")] == [3]


def key_of(tenant: str, id_: str) -> StoredKey:
    return StoredKey(
        KeyInfo(tenant, id_, None, frozenset({Role.INVOKER}), (), NOON, "me"), b"new" + id_.encode()
    )


async def test_keys_and_tenants_come_by_name_behind_the_one_that_is_given(
    tx: Transaction, tenant: str
) -> None:
    ids = [f"{tenant[2:8]}{number:02d}" for number in range(4)]
    for id_ in reversed(ids):
        assert await add_key(tx, key_of(tenant, id_))
    assert [one.id for one in await list_keys(tx, tenant)] == ids
    assert [one.id for one in await list_keys(tx, tenant, after=ids[1], limit=1)] == [ids[2]]
    assert list(await list_keys(tx, tenant, after=ids[3])) == []

    for suffix in ("-b", "-a"):
        await add_tenant(tx, Tenant(tenant + suffix, NOON, "test"))
    assert [one.name for one in await list_tenants(tx, after=tenant, limit=2)] == [
        f"{tenant}-a",
        f"{tenant}-b",
    ]
    assert [one.name for one in await list_tenants(tx, after=f"{tenant}-a", limit=1)] == [f"{tenant}-b"]


async def test_an_old_secret_is_forgotten_at_its_very_end_and_not_before(
    tx: Transaction, tenant: str
) -> None:
    id_ = tenant[2:10]
    await add_key(tx, key_of(tenant, id_))
    before = await find_key(tx, id_, tenant_name=tenant)
    assert before is not None
    await rotate(tx, before, b"fresh", NOON)
    await remove_old_secrets(tx, NOON - TICK)
    rotating = await find_key(tx, id_, tenant_name=tenant)
    assert rotating is not None
    assert (rotating.digest, rotating.previous_digest) == (b"fresh", before.digest)
    assert await remove_old_secrets(tx, NOON) == 1
    alone = await find_key(tx, id_, tenant_name=tenant)
    assert alone is not None
    assert (alone.digest, alone.previous_digest, alone.info.rotating_until) == (b"fresh", None, None)
    await rotate(tx, alone, b"last", None)
    ended = await find_key(tx, id_, tenant_name=None)
    assert ended is not None
    assert (ended.digest, ended.previous_digest) == (b"last", None)
    assert await find_key(tx, id_, tenant_name="another") is None


async def test_what_was_read_counts_until_its_end_and_not_at_it(tx: Transaction, tenant: str) -> None:
    await put_disclosures(tx, tenant, "key", {"a": "1", "b": "2"}, NOON)
    assert await find_disclosure(tx, tenant, "key", "a", NOON - TICK) == "1"
    assert await find_disclosure(tx, tenant, "key", "a", NOON) is None
    assert await find_disclosure(tx, tenant, "other", "a", NOON - TICK) is None
    await remove_expired_disclosures(tx, NOON - TICK)
    assert await find_disclosure(tx, tenant, "key", "b", NOON - TICK) == "2"
    await put_disclosures(tx, tenant, "key", {"a": "3"}, NOON + TICK)
    assert await remove_expired_disclosures(tx, NOON) == 1
    assert await find_disclosure(tx, tenant, "key", "a", NOON) == "3"


async def test_idle_sessions_go_a_batch_at_a_time_and_one_of_that_very_moment_stays(
    tx: Transaction, tenant: str
) -> None:
    for number, seen in enumerate((NOON - TICK, NOON - TICK, NOON)):
        stored = StoredSession(tenant, str(number), "key", "r", {}, NOON, seen)
        await add_session(tx, stored)
    assert await remove_idle_sessions(tx, NOON, limit=1) == 1
    assert await remove_idle_sessions(tx, NOON, limit=5) == 1
    assert await find_session(tx, tenant, "2") is not None


async def test_a_session_ends_when_it_was_idle_for_so_long_and_not_a_moment_before(
    sqlite_database_url: str, tenant: str
) -> None:
    database = Database(sqlite_database_url, patience=PATIENT)
    moment = NOON
    sessions = SessionService(database, 3600, lambda: moment)
    caller = Caller(tenant, "00000001", frozenset({Role.INVOKER}))
    started = await sessions.start(caller, "r", {"a": 1, "b": None})
    moment = NOON + timedelta(seconds=3600) - TICK
    assert (await sessions.resume(caller, started.id)).preferences == {"a": 1, "b": None}
    moment += timedelta(seconds=3600)
    with pytest.raises(NotFoundError):
        await sessions.resume(caller, started.id)
    for stranger in (
        Caller(tenant, "00000002", caller.roles),
        Caller(f"{tenant}-x", "00000001", caller.roles),
    ):
        fresh = await sessions.start(caller, "r")
        with pytest.raises(NotFoundError):
            await sessions.resume(stranger, fresh.id)
    await database.close()


async def test_a_scope_ends_at_its_very_moment_everywhere_at_once(
    sqlite_database_url: str, tenant: str
) -> None:
    database = Database(sqlite_database_url, patience=PATIENT)
    caller, moment = caller_of(tenant), NOON
    async with open_vault(database, now=lambda: moment) as vault:
        for name in ("a", "b", "c"):
            receipt = await vault.store(caller, name, "Ada", ttl_s=60)
        await vault.service.set_expiry(caller, "c", None)
        moment = NOON + timedelta(seconds=60) - TICK
        assert await vault.texts(caller, "a", receipt.handles) == ["Ada"]
        assert [one.id for one in (await vault.service.list_scopes(caller)).items] == ["a", "b", "c"]
        assert (await vault.service.entries(caller, "a")).items[0].handle == Handle("PERSON", 1)
        await vault.service.purge_expired()
        assert (await vault.service.get_scope(caller, "a")).expires == NOON + timedelta(seconds=60)
        moment += TICK
        assert await vault.texts(caller, "a", receipt.handles) == [None]
        assert [one.id for one in (await vault.service.list_scopes(caller)).items] == ["c"]
        for read in (vault.service.get_scope, vault.service.entries):
            with pytest.raises(NotFoundError):
                await read(caller, "b")
        assert await vault.service.purge_expired() == 2
        again = await vault.store(caller, "a", "Ada")
        assert again.handles == [Handle("PERSON", 2)]
    await database.close()


async def test_pages_of_the_vault_end_with_what_there_is(sqlite_database_url: str, tenant: str) -> None:
    database = Database(sqlite_database_url, patience=PATIENT)
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        for name in ("a", "b", "c"):
            await vault.store(caller, name, "Ada", "Bob", ("EMAIL", "x@y.org"))
        whole = await vault.service.list_scopes(caller, limit=3)
        assert ([one.id for one in whole.items], whole.next) == (["a", "b", "c"], None)
        first = await vault.service.list_scopes(caller, limit=2)
        assert [one.id for one in first.items] == ["a", "b"]
        rest = await vault.service.list_scopes(caller, limit=2, cursor=first.next)
        assert ([one.id for one in rest.items], rest.next) == (["c"], None)

        entries = await vault.service.entries(caller, "a", limit=3)
        assert [one.handle.name for one in entries.items] == ["EMAIL_1", "PERSON_1", "PERSON_2"]
        assert entries.next is None
        part = await vault.service.entries(caller, "a", limit=2)
        last = await vault.service.entries(caller, "a", limit=2, cursor=part.next)
        assert ([one.handle.name for one in last.items], last.next) == (["PERSON_2"], None)
        for limit in (0, 1001):
            with pytest.raises(InvalidArgumentsError):
                await vault.service.list_scopes(caller, limit=limit)
            with pytest.raises(InvalidArgumentsError):
                await vault.service.entries(caller, "a", limit=limit)
        assert len((await vault.service.list_scopes(caller, limit=1000)).items) == 3
    await database.close()


async def test_pages_of_the_record_end_with_what_there_is_and_its_times_include_the_first_only(
    sqlite_database_url: str, tenant: str
) -> None:
    database = Database(sqlite_database_url, patience=PATIENT)
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        for second in range(3):
            event = vault.audit.new_event(caller, "test", "ok", None)
            await vault.audit.record(replace(event, at=NOON + timedelta(seconds=second)))
        asked = AuditQuery(action="test", since=NOON)
        whole = await vault.audit.query(caller, asked, limit=3)
        assert (len(whole.items), whole.next) == (3, None)
        part = await vault.audit.query(caller, asked, limit=2)
        rest = await vault.audit.query(caller, asked, limit=2, cursor=part.next)
        assert [one.id for one in (*part.items, *rest.items)] == [one.id for one in whole.items]
        assert rest.next is None
        times = AuditQuery(action="test", since=NOON, until=NOON + timedelta(seconds=2))
        assert [one.at.second for one in (await vault.audit.query(caller, times)).items] == [1, 0]
        for limit in (0, 1001):
            with pytest.raises(InvalidArgumentsError):
                await vault.audit.query(caller, asked, limit=limit)
        assert len((await vault.audit.query(caller, asked, limit=1000)).items) == 3
    await database.close()


@pytest.mark.parametrize(
    ("held", "epoch", "expected"),
    [({}, 0, [1, 2]), ({"PERSON": 4}, 0, [5, 6]), ({"EMAIL": 4}, 0, [1, 2])],
)
def test_the_next_number_of_a_label_follows_its_own_last_one(
    held: dict[str, int], epoch: int, expected: list[int]
) -> None:
    row = ScopeRow("s", 1, "active", None, dict(held), epoch, b"", 1)
    assert [row.take("PERSON"), row.take("PERSON")] == expected
    assert row.counters["PERSON"] == expected[-1]


def test_after_a_restore_numbers_jump_once_and_go_on_from_there() -> None:
    row = ScopeRow("s", 1, "active", None, {"PERSON": 4}, 2, b"", 1)
    first = row.take("PERSON")
    assert first == 2 * EPOCH_STRIDE + 1
    assert row.take("PERSON") == first + 1
    high = ScopeRow("s", 1, "active", None, {"PERSON": 3 * EPOCH_STRIDE}, 2, b"", 1)
    assert high.take("PERSON") == 3 * EPOCH_STRIDE + 1
