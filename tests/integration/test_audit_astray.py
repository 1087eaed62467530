"""Events whose id tells another time than they do: a page of a time has each of them, and costs no more for it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.services.audit.audit import AuditQuery
from app.store.audit import audit as stored
from app.store.database import Database
from tests.conftest import connect
from tests.factories import PATIENT
from tests.integration.access_setup import replica_on
from tests.integration.rest_app import Rest, open_rest

EVENTS = "/api/v1/audit/events"


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


def id_of(at: datetime) -> UUID:
    return UUID(int=int(at.timestamp() * 1000) << 80 | uuid4().int >> 48)


FIRST, LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)

CLOCKS = {
    # What the id says and what the event says, in seconds after the time that is asked for begins.
    "as made": (60, 60),
    "begins it": (0, 0),
    "half a minute astray": (90, 60),
    "an hour ahead": (3 * 3600, 3600),
    "far ahead": (90 * 86_400, 3600),
    "an hour behind": (-1800, 1800),
    "before it by its own time": (60, -60),
    "behind it by its own time": (60, 2 * 3600 + 60),
    "just before it ends": (2 * 3600 - 30, 2 * 3600 - 30),
    "before it ends, half a minute astray": (2 * 3600 + 20, 2 * 3600 - 10),
    "ends it": (2 * 3600, 2 * 3600),
}
WITHIN = [name for name, (_, at) in CLOCKS.items() if 0 <= at < 2 * 3600]


@pytest.mark.parametrize("limit", [100, 2])
async def test_pages_of_a_time_hold_each_of_its_events_whatever_the_clocks_did(
    rest: Rest, limit: int
) -> None:
    begins = datetime.now(UTC).replace(microsecond=0) - timedelta(days=20)
    made: dict[str, AuditEvent] = {}
    caller = Caller(rest.tenant, "0000000a", frozenset({Role.INVOKER}))
    for name, (told, at) in CLOCKS.items():
        event = rest.vault.audit.new_event(caller, "act", OUTCOME_OK, None)
        told_at = begins + timedelta(seconds=told)
        made[name] = replace(event, at=begins + timedelta(seconds=at), id=id_of(told_at))
        await rest.vault.audit.record(made[name])
    expected = sorted((made[name].id for name in WITHIN), reverse=True)
    assert len(expected) == 8
    query = {"since": begins.isoformat(), "until": (begins + timedelta(hours=2)).isoformat(), "limit": limit}
    for filters in ({}, {"action": "act"}, {"actor": "0000000a", "outcome": "ok"}):
        ids: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            answer = await rest.call("GET", EVENTS, params={**query, **filters, **cursor}, roles=["auditor"])
            page = answer.json()
            ids += [event["id"] for event in page["items"]]
            if page["next"] is None:
                break
            assert len(page["items"]) == limit
            cursor = {"cursor": page["next"]}
        assert ids == [str(event) for event in expected]
    # The control: what the bounds leave out is found by the index alone.
    assert await _without_the_index(rest, query) < set(ids)


async def _without_the_index(rest: Rest, query: dict[str, Any]) -> set[str]:
    """Return what a page has while nothing is known to be astray."""

    async def nothing(*_asked: object) -> list[Any]:
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "_list_found", nothing)
        answer = await rest.call("GET", EVENTS, params={**query, "limit": 100}, roles=["auditor"])
    return {event["id"] for event in answer.json()["items"]}


async def test_more_astray_events_than_one_step_finds_come_once_each(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_FOUND", 3)
    begins = datetime.now(UTC) - timedelta(days=20)
    caller = Caller(rest.tenant, "0000000a", frozenset({Role.INVOKER}))
    for number in range(8):
        event = rest.vault.audit.new_event(caller, f"act-{number % 2}", OUTCOME_OK, None)
        late = begins + timedelta(hours=5, seconds=number)
        await rest.vault.audit.record(replace(event, at=begins + timedelta(seconds=number), id=id_of(late)))
    query = {"since": begins.isoformat(), "until": (begins + timedelta(hours=1)).isoformat()}
    for filters, many in (({}, 8), ({"action": "act-1"}, 4), ({"action": "act-1", "limit": 2}, 2)):
        answer = await rest.call("GET", EVENTS, params={**query, **filters}, roles=["auditor"])
        times = [event["at"] for event in answer.json()["items"]]
        assert len(times) == many
        assert times == sorted(set(times), reverse=True)


async def test_more_events_of_a_client_request_than_one_step_finds_come_once_each(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_FOUND", 3)
    caller = Caller(rest.tenant, "0000000a", frozenset({Role.INVOKER}))
    made = []
    for number in range(8):
        details = {"client_request_id": "theirs-of-a-client-1"}
        made.append(
            rest.vault.audit.new_event(caller, f"act-{number % 2}", OUTCOME_OK, None, details=details)
        )
        await rest.vault.audit.record(made[-1])
    for filters, wanted in (({}, made), ({"action": "act-1"}, made[1::2]), ({"limit": 5}, made[3:])):
        query = {"client_request_id": "theirs-of-a-client-1", **filters}
        answer = await rest.call("GET", EVENTS, params=query, roles=["auditor"])
        ids = [event["id"] for event in answer.json()["items"]]
        assert ids == [str(event.id) for event in reversed(wanted)]


async def test_a_time_without_a_beginning_or_an_end_of_all_time_is_answered(rest: Rest) -> None:
    caller = Caller(rest.tenant, "0000000a", frozenset({Role.INVOKER}))
    event = rest.vault.audit.new_event(caller, "act", OUTCOME_OK, None)
    await rest.vault.audit.record(event)
    auditor = Caller(rest.tenant, "0000000b", frozenset({Role.AUDITOR}))
    for since, until in ((FIRST, LAST), (datetime(1970, 1, 1, 0, 1, tzinfo=UTC), None)):
        page = await rest.services.audit.query(auditor, AuditQuery(since, until, action="act"))
        assert [item.id for item in page.items] == [event.id]
    query = {"since": "1971-01-01T00:00:00Z", "until": "9997-12-31T00:00:00Z", "action": "act"}
    answer = await rest.call("GET", EVENTS, params=query, roles=["auditor"])
    assert [item["id"] for item in answer.json()["items"]] == [str(event.id)]


async def test_the_function_finds_the_own_tenants_astray_events_alone(
    postgres_database_url: str, tenant: str
) -> None:
    database = Database(postgres_database_url, patience=PATIENT)
    async with replica_on(database) as replica:
        events = []
        for name in (tenant, f"{tenant}-x"):
            caller = Caller(name, "0000000a", frozenset({Role.INVOKER}))
            event = replica.audit.new_event(caller, "act", OUTCOME_OK, None)
            events.append(replace(event, id=id_of(event.at + timedelta(hours=1))))
            await replica.audit.record(events[-1])
            await replica.audit.record(replica.audit.new_event(caller, "act", OUTCOME_OK, None))
        call = "SELECT id FROM sluice_astray_events(NULL, NULL, NULL, 10)"
        async with database.transaction(tenant, write=False) as tx:
            assert list((await tx.execute(text(call))).scalars()) == [events[0].id]
            await tx.execute(text("SELECT set_config('app.tenant', '', true)"))
            assert list((await tx.execute(text(call))).scalars()) == []
    owner = await connect(database.url.set(drivername="postgresql").render_as_string())
    allowed = "SELECT has_function_privilege('public', oid, 'EXECUTE') FROM pg_proc WHERE proname = $1"
    assert await owner.fetchval(allowed, "sluice_astray_events") is False
    await owner.close()
    await database.close()
