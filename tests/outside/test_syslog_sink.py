"""Events reach a real syslog server over TLS, though the service is killed and the server is away for a while."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.engines.sinks.choosing import sink_of
from app.services.audit.sinks.delivery import Delivery
from app.store.database import Database
from app.store.migrate import upgrade
from tests.integration.access_setup import Replica, replica_on
from tests.integration.certificates import self_signed
from tests.integration.ocsf import faults
from tests.outside.killed_delivery import BATCH, EVENTS, FIRST, assert_whole, killed, recorded
from tests.outside.test_syslog_anchor import rsyslog
from tests.upstreams.providing import free_port

pytestmark = [pytest.mark.outside, pytest.mark.needs("rsyslogd")]


@pytest.fixture
async def replica(tmp_path: Path) -> AsyncIterator[Replica]:
    url = f"sqlite:///{tmp_path}/sluice.db"
    upgrade(url)
    async with Database(url) as database, replica_on(database) as running:
        yield running


def received(path: Path) -> list[str]:
    """Return the whole lines that the server has written."""
    return path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []


async def test_nothing_is_lost_and_the_order_is_kept(replica: Replica, tmp_path: Path) -> None:
    expected = await recorded(replica)
    certificate, port = self_signed(tmp_path), free_port()
    address = f"syslog+tls://127.0.0.1:{port}?ca={certificate}"
    with rsyslog(tmp_path, certificate, port) as written:
        await killed(f"sqlite:///{tmp_path}/sluice.db", address, lambda: len(received(written)))
    delivering = Delivery(replica.audit, sink_of(address))
    await delivering.run()  # the server is away
    assert delivering.failures == 1
    before = len(received(written))
    assert FIRST <= before < EVENTS
    with rsyslog(tmp_path, certificate, port) as written:
        async with asyncio.timeout(60):
            while len({line.partition("{")[2] for line in received(written)}) < EVENTS:
                await delivering.run()
                await asyncio.sleep(0.05)
    lines = received(written)
    assert all(line.startswith("109 sluice ocsf ") for line in lines)
    documents = [json.loads(line[line.index("{") :]) for line in lines]
    assert faults(documents[0]) == []
    assert_whole(documents, expected)
    # What was under way when the process was killed came again, and no more.
    assert EVENTS <= len(lines) <= EVENTS + BATCH
