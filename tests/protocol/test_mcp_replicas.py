"""Two processes' worth of surfaces over one PostgreSQL database, one handshake client between them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from app.services.access.sessions import SessionService
from app.store.database import Database
from tests.factories import PATIENT
from tests.protocol.mcp_harness import build, serving
from tests.protocol.mcp_wire import HANDSHAKE, client


@contextlib.asynccontextmanager
async def replica(url: str) -> AsyncIterator[str]:
    database = Database(url, patience=PATIENT)
    try:
        async with serving(build(sessions=SessionService(database))) as served:
            yield served
    finally:
        await database.close()


async def test_a_session_lives_on_every_replica_and_ends_on_every_replica(postgres_database_url):
    async with (
        replica(postgres_database_url) as one,
        replica(postgres_database_url) as two,
        client(one, HANDSHAKE) as wire,
        client(two, HANDSHAKE, "bob") as bob,
    ):
        for n in range(20):
            wire.url = (one, two)[n % 2]
            assert (await wire.invoke(n)).result["content"] == [n]
        bob.session, own = wire.session, bob.session
        assert (await bob.call("middleware/list")).status == 404
        bob.session, bob.url = own, one
        assert (await bob.call("middleware/list")).status == 200
        assert (await wire.http.delete(two, headers={"mcp-session-id": wire.session})).status_code == 204
        wire.url = one
        assert (await wire.call("middleware/list")).status == 404


async def test_many_clients_at_once_meet_no_404(postgres_database_url):
    async def talk(one: str, two: str) -> list[int]:
        async with client(one, HANDSHAKE) as wire:
            statuses = []
            for n in range(6):
                wire.url = (two, one)[n % 2]
                statuses.append((await wire.invoke(n)).status)
            return statuses

    async with replica(postgres_database_url) as one, replica(postgres_database_url) as two:
        statuses = await asyncio.gather(*(talk(one, two) for _ in range(8)))

    assert {status for each in statuses for status in each} == {200}
