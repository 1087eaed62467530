"""Writes of many tenants share one statement and nothing else; each control shows that a probe bites."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError

from app.core.access import Caller
from app.core.audit import AuditEvent, EventCode, WriterNumber
from app.core.content.handles import Handle, Original
from app.core.contracts.middleware import VaultOptions
from app.core.errors import StoreUnavailableError
from app.services.vault.vault import VaultReceipt, VaultWrite
from app.store import dialects
from app.store.audit.audit import AuditFilters, list_events
from app.store.audit.batches import TenantBatch
from app.store.audit.writer import audit_row
from app.store.database import Database
from app.store.vault.numbering import Numbering
from tests.conftest import connect
from tests.factories import PATIENT, Vault, as_owner, caller_of, open_vault
from tests.integration.races import faults, race

TENANTS = [f"tenant-{number}" for number in range(8)]
UNREADABLE = (
    *("api_key", "policy", "tenant", "erasure", "audit_event", "session", "tenant_key", "key_canary"),
    *("server", "user_grant", "provider", "gateway_binding", "gateway_signed", "document_chunk", "pipeline"),
)
COMPARED = "q.before IS NOT NULL AND s.counters = q.before AND s.generation = q.generation"
WAITED_S = 10
"""Far less than a lock is waited for here."""
CHECKED = "q.tenant IS DISTINCT FROM tenants[q.request]"


@pytest.fixture
async def vault(own_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Vault]:
    """Return a vault in which every tenant has a scope with one value, and that waits long for a lock."""
    monkeypatch.setattr(dialects, "LOCK_S", 20)
    async with Database(own_postgres_url, patience=PATIENT) as database, open_vault(database) as opened:
        await asyncio.gather(*(opened.store(caller_of(name), "talk", f"{name} Ada") for name in TENANTS))
        yield opened


@asynccontextmanager
async def batch_role(vault: Vault, *tenants: str) -> AsyncIterator[Any]:
    """Open a transaction as the role of batches that names ``tenants``, and roll it back."""
    async with vault.database.connection(write=True) as tx:
        await tx.execute(text("SELECT set_config('role', 'sluice_batch', true)"))
        named = {"names": "{" + ",".join(tenants) + "}"}
        await tx.execute(text("SELECT set_config('app.tenants', :names, true)"), named)
        yield tx


async def redefine(vault: Vault, before: str, after: str) -> None:
    """Replace a part of the function that stores batches."""
    owner = await connect(vault.database.url.set(drivername="postgresql").render_as_string())
    source = await owner.fetchval("SELECT pg_get_functiondef('sluice_store_batch'::regproc)")
    assert before in source
    await owner.execute(source.replace(before, after))
    await owner.close()


async def records(vault: Vault, tenant: str) -> list[AuditEvent]:
    async with vault.database.transaction(tenant, write=False) as tx:
        rows = await list_events(tx, tenant, AuditFilters(), before=None, limit=1000)
    return [row.event for row in rows]


def numbering_of(vault: Vault) -> Numbering:
    return Numbering(vault.custodian, datetime.now(UTC))


def row_of(made: AuditEvent) -> tuple[Any, ...]:
    return audit_row(made, WriterNumber("writer", 1), lambda _event, _number: EventCode(b"leaf", b"code"))


def misfile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the batching: each record is taken for that of the next request."""
    store = TenantBatch.store

    async def broken(batch: TenantBatch, scopes: Any, events: Any) -> None:
        count = len(batch.tenants)
        await store(batch, scopes, [((at + 1) % count, row) for at, row in events])

    monkeypatch.setattr(TenantBatch, "store", broken)


async def record_all(vault: Vault) -> list[BaseException | None]:
    """Record one event of each tenant at once, so that they share a batch."""
    events = [vault.audit.new_event(caller_of(name), "probe", "ok", None) for name in TENANTS]
    return await asyncio.gather(*(vault.audit.record(made) for made in events), return_exceptions=True)


