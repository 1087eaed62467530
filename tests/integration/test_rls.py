"""Row-level security keeps tenants apart even where a query forgets to; the control shows that the probes bite."""

import random
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import BigInteger, LargeBinary, Table, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.errors import StoreUnavailableError
from app.store.database import Database
from app.store.failures import StatementRefusedError
from app.store.insertion import insert_absent
from app.store.schema import metadata
from tests.conftest import Copies, connect
from tests.factories import caller_of, open_vault

TENANTS = [f"tenant-{number}" for number in range(12)]
PRIMITIVES = (
    *("server", "server_pin", "user_grant", "primitive_group", "group_member", "concern", "concern_mapping"),
    *("concern_preference", "tool_description", "disclosure", "pipeline", "provider"),
)
DOCUMENTS = (
    *("collection", "collection_part", "collection_document", "document_chunk", "ingestion"),
    *("indexed_document", "indexed_part"),
)
GATEWAY = ("gateway_binding", "gateway_signed")
PROBED = (*PRIMITIVES, *GATEWAY)
ISOLATED = (
    *(
        "api_key",
        "policy",
        "scope",
        "entry",
        "erasure",
        "erasure_job",
        "audit_event",
        "session",
        "tenant_key",
    ),
    *PRIMITIVES,
    *DOCUMENTS,
    *GATEWAY,
)
TIMES = frozenset({"pinned", "created", "updated", "approved", "expires"})
PROBES = 2000


@pytest.fixture(scope="module")
def filled_url(migrated_postgres: Copies) -> Iterator[str]:
    """Return a database of this module in which every tenant has scopes, entries and audit rows."""
    with migrated_postgres() as url:
        yield url


@pytest.fixture
async def filled(filled_url: str) -> AsyncIterator[Database]:
    """Return it open, filled."""
    database = Database(filled_url)
    async with open_vault(database) as vault:
        for tenant in TENANTS:
            await vault.store(caller_of(tenant), "talk", *[f"{tenant} name {number}" for number in range(5)])
    made = {"created": datetime(2030, 1, 1, tzinfo=UTC), "created_by": "test"}
    async with database.system_transaction() as tx:
        for tenant in TENANTS:
            await insert_absent(tx, metadata.tables["tenant"], {"id": tenant, **made})
    for tenant in TENANTS:
        async with database.transaction(tenant) as tx:
            for name in PROBED:
                await insert_absent(tx, metadata.tables[name], row_of(metadata.tables[name], tenant))
    yield database
    await database.close()


def row_of(table: Table, tenant: str) -> dict[str, Any]:
    """Return a row of a tenant's; every tenant has one under the same names."""
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    row: dict[str, Any] = {
        column.name: {"of": tenant} if column.name in {"document", "definition"} else "same"
        for column in table.columns
        if column.name != "secrets"
    }
    row |= {
        column.name: b"same"
        for column in table.columns
        if isinstance(column.type, LargeBinary) and column.name != "secrets"
    }
    row |= {column.name: 1 for column in table.columns if isinstance(column.type, BigInteger)}
    times = {column.name: moment for column in table.columns if column.name in TIMES}
    return {**row, **times, "tenant": tenant}


async def foreign_rows(tx: AsyncConnection, me: str, rounds: int) -> int:
    """Count rows of others that ``me`` reaches by key, by look-up, by scan and by join."""
    chance, reached = random.Random(42), 0
    statements = (
        "SELECT count(*) FROM entry WHERE tenant = :you AND scope = 'talk' AND ordinal = :n",
        "SELECT count(*) FROM entry WHERE tenant <> :me OR :you = :me",
        "SELECT count(*) FROM scope s JOIN entry e ON e.scope = s.id WHERE s.tenant = :you OR e.tenant = :you",
        "SELECT count(*) FROM audit_event WHERE tenant = :you AND (true OR id IS NULL)",
        "SELECT count(*) FROM server s JOIN server_pin p ON p.name = s.name WHERE s.tenant = :you OR p.tenant = :you",
        *(f"SELECT count(*) FROM {name} WHERE tenant <> :me OR :you = :me" for name in PROBED),  # noqa: S608
    )
    for number in range(rounds):
        you = chance.choice([name for name in TENANTS if name != me])
        values = {"you": you, "me": me, "n": 1 + number % 5}
        statement = statements[number % len(statements)]
        used = {name: value for name, value in values.items() if f":{name}" in statement}
        reached += (await tx.execute(text(statement), used)).scalar_one()
    return int(reached)


