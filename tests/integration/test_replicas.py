"""What is no replica is not read; tests/outside has a real one."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.database import Database
from app.store.replicas import Reads
from tests.factories import PATIENT

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


@pytest.fixture
async def primary(postgres_database_url: str) -> AsyncIterator[Database]:
    async with Database(postgres_database_url, patience=PATIENT) as database:
        yield database


async def place(tx: AsyncConnection) -> tuple[str, str]:
    statement = "SELECT current_database(), current_setting('app.tenant')"
    name, tenant = (await tx.execute(text(statement))).one()
    return name, tenant


@pytest.mark.parametrize("kind", ["nowhere", "another database", "a primary"])
async def test_what_is_no_replica_of_the_primary_is_not_read(
    primary: Database, postgres_database_url: str, postgres_url: str, kind: str
) -> None:
    urls = {"nowhere": NOWHERE, "another database": postgres_url, "a primary": postgres_database_url}
    async with Database(urls[kind], patience=PATIENT) as other, Reads(primary, other).running() as reads:
        assert not await reads.look()
        assert not reads.near
        assert await reads.mark() is None
        # Not even where a caller believes that it has something.
        for mark in (None, "0/1"):
            assert await reads.run("acme", mark, place) == (primary.url.database, "acme")


async def test_without_a_replica_the_primary_is_read(database: Database) -> None:
    async def one(tx: AsyncConnection) -> int:
        return int((await tx.execute(text("SELECT 1"))).scalar_one())

    async with Reads(database).running() as reads:
        assert not await reads.look()
        assert await reads.run("acme", await reads.mark(), one) == 1
