"""Events reach a real syslog server over TLS, though the service is killed and the server is away for a while."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.engines.sinks.choosing import sink_of
from app.services.audit.sinks.delivery import Delivery
from app.store.database import Database
from app.store.migrate import upgrade
from tests.integration.access_setup import Replica, replica_on
from tests.integration.certificates import self_signed
from tests.integration.ocsf import faults
from tests.integration.sealing import seal_all
from tests.outside.test_syslog_anchor import rsyslog
from tests.upstreams.providing import free_port

pytestmark = [pytest.mark.outside, pytest.mark.needs("rsyslogd")]

EVENTS = 400
TENANTS = ("acme", "borealis")
CHILD = """
import asyncio, sys
from app.engines.sinks.choosing import sink_of
from app.services.audit.sinks import delivery
from app.store.database import Database
from tests.integration.access_setup import replica_on

async def main():
    delivery.BATCH = 10
    async with Database(sys.argv[1]) as database, replica_on(database) as replica:
        await delivery.Delivery(replica.audit, sink_of(sys.argv[2])).run()
    await asyncio.sleep(60)

asyncio.run(main())
"""


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
    expected = []
    for number in range(EVENTS):
        caller = Caller(TENANTS[number % 3 % 2], "00000001", frozenset({Role.INVOKER}))
        event = replica.audit.new_event(
            caller, "middleware.invoke", OUTCOME_OK, None, details={"number": number}
        )
        await replica.audit.record(event)
        expected.append((caller.tenant, str(event.id)))
        if number % 50 == 49:
            await seal_all(replica.audit)
    certificate, port = self_signed(tmp_path), free_port()
    address = f"syslog+tls://127.0.0.1:{port}?ca={certificate}"
    with rsyslog(tmp_path, certificate, port) as written:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", CHILD, f"sqlite:///{tmp_path}/sluice.db", address),
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        try:
            async with asyncio.timeout(60):
                while len(received(written)) < 60:
                    assert child.returncode is None
                    await asyncio.sleep(0.01)
        finally:
            child.send_signal(signal.SIGKILL)
            await child.wait()
    delivering = Delivery(replica.audit, sink_of(address))
    await delivering.run()  # the server is away
    assert delivering.failures == 1
    before = len(received(written))
    assert 60 <= before < EVENTS
    with rsyslog(tmp_path, certificate, port) as written:
        async with asyncio.timeout(60):
            while len({line.partition("{")[2] for line in received(written)}) < EVENTS:
                await delivering.run()
                await asyncio.sleep(0.05)
    lines = received(written)
    assert all(line.startswith("109 sluice ocsf ") for line in lines)
    documents = [json.loads(line[line.index("{") :]) for line in lines]
    assert faults(documents[0]) == []
    first = dict.fromkeys((each["metadata"]["tenant_uid"], each["metadata"]["uid"]) for each in documents)
    for tenant in TENANTS:
        assert [uid for name, uid in first if name == tenant] == [
            uid for name, uid in expected if name == tenant
        ]
    # What was under way when the process was killed came again, and no more.
    assert EVENTS <= len(lines) <= EVENTS + 10
