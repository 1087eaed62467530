"""Events reach a cluster of Kafka (a mock), though the service is killed and the broker is away for a while."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.engines.sinks import kafka
from app.engines.sinks.choosing import sink_of
from app.services.audit.sinks.delivery import Delivery
from app.store.database import Database
from app.store.migrate import upgrade
from tests.integration.access_setup import Replica, replica_on
from tests.integration.kafka_cluster import reading, running_cluster
from tests.outside.killed_delivery import BATCH, EVENTS, FIRST, assert_whole, killed, recorded

pytestmark = [pytest.mark.outside]
NOT_ENOUGH_REPLICAS, TOPIC_AUTHORIZATION_FAILED = 19, 29


@pytest.fixture
async def replica(tmp_path: Path) -> AsyncIterator[Replica]:
    url = f"sqlite:///{tmp_path}/sluice.db"
    upgrade(url)
    async with Database(url) as database, replica_on(database) as running:
        yield running


async def test_nothing_is_lost_and_the_order_is_kept(
    replica: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await recorded(replica)
    with running_cluster() as cluster, reading(cluster) as log:
        await killed(f"sqlite:///{tmp_path}/sluice.db", cluster.address, lambda: len(log.read()))
        assert FIRST <= len(log.read()) < EVENTS
        delivering = Delivery(replica.audit, sink_of(cluster.address))
        cluster.go_down()
        with monkeypatch.context() as patch:
            patch.setattr(kafka, "_TIME_LIMIT_S", 1)
            await delivering.run()
        assert delivering.failures == 1
        cluster.come_up()
        cluster.fail(NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS, TOPIC_AUTHORIZATION_FAILED)
        async with asyncio.timeout(60):
            while len({each.value for each in log.read()}) < EVENTS:
                await delivering.run()
        messages = log.read()
    assert delivering.failures == 2
    assert len({each.partition for each in messages if each.key == "acme"}) == 1
    assert_whole([json.loads(each.value) for each in messages], expected)
    # Again came at most what was under way when the process was killed, and the rest, which the broker refused in part.
    assert EVENTS <= len(messages) <= EVENTS + BATCH + (EVENTS - FIRST)
