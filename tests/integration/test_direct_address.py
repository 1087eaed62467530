"""Two addresses of one database: what asks the pooler and what goes past it; tests/outside has a real pooler."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import pytest
from sqlalchemy import make_url, text

from app.core.errors import StoreUnavailableError
from app.store.changes import Changes
from app.store.database import Database
from app.store.dialects import Patience, UnsafeDatabaseError, settle
from app.store.locks import only_here
from tests.conftest import connect
from tests.factories import PATIENT

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
LIMIT = "SELECT current_setting('statement_timeout')"
SSL_REQUEST = 80877103


@asynccontextmanager
async def listener() -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """Take connections as a server does, note what each says to begin with, and cut it."""
    said: list[dict[str, str]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            length, version = struct.unpack("!II", await reader.readexactly(8))
            if version == SSL_REQUEST:
                writer.write(b"N")
                length, version = struct.unpack("!II", await reader.readexactly(8))
            words = (await reader.readexactly(length - 8)).decode().split("\0")
            said.append(dict(zip(words[::2], words[1::2], strict=False)))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"postgresql://somebody@127.0.0.1:{server.sockets[0].getsockname()[1]}/there", said


@pytest.mark.parametrize("pooled", [False, True])
async def test_no_connection_begins_with_a_setting_that_a_pooler_would_refuse(pooled: bool) -> None:
    async with listener() as (url, said), listener() as (server, said_past):
        async with Database(url, direct_url=server if pooled else None) as database:
            with pytest.raises(StoreUnavailableError):
                async with database.transaction("acme"):
                    pass
            requests = len(said)
            assert requests
            assert not said_past
            with pytest.raises(StoreUnavailableError):
                async with database.session():
                    pass
            with pytest.raises(asyncpg.PostgresConnectionError):
                await Changes(database)._connect()
        assert bool(said_past) is (len(said) == requests) is pooled, "locks and LISTEN go past the pooler"
    for words in said + said_past:
        settings = {name for name in words if name} - {"user", "database", "client_encoding"}
        assert settings == {"application_name"}, words


async def test_behind_a_pooler_each_transaction_sets_its_limits_and_leaves_none(
    postgres_database_url: str,
) -> None:
    patience = Patience(connect_s=30, statement_s=17, pool_s=10)
    url = postgres_database_url
    async with Database(url, direct_url=url, patience=patience, pool_size=1) as database:
        for opened in (
            database.transaction("acme"),
            database.system_transaction(),
            database.purging_transaction(),
            database.connection(),
        ):
            async with opened as tx:
                assert (await tx.execute(text(LIMIT))).scalar_one() == "17s"
            async with database._engine.connect() as after:
                assert (await after.execute(text(LIMIT))).scalar_one() == "0"
                names = "SELECT count(*) FROM pg_prepared_statements"
                assert (await after.execute(text(names))).scalar_one() == 0
    async with Database(url, direct_url=url, patience=patience) as database:
        alone = await database.run_alone(LIMIT, [], write=False)
        assert [tuple(row) for row in alone] == [("17s",)]
        assert [tuple(row) for row in await database._reserved[1].fetch(LIMIT)] == [("0",)]
    # The control: without a pooler a connection has them from its start.
    async with Database(url, patience=patience) as database, database._engine.connect() as tx:
        assert (await tx.execute(text(LIMIT))).scalar_one() == "17s"
        assert (await tx.execute(text("SELECT count(*) FROM pg_prepared_statements"))).scalar_one()


async def test_locks_of_jobs_are_held_where_the_server_is(
    postgres_database_url: str, own_postgres_url: str
) -> None:
    held = (
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
        "WHERE l.locktype = 'advisory' AND d.datname = $1"
    )
    server = make_url(own_postgres_url).database
    watcher = await connect(postgres_database_url)
    try:
        async with Database(NOWHERE, direct_url=own_postgres_url, patience=PATIENT) as database:
            async with only_here(database, "job") as mine:
                assert mine
                assert await watcher.fetchval(held, server) == 1
            assert await watcher.fetchval(held, server) == 0
    finally:
        await watcher.close()


async def test_two_addresses_of_different_databases_are_refused(
    postgres_database_url: str, own_postgres_url: str
) -> None:
    async with Database(postgres_database_url, direct_url=own_postgres_url, patience=PATIENT) as database:
        with pytest.raises(UnsafeDatabaseError, match="names another database than SLUICE_DATABASE__URL"):
            await database.check()
    async with Database(postgres_database_url, direct_url=postgres_database_url) as database:
        await database.check()


class Lent:
    """A connection that a pooler lends: the process it was told of is not the one that answers."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def get_server_pid(self) -> int:
        return int(self.connection.get_server_pid()) + 1

    async def execute(self, statement: str) -> str:
        return str(await self.connection.execute(statement))


async def test_a_pooler_is_known_by_its_process_and_nothing_is_set_on_what_it_lends(
    postgres_database_url: str,
) -> None:
    connection = await connect(postgres_database_url)
    try:
        with pytest.raises(UnsafeDatabaseError, match="SLUICE_DATABASE__DIRECT_URL"):
            await settle(Lent(connection), {"statement_timeout": "17000"})
        assert await connection.fetchval(LIMIT) == "0"
        await settle(connection, {"statement_timeout": "17000"})
        assert await connection.fetchval(LIMIT) == "17s"
    finally:
        await connection.close()
