"""What tests of sinks against real servers share: events, a process that delivers until it is killed, and the order."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from tests.integration.access_setup import Replica
from tests.integration.sealing import seal_all

EVENTS = 400
TENANTS = ("acme", "borealis")
BATCH = 10
FIRST = 60
"""Events that arrive before the process is killed."""
_CHILD = """
import asyncio, sys
from app.engines.sinks.choosing import sink_of
from app.services.audit.sinks import delivery
from app.store.database import Database
from tests.integration.access_setup import replica_on

async def main():
    delivery.BATCH = int(sys.argv[3])
    async with Database(sys.argv[1]) as database, replica_on(database) as replica:
        await delivery.Delivery(replica.audit, sink_of(sys.argv[2])).run()
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def recorded(replica: Replica) -> Sequence[tuple[str, str]]:
    """Record and seal events of two tenants; return tenant and id of each in their order."""
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
    return expected


async def killed(database_url: str, address: str, arrived: Callable[[], int]) -> None:
    """Deliver in a process of its own, and kill it once the first events have arrived."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _CHILD, database_url, address, str(BATCH)),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    try:
        async with asyncio.timeout(60):
            while arrived() < FIRST:
                assert child.returncode is None
                await asyncio.sleep(0.01)
    finally:
        child.send_signal(signal.SIGKILL)
        await child.wait()


def assert_whole(documents: Iterable[dict[str, Any]], expected: Sequence[tuple[str, str]]) -> None:
    """Check that each event arrived, in the order of its tenant by its first arrival."""
    first = dict.fromkeys((each["metadata"]["tenant_uid"], each["metadata"]["uid"]) for each in documents)
    for tenant in TENANTS:
        own = [uid for name, uid in expected if name == tenant]
        assert [uid for name, uid in first if name == tenant] == own