async def test_no_probe_reaches_a_foreign_row(filled: Database) -> None:
    for me in TENANTS[:4]:
        async with filled.transaction(me) as tx:
            assert await foreign_rows(tx, me, PROBES // 4) == 0
            own = await tx.execute(text("SELECT count(*) FROM entry"))
            assert own.scalar_one() == 5
            for name in PROBED:
                found = await tx.execute(select(metadata.tables[name].c.tenant))
                assert found.scalars().all() == [me], name


async def test_the_same_probes_reach_foreign_rows_without_row_level_security(filled: Database) -> None:
    owner = await connect(filled.url.set(drivername="postgresql").render_as_string())
    tables = ("entry", "scope", "audit_event", *PROBED)
    for table in tables:
        await owner.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    try:
        async with filled.transaction(TENANTS[0]) as tx:
            assert await foreign_rows(tx, TENANTS[0], 100) > 100
            for name in PROBED:
                found = await tx.execute(select(metadata.tables[name].c.tenant))
                assert set(found.scalars()) == set(TENANTS), name
    finally:
        for table in tables:
            await owner.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        await owner.close()


@pytest.mark.parametrize("table", [*ISOLATED, "document_search", "trusted_issuer"])
async def test_every_table_of_tenants_is_isolated_by_force(filled: Database, table: str) -> None:
    owner = await connect(filled.url.set(drivername="postgresql").render_as_string())
    row = await owner.fetchrow(
        "SELECT relrowsecurity, relforcerowsecurity, pg_get_userbyid(relowner) AS owner FROM pg_class "
        "WHERE oid = $1::text::regclass",
        table,
    )
    await owner.close()
    assert row is not None
    assert (row["relrowsecurity"], row["relforcerowsecurity"]) == (True, True)
    assert row["owner"] not in {"sluice_app", "sluice_system"}


async def test_issuers_are_out_of_reach_of_every_tenant(
    filled: Database, caplog: pytest.LogCaptureFixture
) -> None:
    query = select(func.count()).select_from(metadata.tables["trusted_issuer"])
    async with filled.system_transaction(write=False) as tx:
        assert (await tx.execute(query)).scalar_one() == 0
    for tenant in (TENANTS[0], "system"):
        caplog.clear()
        with pytest.raises(StatementRefusedError):
            async with filled.transaction(tenant) as tx:
                await tx.execute(query)
        assert "42501" in caplog.text, "insufficient privilege"


async def test_without_a_tenant_nothing_is_seen(filled: Database) -> None:
    async with filled.transaction("nobody") as tx:
        await tx.execute(text("SELECT set_config('app.tenant', '', true)"))
        for table in ("tenant", *ISOLATED):
            count = select(func.count()).select_from(metadata.tables[table])
            assert (await tx.execute(count)).scalar_one() == 0


async def test_a_tenant_does_not_stick_to_a_pooled_connection(filled_url: str) -> None:
    database = Database(filled_url, pool_size=1)
    async with database.transaction(TENANTS[0]) as tx:
        pid = (await tx.execute(text("SELECT pg_backend_pid()"))).scalar_one()
    async with database.connection() as tx:
        row = (
            await tx.execute(
                text("SELECT pg_backend_pid(), current_setting('app.tenant', true), current_user")
            )
        ).one()
    assert tuple(row) == (pid, "", "postgres")
    await database.close()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO scope VALUES ('tenant-1', 'x', now(), NULL, 'active', 1, '{}', 0, NULL, NULL)",
        "UPDATE scope SET tenant = 'tenant-1'",
        "UPDATE audit_event SET actor = 'me'",
        "DELETE FROM audit_event",
        "DELETE FROM erasure",
        "TRUNCATE audit_event",
        "DELETE FROM scope",
        "UPDATE entry SET ciphertext = ''",
        "INSERT INTO tenant VALUES ('tenant-0', now(), 'me', NULL)",
        "SELECT * FROM audit_event_default",
        "INSERT INTO concern VALUES ('tenant-1', 'x', '{}', 'api', now(), now())",
        "UPDATE server SET tenant = 'tenant-1'",
        "UPDATE server_pin SET tenant = 'tenant-1'",
        "TRUNCATE server",
        "INSERT INTO log_leaf VALUES ('tenant-0', 0, gen_random_uuid(), now())",
        "UPDATE log_head SET size = 0",
        "UPDATE log_tile SET hashes = ''",
        "DELETE FROM log_checkpoint",
        "DROP TABLE entry",
        "ALTER TABLE entry DISABLE ROW LEVEL SECURITY",
        "SELECT sluice_make_audit_partitions(1)",
        "SELECT sluice_drop_emptied_months()",
        "CREATE TABLE mine (x int)",
    ],
)
async def test_a_request_may_do_no_more_than_its_queries(filled: Database, statement: str) -> None:
    async with filled.transaction("tenant-0") as tx:
        with pytest.raises(DBAPIError, match=r"permission denied|row-level security|must be owner"):
            await tx.execute(text(statement))


async def test_errors_of_the_database_hold_no_values(
    filled: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        async with filled.transaction("tenant-0") as tx:
            await tx.execute(text("SELECT CAST(:secret AS text)::int"), {"secret": "canary-42"})
    said = f"{caught.value!r} {caught.value.details} {caught.value.__cause__!r} {caplog.text}"
    assert "canary-42" not in said
    assert caught.value.__suppress_context__
