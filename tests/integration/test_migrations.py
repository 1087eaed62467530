"""The schema goes up, matches the tables, goes down and up again, on both engines and one process at a time."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from app.core.errors import StoreUnavailableError
from app.store import migrate
from app.store.database import Database
from app.store.dialects import UnsafeDatabaseError, async_url
from tests.conftest import ENGINES, connect, fresh_postgres
from tests.factories import caller_of, open_vault


@pytest.fixture(params=ENGINES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of a database with nothing in it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/deep/sluice.db"
        return
    with fresh_postgres(request.getfixturevalue("postgres_url")) as url:
        yield url


@pytest.fixture
def own_postgres_url(postgres_url: str) -> Iterator[str]:
    """Return the address of an empty PostgreSQL database."""
    with fresh_postgres(postgres_url) as url:
        yield url


def test_up_check_down_up(empty_url: str) -> None:
    assert migrate.current(empty_url) is None
    assert not migrate.is_head(empty_url)
    migrate.upgrade(empty_url)
    assert migrate.is_head(empty_url)
    assert migrate.drift(empty_url) == []
    migrate.upgrade(empty_url)
    migrate.downgrade(empty_url, "base")
    assert migrate.current(empty_url) is None
    assert migrate.drift(empty_url) != []
    migrate.upgrade(empty_url)
    assert migrate.drift(empty_url) == []


def test_processes_that_start_together_migrate_once(empty_url: str) -> None:
    code = "import sys; from app.store.migrate import upgrade; upgrade(sys.argv[1])"
    starts = [
        subprocess.Popen([sys.executable, "-c", code, empty_url], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [start.communicate(timeout=60)[1] for start in starts]
    assert [start.returncode for start in starts] == [0, 0, 0], said
    assert migrate.is_head(empty_url)


async def test_a_database_without_tables_is_unavailable_not_broken(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/sluice.db")
    with pytest.raises(StoreUnavailableError) as caught:
        await database.ping()
    assert "installation" not in str(caught.value)
    await database.close()


async def test_a_new_sqlite_file_is_its_owners_alone_and_durable(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/var/sluice.db"
    database = Database(url)
    await database.check(production=True)
    async with database.connection() as tx:
        found = {
            name: (await tx.execute(text(f"PRAGMA {name}"))).scalar_one()
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1}
    assert (tmp_path / "var" / "sluice.db").stat().st_mode & 0o777 == 0o600
    await database.close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/db"])
def test_an_address_that_cannot_keep_data_is_refused(url: str) -> None:
    with pytest.raises(UnsafeDatabaseError):
        async_url(url)


def test_an_address_gets_its_driver() -> None:
    assert async_url("postgresql://u@h/d").drivername == "postgresql+asyncpg"
    assert async_url("postgres://u@h/d?sslmode=require").query == {"ssl": "require"}
    assert async_url("sqlite:///x.db").drivername == "sqlite+aiosqlite"


async def test_a_database_that_may_forget_commits_is_refused(own_postgres_url: str) -> None:
    connection = await connect(own_postgres_url)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    await connection.close()
    database = Database(own_postgres_url)
    with pytest.raises(UnsafeDatabaseError, match="synchronous_commit=off"):
        await database.check()
    await database.close()


async def test_production_refuses_a_superuser(postgres_database_url: str) -> None:
    database = Database(postgres_database_url)
    await database.check()
    with pytest.raises(UnsafeDatabaseError, match="superuser"):
        await database.check(production=True)
    await database.close()


async def test_the_service_works_as_a_login_that_owns_nothing(
    postgres_database_url: str, tenant: str
) -> None:
    login = f"login_{tenant.removeprefix('t-')}"
    owner = await connect(postgres_database_url)
    await owner.execute(f"CREATE ROLE {login} LOGIN")
    await owner.execute(f"GRANT sluice_app, sluice_system TO {login} WITH INHERIT FALSE")
    database = Database(async_url(postgres_database_url).set(username=login).render_as_string())
    with pytest.raises(UnsafeDatabaseError, match="sluice_read_batch, sluice_store_batch"):
        await database.check(production=True)
    await owner.execute(f"GRANT EXECUTE ON FUNCTION sluice_read_batch, sluice_store_batch TO {login}")
    await database.check(production=True)
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        receipt = await vault.store(caller, "talk", "Ada")
        assert await vault.texts(caller, "talk", receipt.handles) == ["Ada"]
        await database.ping()
        async with database.system_transaction() as tx:
            await tx.execute(text("SELECT sluice_make_audit_partitions(6)"))
    await database.close()
    await owner.execute(f"DROP OWNED BY {login}")
    await owner.execute(f"DROP ROLE {login}")
    await owner.close()


async def test_audit_rows_lie_in_partitions_of_their_month(postgres_database_url: str, tenant: str) -> None:
    database = Database(postgres_database_url)
    async with open_vault(database) as vault:
        await vault.store(caller_of(tenant), "talk", "Ada")
    await database.close()
    owner = await connect(postgres_database_url)
    found = await owner.fetch(
        "SELECT tableoid::regclass::text AS part FROM audit_event WHERE tenant = $1", tenant
    )
    assert [row["part"] for row in found] == [
        await owner.fetchval("SELECT 'audit_event_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')")
    ]
    await owner.close()


@pytest.mark.parametrize("address", ["127.0.0.1:1/sluice", "/sluice?host=/no/such/folder"])
def test_a_server_that_is_not_there_is_told_from_a_missing_file(address: str) -> None:
    with pytest.raises(StoreUnavailableError):
        migrate.is_head(f"postgresql://sluice@{address}")