async def test_a_record_under_another_request_of_the_batch_is_refused(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [len(await records(vault, name)) for name in TENANTS]
    with monkeypatch.context() as patched:
        misfile(patched)
        answers = await record_all(vault)
    # A batch of one has no other request, so the writer's last resort, each write alone, stores it rightly.
    assert answers == [None] * len(TENANTS)
    for name, count in zip(TENANTS, before, strict=True):
        own = await records(vault, name)
        assert len(own) == count + 1
        assert {made.tenant for made in own} == {name}


async def test_the_statement_refuses_what_the_policies_let_through(vault: Vault) -> None:
    made = vault.audit.new_event(caller_of(TENANTS[1]), "probe", "ok", None)
    batch = TenantBatch(numbering_of(vault), vault.database, TENANTS[:2])
    row = row_of(made)
    with pytest.raises(StoreUnavailableError):
        await batch.store([None, None], [(0, row)])
    assert made not in await records(vault, TENANTS[1])
    await redefine(vault, CHECKED, "false")
    await batch.store([None, None], [(0, row)])
    assert made in await records(vault, TENANTS[1])


async def test_the_policies_refuse_what_the_statement_lets_through(vault: Vault) -> None:
    await redefine(vault, CHECKED, "false")
    made = vault.audit.new_event(caller_of(TENANTS[1]), "probe", "ok", None)
    batch = TenantBatch(numbering_of(vault), vault.database, TENANTS[:1])
    with pytest.raises(StoreUnavailableError):
        await batch.store([None], [(0, row_of(made))])
    await as_owner(vault.database, "ALTER TABLE audit_event DISABLE ROW LEVEL SECURITY")
    await batch.store([None], [(0, row_of(made))])
    await as_owner(vault.database, "ALTER TABLE audit_event ENABLE ROW LEVEL SECURITY")
    assert made in await records(vault, TENANTS[1])


async def test_the_role_sees_scopes_of_the_named_tenants_alone(vault: Vault) -> None:
    query = "SELECT DISTINCT tenant FROM {0} ORDER BY tenant"
    for table in ("scope", "entry"):
        async with batch_role(vault, *TENANTS[:2]) as tx:
            seen = await tx.execute(text(query.format(table)))
            assert seen.scalars().all() == TENANTS[:2]
        async with batch_role(vault) as tx:
            assert (await tx.execute(text(query.format(table)))).all() == []
        await as_owner(vault.database, f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        async with batch_role(vault, *TENANTS[:2]) as tx:
            seen = await tx.execute(text(query.format(table)))
            assert seen.scalars().all() == TENANTS
        await as_owner(vault.database, f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT ciphertext FROM entry",
        "SELECT * FROM entry",
        "DELETE FROM entry",
        "UPDATE entry SET ordinal = 1",
        "UPDATE scope SET dek_wrapped = NULL",
        "UPDATE scope SET tenant = 'tenant-1'",
        "DELETE FROM scope",
        "UPDATE audit_event SET actor = 'me'",
        "DELETE FROM audit_event",
        "INSERT INTO scope VALUES ('tenant-5', 'x', now(), NULL, 'active', 1, '{}', 0, NULL, NULL, NULL)",
        "INSERT INTO entry VALUES ('tenant-5', 'talk', 'PERSON', 9, 'x', 'x', 'plain', now())",
        *(f"SELECT count(*) FROM {name}" for name in UNREADABLE),  # noqa: S608
    ],
)
async def test_the_role_may_do_no_more_than_the_two_functions(postgres_vault: Vault, statement: str) -> None:
    async with batch_role(postgres_vault, "tenant-0", "tenant-1") as tx:
        with pytest.raises(DBAPIError, match=r"permission denied|row-level security"):
            await tx.execute(text(statement))


@pytest.fixture
async def postgres_vault(postgres_database_url: str) -> AsyncIterator[Vault]:
    async with Database(postgres_database_url) as database, open_vault(database) as opened:
        yield opened


async def test_a_transaction_of_one_tenant_has_nothing_of_the_batches_role(vault: Vault) -> None:
    async with vault.database.transaction(TENANTS[0]) as tx:
        await tx.execute(text("SELECT set_config('app.tenants', '{tenant-1,tenant-2}', true)"))
        seen = await tx.execute(text("SELECT DISTINCT tenant FROM scope"))
        assert seen.scalars().all() == [TENANTS[0]]


async def test_a_write_that_is_alone_asks_the_database_twice(vault: Vault) -> None:
    asked: list[str] = []
    engine = vault.database._engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    driver = (vault.database._reserved or (None, None))[1]
    assert isinstance(driver, asyncpg.Connection)
    driver.add_query_logger(lambda query: asked.append(query.query))

    async def trips(scope: str | None, value: str) -> int:
        asked.clear()
        await vault.store(caller_of(TENANTS[0]), scope, value)
        await asyncio.sleep(0.01)
        return len(asked)

    assert await trips("talk", f"{TENANTS[0]} Ada") == 2
    assert await trips("talk", "Grace") == 2
    assert await trips("another talk", "Grace") == 2
    assert await trips(None, "Grace") == 2


async def hold(vault: Vault, tenant: str, scope: str) -> Any:
    """Lock a scope as another process would, until the connection is closed."""
    owner = await connect(vault.database.url.set(drivername="postgresql").render_as_string())
    await owner.execute("BEGIN")
    await owner.execute("SELECT FROM scope WHERE tenant = $1 AND id = $2 FOR UPDATE", tenant, scope)
    return owner


async def test_a_scope_that_is_locked_elsewhere_leaves_the_batch(vault: Vault) -> None:
    holder = await hold(vault, TENANTS[0], "talk")
    hot = asyncio.create_task(vault.store(caller_of(TENANTS[0]), "talk", "Grace"))
    others = [vault.store(caller_of(name), "talk", "Grace") for name in TENANTS[1:]]
    same_tenant = vault.store(caller_of(TENANTS[0]), "quiet talk", "Grace")
    receipts = await asyncio.wait_for(asyncio.gather(same_tenant, *others), WAITED_S)
    assert [receipt.handles[0].ordinal for receipt in receipts] == [1, *[2] * len(others)]
    assert [len(await records(vault, name)) for name in TENANTS[1:]] == [2] * len(others)
    # What comes later for the locked scope waits behind the first, and holds nobody up either.
    second = asyncio.create_task(vault.store(caller_of(TENANTS[0]), "talk", "Alan"))
    await asyncio.wait_for(vault.store(caller_of(TENANTS[1]), "talk", "Alan"), WAITED_S)
    assert not hot.done()
    assert not second.done()
    await holder.close()
    assert (await hot).handles == [Handle("PERSON", 2)]
    assert (await second).handles == [Handle("PERSON", 3)]
    assert [made.tenant for made in await records(vault, TENANTS[0])] == [TENANTS[0]] * 4


async def test_a_scope_that_was_erased_leaves_the_batch_and_takes_nothing_of_it_along(vault: Vault) -> None:
    await vault.service.erasures.erase_scope(caller_of(TENANTS[0]), "talk", None)
    receipts = await asyncio.gather(*(vault.store(caller_of(name), "talk", "Grace") for name in TENANTS))
    assert [receipt.handles for receipt in receipts] == [[Handle("PERSON", 2)]] * len(TENANTS)
    assert [len(await records(vault, name)) for name in TENANTS] == [3, *[2] * len(TENANTS[1:])]


async def test_without_skip_locked_the_same_scope_holds_everybody_up(vault: Vault) -> None:
    await redefine(vault, "SKIP LOCKED", "")
    holder = await hold(vault, TENANTS[0], "talk")
    hot = asyncio.create_task(vault.store(caller_of(TENANTS[0]), "talk", "Grace"))
    others = asyncio.gather(*(vault.store(caller_of(name), "talk", "Grace") for name in TENANTS[1:]))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(others), 0.9)
    await holder.close()
    await asyncio.gather(hot, others)


