"""Everything works through PgBouncer in transaction mode when the server's address is set, and names it when not."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import text

from app.store.changes import Changes
from app.store.database import Database
from app.store.dialects import UnsafeDatabaseError
from app.store.locks import only_here
from tests.conftest import Copies, fresh_postgres
from tests.e2e.running import Service, environment_of, running
from tests.e2e.running import sluice as command
from tests.e2e.test_client import (
    dialect,
    sluice,
    test_a_conversation_comes_back_in_its_shape_with_every_digit,
    test_one_client_serves_many_threads,
    test_what_was_redacted_is_restored,
)
from tests.e2e.test_client_admin import (
    test_keys_are_made_used_rotated_and_revoked,
    test_policies_change_over_the_version_that_was_read,
    test_what_was_erased_is_not_restored_and_the_log_has_it,
)
from tests.e2e.test_kill import kills_of_a_replica
from tests.factories import PATIENT
from tests.outside.calling import calling, eventually, invoked
from tests.outside.pooling import pooled

__all__ = [
    "dialect",
    "sluice",
    "test_a_conversation_comes_back_in_its_shape_with_every_digit",
    "test_keys_are_made_used_rotated_and_revoked",
    "test_one_client_serves_many_threads",
    "test_policies_change_over_the_version_that_was_read",
    "test_what_was_erased_is_not_restored_and_the_log_has_it",
    "test_what_was_redacted_is_restored",
]

pytestmark = [pytest.mark.outside, pytest.mark.needs("pgbouncer")]
NAMES_IT = "SLUICE_DATABASE__DIRECT_URL"


@dataclass(frozen=True)
class Addresses:
    """The addresses of one database: the server's and the pooler's."""

    direct: str
    url: str

    @property
    def settings(self) -> dict[str, str]:
        return {"SLUICE_DATABASE__URL": self.url, NAMES_IT: self.direct}

    def open(self) -> Database:
        return Database(self.url, direct_url=self.direct, patience=PATIENT, pool_size=20)


@pytest.fixture(scope="module")
def addresses(migrated_postgres: Copies) -> Iterator[Addresses]:
    with migrated_postgres() as direct, pooled(direct) as url:
        yield Addresses(direct, url)


@pytest.fixture(scope="module")
def replicas(addresses: Addresses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Service]]:
    folder = tmp_path_factory.mktemp("pooled")
    settings = {**addresses.settings, "SLUICE_KEYS__FILE": str(folder / "ring.json")}
    with running(folder, **settings) as one, running(folder, **settings) as other:
        yield [one, other]


@pytest.fixture(scope="module")
def service(replicas: list[Service]) -> Service:
    return replicas[0]


@pytest.fixture
def scope() -> str:
    return f"scope-{uuid4().hex[:12]}"


def test_one_replica_restores_what_another_sealed_until_it_is_erased(
    replicas: list[Service], scope: str
) -> None:
    with calling(replicas[0]) as one, calling(replicas[1]) as other:
        value = f"{uuid4().hex[:10]}@example.com"
        assert invoked(one, "pii_redaction", [value], scope=scope) == ["[EMAIL_1]"]
        assert invoked(other, "pii_restoration", ["[EMAIL_1]"], scope=scope) == [value]
        assert other.post("/api/v1/vault/erasures", json={"value": value}).status_code == 201
        eventually(lambda: invoked(one, "pii_restoration", ["[EMAIL_1]"], scope=scope) == ["[EMAIL_1]"])


def test_a_document_is_taken_in_found_and_deleted(replicas: list[Service]) -> None:
    question = "What is the budget of the harbour office?"
    with calling(replicas[0]) as one, calling(replicas[1]) as other:
        assert one.put("/api/v1/collections/pooled", json={}).is_success
        document = {"external_id": "h", "title": "Harbour office", "text": "The budget is 4,711 crowns."}
        made = one.post("/api/v1/collections/pooled/documents", json=document)
        assert made.status_code == 201, made.text
        eventually(lambda: "4,711" in str(invoked(other, "document_retrieval", [question])))
        gone = other.delete(f"/api/v1/collections/pooled/documents/{made.json()['document']['id']}")
        assert gone.status_code == 204, gone.text
        assert "4,711" not in str(invoked(other, "document_retrieval", [question]))


def test_a_revoked_key_is_refused_by_the_other_replica(replicas: list[Service]) -> None:
    with calling(replicas[0]) as one:
        made = one.post("/api/v1/keys", json={"roles": ["invoker"]}).json()
        with calling(replicas[1], made["key"]) as other:
            assert other.get("/api/v1/middleware").status_code == 200
            assert one.delete(f"/api/v1/keys/{made['key'][4:12]}").is_success
            eventually(lambda: other.get("/api/v1/middleware").status_code == 401)


def test_what_happened_is_recorded_sealed_and_verified(replicas: list[Service]) -> None:
    with calling(replicas[0]) as http:
        invoked(http, "timestamp_injector", ["x"])
        events = http.get("/api/v1/audit/events", params={"action": "middleware.invoke"}).json()["items"]
        assert events
    eventually(lambda: replicas[0].sluice("audit", "verify").returncode == 0)


def test_kills_of_a_replica_lose_nothing(
    tmp_path: Path, postgres_url: str, migrated_postgres: Copies
) -> None:
    with migrated_postgres() as direct, pooled(direct) as url:
        assert kills_of_a_replica(tmp_path, url, 2, **{NAMES_IT: direct}).requests


async def test_no_transaction_sees_anothers_tenant_limits_or_statements(addresses: Addresses) -> None:
    """Many transactions share few connections of the server, and leave nothing there."""

    async def transact(database: Database, number: int) -> None:
        async with database.transaction(f"t{number}") as tx:
            for _ in range(2):
                values = text(
                    "SELECT current_setting('app.tenant'), current_setting('role'), "
                    "current_setting('statement_timeout'), CAST(:number AS text), pg_sleep(0.001)"
                )
                row = (await tx.execute(values, {"number": str(number)})).one()
                assert tuple(row[:4]) == (f"t{number}", "sluice_app", "30s", str(number))

    async with addresses.open() as database, addresses.open() as other:
        await asyncio.gather(*(transact(each, number) for number in range(40) for each in (database, other)))
        alone = "SELECT current_setting('statement_timeout'), $1::text"
        assert [tuple(row) for row in await database.run_alone(alone, ["x"], write=False)] == [("30s", "x")]
    async with Database(addresses.url, direct_url=addresses.direct) as third:
        left = "SELECT (SELECT count(*) FROM pg_prepared_statements), current_setting('app.tenant', true)"
        for _ in range(8):
            async with third.connection() as tx:
                assert tuple((await tx.exec_driver_sql(left)).one()) in {(0, None), (0, "")}


async def test_a_lock_of_a_job_is_held_past_the_pooler(addresses: Addresses) -> None:
    async with addresses.open() as database, addresses.open() as other:
        async with only_here(database, "job") as first, only_here(other, "job") as second:
            assert (first, second) == (True, False)
        async with only_here(other, "job") as again:
            assert again


async def test_a_pooler_without_the_servers_address_is_refused_and_left_as_it_was(
    addresses: Addresses,
) -> None:
    for direct in (None, addresses.url):
        async with Database(addresses.url, direct_url=direct) as database:
            with pytest.raises(UnsafeDatabaseError, match=NAMES_IT):
                await database.check()
    async with addresses.open() as database, Changes(database).running(), database.session() as session:
        await session.exec_driver_sql("SELECT 1")


async def test_the_servers_address_of_another_database_is_refused(
    addresses: Addresses, postgres_url: str
) -> None:
    async with Database(addresses.url, direct_url=postgres_url) as database:
        with pytest.raises(UnsafeDatabaseError, match="another database"):
            await database.check()


def test_commands_and_service_name_the_missing_setting_and_migrate_with_it(
    tmp_path: Path, postgres_url: str
) -> None:
    with fresh_postgres(postgres_url) as direct, pooled(direct) as url:
        environment = environment_of(tmp_path, SLUICE_DATABASE__URL=url)
        for arguments in (["db", "upgrade"], ["serve", "--port", "0"]) * 2:
            refused = command(*arguments, environment=environment)
            assert refused.returncode == 1, refused.stderr
            assert NAMES_IT in refused.stderr
        done = command("db", "upgrade", environment={**environment, NAMES_IT: direct})
        assert done.returncode == 0, done.stderr
        with running(tmp_path, SLUICE_DATABASE__URL=url, **{NAMES_IT: direct}) as service:
            assert service.greeting
