"""Runs of retention: what they state, how often, and which statements excuse that an event is gone."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from app.services.access.access import HOST
from app.services.audit import retention as module
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import as_owner
from tests.integration.access_setup import Clock, replica_on
from tests.integration.sealing import seal_all
from tests.integration.test_audit_retention import DAY_S, KEEP, Kept


@pytest.fixture
async def kept(own_database_url: str) -> AsyncIterator[Kept]:
    """Return a tenant of a hundred days ago."""
    clock = Clock()
    clock.advance(-100 * DAY_S)
    async with (
        Database(own_database_url, patience=PATIENT) as database,
        replica_on(database, clock) as replica,
    ):
        made = Kept(replica)
        await replica.tenants.create(HOST, made.tenant)
        yield made


async def test_while_a_tenant_is_held_nothing_is_stated_either(kept: Kept) -> None:
    await kept.keep(**KEEP, hold=True)
    await kept.record(10, days=31)
    assert await kept.retention.purge(kept.tenant) == []
    assert await kept.count(condition="action = 'audit.purge'") == 0
    # Negative control: only the hold stood in the way.
    await kept.keep(**KEEP)
    assert await kept.purge() == (0, 12)


async def test_a_statement_of_what_is_not_a_day_old_excuses_nothing(kept: Kept) -> None:
    await kept.keep(**KEEP)
    await kept.record(10, days=5)
    for hours, kinds, pruned in ((12, {"missing"}, 0), (48, set(), 10)):
        before = (kept.replica.clock.now() - timedelta(hours=hours)).isoformat()
        await kept.record(1, action="audit.purge", details={"pruned": "2-11", "before": before})
        await kept.delete_by_hand("action = 'middleware.invoke'")
        leaves = "DELETE FROM log_leaf WHERE tenant = :tenant AND position BETWEEN 2 AND 11"
        await as_owner(kept.replica.database, leaves, tenant=kept.tenant)
        result = await kept.verify()
        assert ({finding.kind for finding in result.findings}, result.pruned) == (kinds, pruned)


async def test_one_run_deletes_all_but_what_its_last_statement_names(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STATED", 10)
    await kept.keep(**KEEP)
    await kept.record(43, days=31)

    async def sealed(_seconds: float) -> None:
        await seal_all(kept.replica.audit)

    kept.retention.sleep = sealed
    await kept.retention.run()
    assert await kept.count() == 5 + 5, "the last five, which its last statement names, and the statements"
    assert (await kept.verify()).holds
    await seal_all(kept.replica.audit)
    assert await kept.purge() == (5, 0)


async def test_a_run_ends_where_a_statement_is_not_sealed_in_time(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STATED", 10)
    await kept.keep(**KEEP)
    await kept.record(43, days=31)
    waited: list[float] = []

    async def unsealed(seconds: float) -> None:
        waited.append(seconds)

    kept.retention.sleep = unsealed
    await kept.retention.run()
    assert len(waited) == 1
    assert await kept.count(condition="action = 'audit.purge'") == 1