async def test_a_scope_that_another_process_is_making_leaves_the_batch(vault: Vault) -> None:
    owner = await connect(vault.database.url.set(drivername="postgresql").render_as_string())
    await owner.execute("BEGIN")
    await owner.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended($1 || chr(31) || $2, 0))", TENANTS[0], "new talk"
    )
    hot = asyncio.create_task(vault.store(caller_of(TENANTS[0]), "new talk", "Grace"))
    others = [vault.store(caller_of(name), "talk", "Grace") for name in TENANTS[1:]]
    await asyncio.wait_for(asyncio.gather(*others), WAITED_S)
    assert not hot.done()
    await owner.close()
    assert (await hot).handles == [Handle("PERSON", 1)]


async def test_a_request_that_fails_takes_none_of_its_batch_with_it(vault: Vault) -> None:
    def refuse(_receipt: VaultReceipt) -> list[AuditEvent]:
        raise ValueError("broken")

    async def fail(caller: Caller) -> VaultReceipt:
        broken = VaultWrite("talk", [("PERSON", Original("Grace"))], VaultOptions(), refuse)
        return await vault.service.commit(caller, broken)

    answers = await asyncio.gather(
        *(vault.store(caller_of(name), "talk", "Alan") for name in TENANTS[:4]),
        fail(caller_of(TENANTS[4])),
        *(vault.store(caller_of(name), "talk", "Alan") for name in TENANTS[5:]),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers if not isinstance(answer, VaultReceipt)] == [ValueError]
    async with vault.database.transaction(TENANTS[4], write=False) as tx:
        assert (await tx.execute(text("SELECT count(*) FROM entry"))).scalar_one() == 1


