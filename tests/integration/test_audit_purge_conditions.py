"""Each condition of the deletion by itself: nothing else stands between an event and whoever may add to the record.

A statement that somebody forged names everything. It needs no key: only who verifies looks at its authentication code.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from app.services.access.access import HOST
from app.services.audit.sealer import LogSealer
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import as_owner
from tests.integration.access_setup import Clock, replica_on
from tests.integration.sealing import seal_all
from tests.integration.test_audit_retention import DAY_S, KEEP, Kept

pytestmark = pytest.mark.in_turn("module_url")

MADE = 1
"""The event of the tenant's making, a hundred days ago."""
FIRST = MADE + 1
"""That, and the event of its policy."""


class Forging(Kept):
    """A tenant in whose record somebody states what is to be deleted."""

    async def state(self, pruned: str = "0-9999", *, seal: bool = True) -> None:
        before = (self.replica.clock.now() - timedelta(days=2)).isoformat()
        details = {"pruned": pruned, "before": before}
        await self.record(1, action="audit.purge", details=details, seal=seal)

    async def record_dated(self, count: int, *, at_days: float, logged_days: float) -> None:
        """Record events that say they are ``at_days`` old, in heads that were logged ``logged_days`` ago."""
        clock = self.replica.clock
        clock.advance(-at_days * DAY_S)
        events = [self.event(number) for number in range(count)]
        clock.advance((at_days - logged_days) * DAY_S)
        await self.replica.audit.record(*events)
        await seal_all(self.replica.audit)
        clock.advance(logged_days * DAY_S)

    async def age(self, **days: Any) -> None:
        """Date what is stored back by so many days, as the owner of the database could."""
        for table, back in days.items():
            past = self.replica.clock.now() - timedelta(days=back)
            change = f"UPDATE {table} SET at = :past WHERE tenant = :tenant"  # noqa: S608
            await as_owner(self.replica.database, change, past=past, tenant=self.tenant)


@pytest.fixture
async def forging(module_url: str) -> AsyncIterator[Forging]:
    clock = Clock()
    clock.advance(-100 * DAY_S)
    async with (
        Database(module_url, patience=PATIENT) as database,
        replica_on(database, clock) as replica,
    ):
        made = Forging(replica)
        await replica.tenants.create(HOST, made.tenant)
        yield made


async def test_an_event_that_only_says_that_it_is_old_stays(forging: Forging) -> None:
    forging.arrive_after(0)
    await forging.keep(**KEEP)
    await forging.record_dated(3, at_days=40, logged_days=40)
    await forging.record_dated(10, at_days=40, logged_days=0)
    await forging.state()
    assert await forging.call() == MADE + 3, "the head over the others was logged today"
    assert await forging.call() == 0
    # Negative control: with heads of that time they go.
    await forging.age(log_entry=40)
    assert await forging.call() == 10


async def test_an_event_that_only_its_head_calls_old_stays(forging: Forging) -> None:
    forging.arrive_after(0)
    await forging.keep(**KEEP)
    await forging.record_dated(10, at_days=0, logged_days=40)
    await forging.record_dated(5, at_days=40, logged_days=40)
    await forging.state()
    assert await forging.call() == MADE + 5
    assert await forging.count(condition="action = 'middleware.invoke'") == 10


async def test_a_statement_that_is_sealed_and_not_signed_takes_nothing(
    forging: Forging, monkeypatch: pytest.MonkeyPatch
) -> None:
    forging.arrive_after(31)
    await forging.keep(**KEEP)
    await forging.record(10, days=31)

    async def dies(_sealer: LogSealer) -> None:
        """End as a process that is killed before it signs."""

    with monkeypatch.context() as patch:
        patch.setattr(LogSealer, "_sign", dies)
        await forging.state()
    assert await forging.count("log_leaf") == FIRST + 10 + 1
    assert await forging.call() == 0
    await seal_all(forging.replica.audit)
    await LogSealer.over(forging.replica.audit).seal()
    assert await forging.call() == FIRST + 10, "negative control: it is signed now"


async def test_a_statement_names_nothing_behind_itself(forging: Forging) -> None:
    """Also where the head that covers it was logged over events behind it, too."""
    forging.arrive_after(31)
    await forging.keep(**KEEP)
    for step in (forging.record(5, seal=False), forging.state(seal=False), forging.record(5, days=31)):
        forging.replica.clock.advance(1)
        await step
    assert await forging.call() == FIRST + 5
    assert await forging.call() == 0
    assert await forging.count() == 1 + 5


async def test_no_call_deletes_more_than_it_was_asked_for(forging: Forging) -> None:
    forging.arrive_after(31)
    await forging.keep(**KEEP)
    await forging.record(9)
    await forging.state("0-2,4-6,8-10")
    await forging.record(1, days=31)
    assert [await forging.call(most=4) for _ in range(4)] == [4, 4, 1, 0]
