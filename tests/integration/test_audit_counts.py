"""Counts of sealed events: each is counted once, whatever comes in between, and nobody sees another tenant's."""

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.audit import AuditEvent
from app.services.audit import counts as module
from app.services.audit.counts import AuditCounts
from app.store.audit.counts import add_counts
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import as_owner
from tests.integration.access_setup import Replica, replica_on
from tests.integration.rest_app import Rest, open_rest
from tests.integration.sealing import seal_all

DIMENSIONS = ("day", "action", "outcome", "actor")
BEGIN = datetime(2026, 11, 20, 23, 59, tzinfo=UTC)


@pytest.fixture
async def replica(own_database_url: str) -> AsyncIterator[Replica]:
    async with Database(own_database_url, patience=PATIENT) as database, replica_on(database) as running:
        yield running


def key_of(event: AuditEvent) -> tuple[str, ...]:
    return f"{event.at:%Y-%m-%d}", event.action, event.outcome, event.actor


async def record(replica: Replica, tenant: str, count: int) -> list[AuditEvent]:
    events = []
    for number in range(count):
        replica.clock.moment = BEGIN + timedelta(seconds=number)
        caller = Caller(tenant, f"0000000{number % 2}", frozenset({Role.INVOKER}))
        outcome = "refused" if number % 5 == 0 else "ok"
        events.append(replica.audit.new_event(caller, f"act.{number % 3}", outcome, None))
    await replica.audit.record(*events)
    return events


async def counted(replica: Replica, tenant: str) -> tuple[Counter[tuple[str, ...]], int, int]:
    auditor = Caller(tenant, "0000000f", frozenset({Role.AUDITOR}))
    page = await AuditCounts(replica.audit).counts(auditor, DIMENSIONS)
    sums = Counter({row.values: row.events for row in page.items if row.values[1].startswith("act.")})
    return sums, page.counted, page.sealed


async def test_each_sealed_event_is_counted_once(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 7)
    mine, theirs = await record(replica, "acme", 80), await record(replica, "borealis", 20)
    assert await counted(replica, "acme") == (Counter(), 0, 0)
    await seal_all(replica.audit)
    assert (await counted(replica, "acme"))[1:] == (0, 81)  # with the question before
    counts = AuditCounts(replica.audit)
    assert await counts.count() == 101  # with the first question
    assert await counts.count() == 0
    sums, reach, sealed = await counted(replica, "acme")
    assert (sums, reach, sealed) == (Counter(map(key_of, mine)), 81, 81)
    assert {day for day, *_ in sums} == {"2026-11-20", "2026-11-21"}
    assert (await counted(replica, "borealis"))[0] == Counter(map(key_of, theirs))
    more = await record(replica, "acme", 10)
    await seal_all(replica.audit)
    await counts.count()
    async with replica.database.system_transaction() as tx:
        assert not await add_counts(tx, "acme", 0, 7)  # another process that lags behind
        assert not await add_counts(tx, "acme", 1000, 1007)  # and one that would leave some out
    assert (await counted(replica, "acme"))[0] == Counter(map(key_of, [*mine, *more]))


async def test_counts_stay_when_their_events_go(replica: Replica) -> None:
    made = await record(replica, "acme", 12)
    await seal_all(replica.audit)
    await AuditCounts(replica.audit).count()
    await as_owner(replica.database, "DELETE FROM audit_event WHERE tenant = 'acme'")
    assert (await counted(replica, "acme"))[0] == Counter(map(key_of, made))


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as running:
        yield running


async def ask(rest: Rest, query: str, **options: Any) -> Any:
    return await rest.call("GET", f"/api/v1/audit/counts{query}", roles=[Role.AUDITOR], **options)


@pytest.mark.in_turn("database_url")
async def test_an_auditor_asks_for_sums_by_day_and_outcome(rest: Rest) -> None:
    for _ in range(3):
        await rest.invoke("timestamp_injector", ["Hello"], roles=[Role.INVOKER])
    await rest.invoke("no_such_middleware", ["Hello"], roles=[Role.INVOKER])
    await seal_all(rest.services.audit)
    await AuditCounts(rest.services.audit).count()
    answer = (await ask(rest, "?by=action&by=outcome&by=action")).json()
    assert {"action": "middleware.invoke", "outcome": "ok", "events": 3} in answer["items"]
    assert {"action": "middleware.invoke", "outcome": "refused", "events": 1} in answer["items"]
    assert answer["counted"] == answer["sealed"] == sum(item["events"] for item in answer["items"])
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    (day,) = (await ask(rest, "")).json()["items"]
    assert (set(day), day["events"]) == ({"day", "events"}, answer["counted"])
    assert (await ask(rest, f"?until={day['day']}")).json()["items"] == []
    assert (await ask(rest, f"?since={today}&by=day")).status_code == 200
    for wrong in ("?by=tenant", "?since=yesterday", "?by=day&by=day&by=day&by=day&by=day"):
        assert (await ask(rest, wrong)).status_code == 422, wrong
    assert (await rest.call("GET", "/api/v1/audit/counts", roles=[Role.INVOKER])).status_code == 403
    page = await rest.call("GET", "/api/v1/audit/events?action=audit.counts", roles=[Role.AUDITOR])
    assert page.json()["items"][-1]["details"] == {"by": "action,outcome", "returned": len(answer["items"])}
