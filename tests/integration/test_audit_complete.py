"""The audit log over REST is whole: whatever clocks did, and in whichever order its events were committed."""

import asyncio
import json
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.core.access import Caller, Role
from app.core.ids import uuid7
from tests.integration.rest_app import Rest, open_rest

YEAR = 365 * 24 * 3600 * 1000


@pytest.fixture
async def rest(database_url: str) -> Any:
    async with open_rest(database_url) as opened:
        yield opened


def shifted(event_id: UUID, millis: int) -> UUID:
    """Return ``event_id`` as a clock that goes wrong by ``millis`` would have made it."""
    return UUID(int=event_id.int + (millis << 80))


async def exported(rest: Rest, action: str = "act", form: str = "jsonl") -> list[str]:
    answer = await rest.call("GET", f"/api/v1/audit/export?action={action}&format={form}", roles=["auditor"])
    assert answer.status_code == 200
    lines = answer.text.splitlines()
    if form == "csv":
        return [line.split(",")[0] for line in lines[1:]]
    return [json.loads(line)["id"] for line in lines]


async def paged(rest: Rest, limit: int) -> list[str]:
    ids: list[str] = []
    cursor = ""
    while True:
        path = f"/api/v1/audit/events?action=act&limit={limit}{cursor}"
        page = (await rest.call("GET", path, roles=["auditor"])).json()
        ids += [event["id"] for event in page["items"]]
        if page["next"] is None:
            return ids
        cursor = f"&cursor={page['next']}"


async def test_events_of_clocks_that_step_are_all_exported_and_paged_once_each(rest: Rest) -> None:
    audit = rest.services.audit
    caller = Caller(rest.tenant, "0000000c", frozenset(Role))
    plain = [audit.new_event(caller, "act", "ok", None) for _ in range(13)]
    steps = (0, YEAR, -YEAR, 3_600_000, -3_600_000)
    events = [
        replace(event, id=shifted(event.id, steps[number % len(steps)])) for number, event in enumerate(plain)
    ]
    for event in events:
        await audit.record(event)

    stored = {str(event.id) for event in events}
    for form in ("jsonl", "csv"):
        found = await exported(rest, form=form)
        assert (len(found), set(found)) == (13, stored)
    for limit in (1, 5, 13):
        found = await paged(rest, limit)
        assert (len(found), set(found)) == (13, stored)


async def test_an_export_does_not_hold_itself(rest: Rest) -> None:
    first = await exported(rest, "audit.export")
    second = await exported(rest, "audit.export")
    assert (len(first), len(second)) == (0, 1)


async def test_an_event_that_is_being_committed_is_waited_for(rest: Rest) -> None:
    database, audit = rest.services.audit.database, rest.services.audit
    if database.embedded:
        return  # one connection writes at a time, and readers see what it has committed
    await rest.key(Role.AUDITOR)
    caller = Caller(rest.tenant, "0000000c", frozenset(Role))
    early = replace(audit.new_event(caller, "act", "ok", None), id=uuid7())
    for read in (exported(rest), paged(rest, 5)):
        open_event = replace(early, id=uuid7(), request_id=uuid4().hex)
        async with database.transaction(rest.tenant) as tx:
            await audit.record_with(tx, open_event)
            reading = asyncio.create_task(read)
            await asyncio.sleep(0.3)
            assert not reading.done()
        assert str(open_event.id) in await reading
