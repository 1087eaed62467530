"""A query reads database and archive as one record: every filter, each event once, no other tenant's."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.archive import ArchiveError
from app.core.audit import AuditEvent
from app.engines.archive import parquet
from app.engines.archive.choosing import archive_at
from app.services.audit import export
from app.services.audit.archive import archiving, reading
from app.services.audit.audit import AuditQuery
from tests.factories import as_owner
from tests.integration.archiving import Months, months_on

pytestmark = pytest.mark.in_turn("module_url")


class Both:
    """Months of which the archive has March and April, the database April and May."""

    def __init__(self, months: Months, place: Path) -> None:
        self.months, self.place = months, place
        self.tenant = months.tenants[0]
        self.caller = Caller(self.tenant, "0000000c", frozenset({Role.AUDITOR}))

    async def query(self, *, archived: bool = True, limit: int = 1000, **asked: Any) -> list[AuditEvent]:
        """Return all pages of a query but what queries and the tenant's making have left."""
        events: list[AuditEvent] = []
        cursor, asked = None, {"since": self.months.began, **asked}
        while True:
            page = await self.months.replica.audit.query(
                self.caller,
                AuditQuery(**asked),
                limit=limit,
                cursor=cursor,
                archive=archive_at(str(self.place)) if archived else None,
            )
            events += page.items
            cursor = page.next
            if cursor is None:
                return [event for event in events if event.action == "middleware.invoke"]


@pytest.fixture
async def both(module_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Both]:
    monkeypatch.setattr(archiving, "PART", 5)
    monkeypatch.setattr(parquet, "_GROUP", 2)
    async with months_on(module_url) as months:
        for tenant in months.tenants:
            assert not (await months.archive(tmp_path, tenant=tenant)).failures
        await as_owner(
            months.replica.database,
            "DELETE FROM audit_event WHERE tenant = :tenant AND at < :until AND action = 'middleware.invoke'",
            tenant=months.tenants[0],
            until=months.events[months.tenants[0]][12].at,
        )
        yield Both(months, tmp_path)


def numbers(events: list[AuditEvent]) -> list[Any]:
    return [(event.at.month, event.details["number"]) for event in events]


async def test_every_event_is_there_once(both: Both) -> None:
    expected = sorted(both.months.events[both.tenant], key=lambda event: event.id, reverse=True)
    assert len(expected) == 12 + 7 + 2
    for limit in (1000, 4, 1):
        assert [event.id for event in await both.query(limit=limit)] == [event.id for event in expected]
    assert [event.id for event in await both.query(archived=False)] == [event.id for event in expected[:9]]
    # An event of the archive has all that it had, but what was kept with it.
    (event,) = [event for event in await both.query() if event.id == expected[-2].id]
    original = expected[-2]
    for name in ("at", "actor", "outcome", "counts", "details", "decision", "versions", "on_behalf_of"):
        assert getattr(event, name) == getattr(original, name)
    assert (event.roles, event.sealed) == (("auditor", "invoker"), None)


async def test_every_filter_works(both: Both) -> None:
    recorded = both.months.events[both.tenant]
    third = recorded[3]
    for asked, passes in (
        ({"actor": "0000000a"}, lambda _event: True),
        ({"actor": "0000000b"}, lambda _event: False),
        ({"middleware": "pii_redaction"}, lambda _event: True),
        ({"middleware": "echo"}, lambda _event: False),
        ({"action": "middleware.invoke"}, lambda _event: True),
        ({"outcome": "refused"}, lambda _event: False),
        ({"user": "Zoë"}, lambda _event: True),
        ({"user": "Zoe"}, lambda _event: False),
        ({"on_behalf_of": third.on_behalf_of}, lambda _event: True),
        ({"client_request_id": "request-of-client-3"}, lambda event: event.details["number"] == 3),
        ({"client_request_id": "request-of-client-1"}, lambda event: event.details["number"] == 1),
        ({"scope": "odd"}, lambda event: event.details["number"] % 2 == 1),
        ({"scope": "none"}, lambda _event: False),
        ({"request_id": "none"}, lambda _event: False),
        ({"since": third.at}, lambda event: event.at >= third.at),
        ({"until": third.at}, lambda event: event.at < third.at),
        ({"since": third.at, "until": recorded[14].at}, lambda event: third.at <= event.at < recorded[14].at),
    ):
        expected = {event.id for event in recorded if passes(event)}
        assert {event.id for event in await both.query(**asked)} == expected, asked


async def test_an_export_has_both(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_PAGE", 3)
    monkeypatch.setattr(reading, "_CHUNK", 4)
    recorded = both.months.events[both.tenant]
    pieces = await both.months.replica.audit.export(
        both.caller,
        AuditQuery(action="middleware.invoke"),
        "jsonl",
        archive=archive_at(str(both.place)),
    )
    lines = [json.loads(line) async for piece in pieces for line in piece.split(b"\n") if line]
    assert [line["id"] for line in lines] == sorted((str(event.id) for event in recorded), reverse=True)


async def test_reading_the_archive_is_on_record(both: Both) -> None:
    await both.query()
    page = await both.months.replica.audit.query(both.caller, AuditQuery(action="audit.query"))
    assert page.items[0].details["archive"] == f"folder {both.place.name}"


async def test_no_tenant_sees_events_of_another(both: Both) -> None:
    other = both.months.tenants[1]
    expected = {event.id for event in both.months.events[both.tenant]}
    assert {event.id for event in await both.query()} == expected
    # Neither in its folder, nor behind its name.
    march = both.place / both.tenant / "2025-03-001.parquet"
    march.write_bytes((both.place / other / march.name).read_bytes())
    with pytest.raises(ArchiveError, match="another file"):
        await both.query()


async def test_a_file_that_cannot_be_read_is_named_and_not_left_out(both: Both) -> None:
    march = both.place / both.tenant / "2025-03-001.parquet"
    march.write_bytes(march.read_bytes()[:-20])
    with pytest.raises(ArchiveError, match="2025-03-001"):
        await both.query()
