"""What is known of a writer is forgotten when it is long over and all of its events are in the log, and not before."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from app.core.access import Caller, Role
from app.core.audit import GAP_ACTION, OUTCOME_OK
from app.services.audit.sealer import LogSealer
from app.services.audit.verification import LogVerifier
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import as_owner
from tests.integration.access_setup import Replica, replica_on
from tests.integration.sealing import seal_all

DAY_S = 24 * 3600.0


@pytest.fixture
async def replica(own_database_url: str) -> AsyncIterator[Replica]:
    """Return a process on a database of this test's own: writers of all tenants are forgotten."""
    async with Database(own_database_url, patience=PATIENT) as database, replica_on(database) as running:
        yield running


async def record(replica: Replica, tenant: str, *, by_new_writer: bool = False) -> None:
    if by_new_writer:
        replica.writer._writers.free.clear()
    caller = Caller(tenant, "00000001", frozenset({Role.INVOKER}))
    await replica.audit.record(replica.audit.new_event(caller, "middleware.invoke", OUTCOME_OK, None))


async def known(replica: Replica) -> list[tuple[str, int]]:
    """Return the tenant and the highest number of each writer that is known."""
    async with replica.database.system_transaction(write=False) as tx:
        rows = await tx.execute(text("SELECT tenant, number FROM log_writer ORDER BY tenant, number"))
        return [(row.tenant, row.number) for row in rows]


async def gaps(replica: Replica, tenant: str) -> int:
    return len(await replica.events(tenant, action=GAP_ACTION))


async def test_writers_are_forgotten_a_week_after_their_day(replica: Replica) -> None:
    sealer = LogSealer.over(replica.audit)
    for _ in range(2):
        await record(replica, "acme")
    await record(replica, "borealis", by_new_writer=True)
    await seal_all(replica.audit)
    assert await known(replica) == [("acme", 2), ("borealis", 1)]
    replica.clock.advance(7 * DAY_S)
    assert await sealer.forget_writers() == 0
    await record(replica, "acme", by_new_writer=True)
    await record(replica, "acme")
    await seal_all(replica.audit)
    replica.clock.advance(1.5 * DAY_S)
    assert await sealer.forget_writers() == 2
    assert await known(replica) == [("acme", 2)], "the writer of two days ago stays"
    # Its numbers go on where they were, and those of a new writer begin: neither is a gap.
    await record(replica, "acme")
    await record(replica, "borealis", by_new_writer=True)
    await seal_all(replica.audit)
    assert await known(replica) == [("acme", 3), ("borealis", 1)]
    assert await gaps(replica, "acme") == await gaps(replica, "borealis") == 0
    assert (await LogVerifier(replica.audit).verify()).findings == []


async def test_a_writer_stays_while_an_event_of_it_waits_or_a_number_may_still_come(replica: Replica) -> None:
    sealer = LogSealer.over(replica.audit)
    for tenant in ("acme", "borealis", "cedar"):
        await record(replica, tenant)
    await seal_all(replica.audit)
    await record(replica, "acme")
    await as_owner(
        replica.database, "UPDATE log_writer SET missing = '[[1, 1]]', number = 2 WHERE tenant = 'borealis'"
    )
    replica.clock.advance(30 * DAY_S)
    assert await sealer.forget_writers() == 1
    assert await known(replica) == [("acme", 1), ("borealis", 2)]
    await seal_all(replica.audit)
    replica.clock.advance(30 * DAY_S)
    assert await sealer.forget_writers() == 1
    assert await known(replica) == [("borealis", 2)]
    assert await gaps(replica, "acme") == 0


async def test_a_writer_that_the_previous_release_met_is_given_time(replica: Replica) -> None:
    sealer = LogSealer.over(replica.audit)
    await record(replica, "acme")
    await seal_all(replica.audit)
    await as_owner(replica.database, "UPDATE log_writer SET at = NULL")
    replica.clock.advance(30 * DAY_S)
    assert await sealer.forget_writers() == 0
    replica.clock.advance(9 * DAY_S)
    assert await sealer.forget_writers() == 1


async def test_a_deletion_by_hand_is_still_found_after_writers_were_forgotten(replica: Replica) -> None:
    for _ in range(3):
        await record(replica, "acme")
    await seal_all(replica.audit)
    replica.clock.advance(30 * DAY_S)
    assert await LogSealer.over(replica.audit).forget_writers() == 1
    await as_owner(replica.database, "DELETE FROM audit_event WHERE writer_seq = 2")
    result = await LogVerifier(replica.audit).verify()
    assert [finding.kind for finding in result.findings] == ["missing"]
