"""Reading the record: filters, pages, exports, and whose events one sees."""

import base64
import csv
import io
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.errors import ForbiddenError, InvalidArgumentsError, NotFoundError
from app.core.request import RequestInfo
from app.services.audit.audit import AuditQuery
from app.services.audit.keeping import KeptContent
from app.store.audit.audit import AuditFilters, list_events
from app.store.database import Database
from tests.integration.access_setup import Replica, replica_on


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
def auditor(tenant: str) -> Caller:
    return Caller(tenant, "0000000a", frozenset({Role.AUDITOR}))


async def recorded(replica: Replica, caller: Caller, count: int, **fields: Any) -> list[AuditEvent]:
    """Record events one second apart and return them."""
    events = []
    for _ in range(count):
        replica.clock.advance(1)
        events.append(
            replica.audit.new_event(caller, fields.pop("action", "act"), OUTCOME_OK, None, **fields)
        )
    await replica.audit.record(*events)
    return events


async def test_pages_join_without_gap_or_repetition_while_others_write(
    replica: Replica, auditor: Caller
) -> None:
    events = await recorded(replica, auditor, 25)
    seen: list[AuditEvent] = []
    cursor = None
    for _ in range(20):
        page = await replica.audit.query(auditor, AuditQuery(), limit=4, cursor=cursor)
        seen += page.items
        cursor = page.next
        await recorded(replica, auditor, 1)  # newer than the first page: not seen by the later ones
        if cursor is None:
            break
    assert cursor is None
    assert [event.id for event in seen] == [event.id for event in reversed(events)]


async def test_a_page_that_ends_with_the_last_event_has_no_next(replica: Replica, auditor: Caller) -> None:
    await recorded(replica, auditor, 4)
    assert (await replica.audit.query(auditor, AuditQuery(action="act"), limit=4)).next is None
    assert (await replica.audit.query(auditor, AuditQuery(action="act"), limit=3)).next is not None
    assert (await replica.audit.query(auditor, AuditQuery(action="none"))).items == []


async def test_each_filter_filters(replica: Replica, auditor: Caller, tenant: str) -> None:
    other = Caller(tenant, "0000000b", frozenset({Role.INVOKER}))
    request = RequestInfo("req-7", None, None, 0, client_request_id="theirs-of-the-client")
    plain = await recorded(replica, auditor, 2)
    (special,) = [
        replica.audit.new_event(
            other,
            "special",
            "failed",
            request,
            middleware="pii_redaction",
            scope_ref=replica.audit.scope_ref(tenant, "chat"),
        )
    ]
    await replica.audit.record(special)
    asked: list[dict[str, Any]] = [
        {"actor": "0000000b"},
        {"action": "special"},
        {"outcome": "failed"},
        {"middleware": "pii_redaction"},
        {"scope": "chat"},
        {"request_id": "req-7"},
        {"client_request_id": "theirs-of-the-client"},
        {"action": "special", "actor": "0000000b"},
    ]
    for one in asked:
        assert await replica.events(tenant, **one) == [special], one
    assert await replica.events(tenant, action="special", actor="0000000a") == []
    first, second = (event.at for event in plain)
    assert await replica.events(tenant, action="act", since=second) == plain[1:]
    assert await replica.events(tenant, action="act", until=second) == plain[:1]
    assert await replica.events(tenant, action="act", since=first, until=first) == []
    assert await replica.events(tenant, action="act", since=first - timedelta(hours=1)) == plain


async def test_an_auditor_reads_their_own_tenant_only(replica: Replica, auditor: Caller, tenant: str) -> None:
    foreign = Caller(f"{tenant}-x", "0000000c", frozenset({Role.AUDITOR}))
    events = await recorded(replica, foreign, 3)
    assert (await replica.audit.query(auditor, AuditQuery())).items == []
    forged = base64.urlsafe_b64encode(b"\x01" + (b"\xff" * 16)).rstrip(b"=").decode()
    page = await replica.audit.query(auditor, AuditQuery(actor="0000000c"), cursor=forged)
    assert page.items == []
    assert b"".join([piece async for piece in await replica.audit.export(foreign, AuditQuery(), "jsonl")])
    both = Caller(tenant, "0000000a", frozenset({Role.AUDITOR, Role.RESTORER}))
    with pytest.raises(NotFoundError):
        await KeptContent(replica.audit).open(both, events[0].id, "a complaint")
    # Negative control: the rows are there, and their own auditor sees them.
    assert len((await replica.audit.query(foreign, AuditQuery(action="act"))).items) == 3
    async with replica.database.transaction(tenant, write=False) as tx:
        hidden = await list_events(tx, foreign.tenant, AuditFilters(), before=None, limit=10)
    assert replica.database.embedded or hidden == []


async def test_only_auditors_read_and_every_look_is_on_record(replica: Replica, auditor: Caller) -> None:
    operator = Caller(auditor.tenant, "0000000d", frozenset(Role) - {Role.AUDITOR})
    with pytest.raises(ForbiddenError):
        await replica.audit.query(operator, AuditQuery())
    with pytest.raises(ForbiddenError):
        await replica.audit.export(operator, AuditQuery(), "csv")
    await replica.audit.query(auditor, AuditQuery(actor="Ann Smith", outcome="ok"))
    await replica.audit.export(auditor, AuditQuery(), "csv")
    looks = await replica.events(auditor.tenant)
    assert [(look.action, look.outcome) for look in looks] == [
        ("audit.query", "refused"),
        ("audit.export", "refused"),
        ("audit.query", "ok"),
        ("audit.export", "ok"),
    ]
    assert looks[2].details == {"filters": "actor,outcome", "returned": 0}
    assert "Ann" not in repr(looks)


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"limit": 0}, "/limit"),
        ({"limit": 1001}, "/limit"),
        ({"cursor": ""}, "/cursor"),
        ({"cursor": "not ours"}, "/cursor"),
        ({"cursor": "ä"}, "/cursor"),
        ({"cursor": base64.urlsafe_b64encode(uuid4().bytes).decode()}, "/cursor"),
    ],
)
async def test_a_wrong_page_is_refused(
    replica: Replica, auditor: Caller, options: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(InvalidArgumentsError) as refusal:
        await replica.audit.query(auditor, AuditQuery(), **options)
    assert refusal.value.details["pointer"] == pointer


async def test_a_time_without_a_zone_is_refused(replica: Replica, auditor: Caller) -> None:
    with pytest.raises(InvalidArgumentsError) as refusal:
        await replica.audit.query(auditor, AuditQuery(since=datetime(2026, 1, 1)))  # noqa: DTZ001
    assert refusal.value.details["pointer"] == "/since"


async def test_an_export_holds_every_event_once_in_both_formats(replica: Replica, auditor: Caller) -> None:
    events = await recorded(replica, auditor, 1101, counts={"PERSON": 1})
    wanted = [str(event.id) for event in reversed(events)]
    asked = AuditQuery(action="act")
    lines = b"".join([piece async for piece in await replica.audit.export(auditor, asked, "jsonl")])
    assert [json.loads(line)["id"] for line in lines.splitlines()] == wanted
    table = b"".join([piece async for piece in await replica.audit.export(auditor, asked, "csv")])
    rows = list(csv.DictReader(io.StringIO(table.decode())))
    assert [row["id"] for row in rows] == wanted
    assert {row["counts"] for row in rows} == {'{"PERSON":1}'}


async def test_an_unknown_format_is_refused(replica: Replica, auditor: Caller) -> None:
    with pytest.raises(InvalidArgumentsError):
        await replica.audit.export(auditor, AuditQuery(), "xlsx")
