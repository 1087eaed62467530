"""Events reach a receiver of OTLP, though the service is killed, and the receiver is away and busy for a while."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from app.engines.sinks.choosing import sink_of
from app.services.audit.sinks.delivery import Delivery
from app.store.database import Database
from app.store.migrate import upgrade
from tests.integration.access_setup import Replica, replica_on
from tests.integration.otlp_receiver import receiving
from tests.outside.killed_delivery import BATCH, EVENTS, FIRST, assert_whole, killed, recorded
from tests.upstreams.providing import free_port

pytestmark = [pytest.mark.outside]


@pytest.fixture
async def replica(tmp_path: Path) -> AsyncIterator[Replica]:
    url = f"sqlite:///{tmp_path}/sluice.db"
    upgrade(url)
    async with Database(url) as database, replica_on(database) as running:
        yield running


async def test_nothing_is_lost_and_the_order_is_kept(replica: Replica, tmp_path: Path) -> None:
    expected, port = await recorded(replica), free_port()
    async with receiving(port=port) as receiver:
        address = receiver.url
        await killed(f"sqlite:///{tmp_path}/sluice.db", address, lambda: len(receiver.records()))
        bodies = [*receiver.bodies()]
    assert FIRST <= len(bodies) < EVENTS
    delivering = Delivery(replica.audit, sink_of(address))
    await delivering.run()  # the receiver is away
    assert delivering.failures == 1
    async with receiving(port=port) as receiver:
        receiver.answers = [web.Response(status=503, headers={"Retry-After": "1"})]
        async with asyncio.timeout(60):
            while len({*bodies, *receiver.bodies()}) < EVENTS:
                await delivering.run()
        bodies += receiver.bodies()
    assert delivering.failures == 2
    assert_whole([json.loads(body) for body in bodies], expected)
    # What was under way when the process was killed came again, and no more.
    assert EVENTS <= len(bodies) <= EVENTS + BATCH