@pytest.mark.parametrize("fields", [{"middleware": "a\0b"}, {"blocks": 2**70}])
async def test_a_record_that_the_database_refuses_takes_none_of_its_batch_with_it(
    vault: Vault, fields: dict[str, Any]
) -> None:
    events = [
        vault.audit.new_event(caller_of(name), "probe", "ok", None, **(fields if at == 3 else {}))
        for at, name in enumerate(TENANTS)
    ]
    answers = await asyncio.gather(*(vault.audit.record(made) for made in events), return_exceptions=True)
    assert [at for at, answer in enumerate(answers) if answer is not None] == [3]
    for name, made in zip(TENANTS, events, strict=True):
        assert (made in await records(vault, name)) == (name != TENANTS[3])


async def test_a_scope_that_was_erased_elsewhere_is_not_written_with_its_old_key(
    vault: Vault, own_postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caller = caller_of(TENANTS[0])
    async with Database(own_postgres_url, patience=PATIENT) as database, open_vault(database) as other:
        await other.service.erasures.erase_scope(caller, "talk", None)
        await vault.store(caller, "talk", "Grace")
        await other.service.erasures.erase_scope(caller, "talk", None)
        await other.store(caller, "talk", "Grace")
    # This process still has the key before last in memory.
    receipt = await vault.store(caller, "talk", "Grace", "Alan")
    handles = [Handle("PERSON", ordinal) for ordinal in (3, 4)]
    assert receipt.handles == handles
    assert await vault.texts(caller, "talk", [Handle("PERSON", 2), *handles]) == [None, "Grace", "Alan"]
    assert "database failed" not in caplog.text  # or the constraints, as the net, have caught a fault


async def test_without_the_comparison_two_processes_give_one_handle_to_two_values(
    own_postgres_url: str, tenant: str
) -> None:
    caller = caller_of(tenant)
    async with AsyncExitStack() as stack:
        pair = []
        for _ in range(2):
            database = await stack.enter_async_context(Database(own_postgres_url, patience=PATIENT))
            pair.append(await stack.enter_async_context(open_vault(database)))
        await redefine(pair[0], COMPARED, "q.before IS NOT NULL")
        for name in ("pk_entry", "uq_entry_tenant_scope_type_lookup"):
            await as_owner(pair[0].database, f"ALTER TABLE entry DROP CONSTRAINT {name}")
        answers = await race(pair, caller, writers=16, seconds=3.0)
        assert (await faults(pair[0].database, pair[0], caller, answers))["duplicate ordinals"] > 0
