"""Reading a long record: the same events with indexes as without, a time that is said, and no query without an end."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.errors import ConflictError, InvalidArgumentsError
from app.services.access.access import HOST
from app.services.access.tenants import TenantService
from app.services.audit import export
from app.store import migrate
from app.store.audit import audit as stored
from app.store.database import Database
from tests.benchmarks.speed.growth_fill import LARGE, RARE_ACTOR, Fill, fill_events
from tests.conftest import ENGINES, connect, fresh_postgres
from tests.factories import PATIENT, with_schema
from tests.integration.access_setup import Replica, replica_on
from tests.integration.rest_app import Rest, open_rest

pytestmark = pytest.mark.in_turn("filled_url")

EVENTS = "/api/v1/audit/events"
BEFORE = "2026_11_27_audit_log"
HERE = "2026_11_27_audit_indexes"
THEIRS = "the-same-for-two"
CALL = "SELECT id FROM sluice_client_events(:name, NULL, NULL, NULL, 10)"
MADE = 60_000


@pytest.fixture(params=ENGINES, scope="module")
def filled_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return a database with 60,000 events of 90 days, 6,000 of them of the tenant ``large``."""
    if request.param == "sqlite":
        url = with_schema(f"sqlite:///{tmp_path_factory.mktemp('filled')}/sluice.db")
        asyncio.run(fill_events(url, Fill(0, MADE, 2)))
        yield url
        return
    with request.getfixturevalue("migrated_postgres")() as url:
        asyncio.run(fill_events(url, Fill(0, MADE, 2)))
        yield url


@pytest.fixture
async def filled(filled_url: str) -> AsyncIterator[Rest]:
    async with open_rest(filled_url) as opened:
        await make_tenants(opened)
        yield opened


async def make_tenants(rest: Rest) -> None:
    for name in (LARGE, "tenant-1"):
        with suppress(ConflictError):
            await TenantService(rest.services.access).create(HOST, name)


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


@pytest.fixture
def empty_url(postgres_url: str) -> Iterator[str]:
    with fresh_postgres(postgres_url) as url:
        yield url


async def read(rest: Rest, **query: object) -> Any:
    answer = await rest.call("GET", EVENTS, params=query, roles=["auditor"], tenant=LARGE)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def everything(rest: Rest) -> list[dict[str, Any]]:
    """Return all events that were filled in, from the export, newest first."""
    answer = await rest.call("GET", "/api/v1/audit/export", roles=["auditor"], tenant=LARGE)
    events = [json.loads(line) for line in answer.text.splitlines()]
    return [event for event in events if str(event["request_id"]).startswith("request-")]


FILTERS: dict[str, tuple[dict[str, str], Callable[[dict[str, Any]], bool]]] = {
    "actor": ({"actor": "key-7"}, lambda event: event["actor"] == "key-7"),
    "rare actor": ({"actor": RARE_ACTOR}, lambda event: event["actor"] == RARE_ACTOR),
    "action": ({"action": "tools/call"}, lambda event: event["action"] == "tools/call"),
    "outcome": ({"outcome": "refused"}, lambda event: event["outcome"] == "refused"),
    "middleware": ({"middleware": "pii_redaction"}, lambda event: event["middleware"] == "pii_redaction"),
    "request": ({"request_id": "request-59990"}, lambda event: event["request_id"] == "request-59990"),
    "two": (
        {"actor": "key-0", "outcome": "refused"},
        lambda event: (event["actor"], event["outcome"]) == ("key-0", "refused"),
    ),
}


@pytest.mark.parametrize("name", FILTERS)
async def test_each_filter_returns_what_reading_everything_finds(filled: Rest, name: str) -> None:
    query, wanted = FILTERS[name]
    month = datetime.now(UTC) - timedelta(days=30)
    events = await everything(filled)
    assert len(events) == MADE // 10
    expected = [
        event["id"] for event in events if wanted(event) and datetime.fromisoformat(event["at"]) >= month
    ]
    page = await read(filled, limit=1000, **query)
    assert [event["id"] for event in page["items"]] == expected[:1000]
    if name != "rare actor":
        assert expected, "the filter is tried on events that pass it"


async def test_an_hour_and_a_clients_request_id_are_found_among_the_old(filled: Rest) -> None:
    events = await everything(filled)
    old = next(event for event in reversed(events) if event["details"])
    theirs = old["details"]["client_request_id"]
    assert (await read(filled, client_request_id=theirs))["items"] == []  # 90 days ago
    at = datetime.fromisoformat(old["at"])
    since, until = (at - timedelta(minutes=30)).isoformat(), (at + timedelta(minutes=30)).isoformat()
    expected = [event["id"] for event in events if since <= event["at"].replace("Z", "+00:00") < until]
    page = await read(filled, since=since, until=until)
    assert [event["id"] for event in page["items"]] == expected[:1000]
    for further in ({}, {"until": until}, {"actor": old["actor"]}):
        page = await read(filled, client_request_id=theirs, since=since, **further)
        assert old["id"] in [event["id"] for event in page["items"]]
    page = await read(filled, client_request_id=theirs, since=since, actor="somebody else")
    assert page["items"] == []


async def test_a_query_that_is_too_wide_says_how_to_narrow_it_and_is_on_record(
    filled: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = {"action": "tools/call", "middleware": "pii_redaction", "since": "2020-01-01T00:00:00Z"}
    assert (await read(filled, **wide))["items"] == []  # the control: with time enough it is answered
    with monkeypatch.context() as patch:
        patch.setattr(stored, "QUERY_S", 0.001)
        answer = await filled.call("GET", EVENTS, params=wide, roles=["auditor"], tenant="tenant-1")
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert (problem["code"], problem["pointer"]) == ("invalid_arguments", "/until")
    assert problem["details"] == {"reason": "too_wide"}
    assert "since and until" in problem["detail"]
    # Neither the connection nor its limit stays behind.
    assert (await read(filled, limit=1000))["items"]
    refused = await filled.call(
        "GET",
        EVENTS,
        params={"action": "audit.query", "outcome": "refused"},
        roles=["auditor"],
        tenant="tenant-1",
    )
    assert [event["error_code"] for event in refused.json()["items"]] == ["invalid_arguments"]


async def old_event(rest: Rest, days: int) -> AuditEvent:
    """Record an event of that many days ago, as it was recorded then."""
    caller = Caller(rest.tenant, "0000000a", frozenset({Role.INVOKER}))
    at = datetime.now(UTC) - timedelta(days=days)
    number = int(at.timestamp() * 1000) << 80 | uuid4().int >> 48
    event = rest.vault.audit.new_event(caller, "act", OUTCOME_OK, None)
    event = replace(event, at=at, id=UUID(int=number))
    await rest.vault.audit.record(event)
    return event


async def test_a_query_looks_thirty_days_back_and_says_so(rest: Rest) -> None:
    events = [await old_event(rest, days) for days in (50, 31, 29, 1)]
    ids = [str(event.id) for event in events]

    async def ask(**query: object) -> tuple[list[str], datetime, str | None]:
        answer = await rest.call("GET", EVENTS, params={"action": "act", **query}, roles=["auditor"])
        page = answer.json()
        assert answer.status_code == 200, answer.text
        return (
            [event["id"] for event in page["items"]],
            datetime.fromisoformat(page["since"]),
            page["next"],
        )

    month = timedelta(days=30)
    found, since, _ = await ask()
    assert found == [ids[3], ids[2]]
    assert abs(datetime.now(UTC) - month - since) < timedelta(minutes=1)
    until = events[2].at
    assert (await ask(until=until.isoformat()))[:2] == ([ids[1], ids[0]], until - month)
    longer = events[0].at
    assert (await ask(since=longer.isoformat()))[:2] == (ids[::-1], longer)
    # The next page is of the same time as the first.
    first, since, cursor = await ask(limit=1)
    second, same, last = await ask(limit=1, cursor=cursor)
    assert (first + second, same, last) == ([ids[3], ids[2]], since, None)
    exported = await rest.call("GET", "/api/v1/audit/export?action=act", roles=["auditor"])
    assert [json.loads(line)["id"] for line in exported.text.splitlines()] == ids[::-1]


async def test_a_clients_request_id_finds_the_own_tenants_events_alone(
    database: Database, tenant: str
) -> None:
    async with replica_on(database) as replica:
        mine, yours = [await _of_client(replica, name) for name in (tenant, f"{tenant}-x")]
        assert await replica.events(tenant, client_request_id=THEIRS) == [mine]
        assert await replica.events(f"{tenant}-x", client_request_id=THEIRS) == [yours]
        for never in ("", "short", f"{THEIRS} {THEIRS}", THEIRS + "\n", "x" * 500):
            with pytest.raises(InvalidArgumentsError, match="No request was ever recorded under this id"):
                await replica.events(tenant, client_request_id=never)
    if database.embedded:
        return
    async with database.transaction(tenant, write=False) as tx:
        assert list((await tx.execute(text(CALL), {"name": THEIRS})).scalars()) == [mine.id]
        await tx.execute(text("SELECT set_config('app.tenant', '', true)"))
        assert list((await tx.execute(text(CALL), {"name": THEIRS})).scalars()) == []
    async with database.system_transaction(write=False) as tx:
        # It is the function's owner, and without a tenant sees nothing through it either.
        assert list((await tx.execute(text(CALL), {"name": THEIRS})).scalars()) == []
    owner = await connect(database.url.set(drivername="postgresql").render_as_string())
    allowed = "SELECT has_function_privilege('public', oid, 'EXECUTE') FROM pg_proc WHERE proname = $1"
    assert await owner.fetchval(allowed, "sluice_client_events") is False
    await owner.close()


async def _of_client(replica: Replica, tenant: str) -> AuditEvent:
    caller = Caller(tenant, "0000000a", frozenset({Role.INVOKER}))
    event = replica.audit.new_event(caller, "act", OUTCOME_OK, None, details={"client_request_id": THEIRS})
    await replica.audit.record(event)
    return event


async def test_an_export_is_encoded_while_other_requests_run(
    filled: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    dumps = json.dumps

    def seen(*values: Any, **options: Any) -> str:
        if "content_kept" in values[0]:  # an event
            threads.add(threading.get_ident())
        return dumps(*values, **options)

    monkeypatch.setattr(export.json, "dumps", seen)
    assert len(await everything(filled)) == MADE // 10
    assert threads
    assert threading.get_ident() not in threads


async def test_an_interrupted_upgrade_is_finished_and_leaves_valid_indexes(empty_url: str) -> None:
    await asyncio.to_thread(migrate.upgrade, empty_url)
    await asyncio.to_thread(migrate.downgrade, empty_url, BEFORE)
    await fill_events(empty_url, Fill(0, 1_000, 5))
    owner = await connect(empty_url)
    partition = f"audit_event_{datetime.now(UTC):%Y_%m}"
    # What interruptions leave behind: half of an index, here of the wrong column; then all but the revision.
    await owner.execute("CREATE INDEX ix_audit_event_tenant_actor_id ON ONLY audit_event (tenant, actor, id)")
    await owner.execute(f"CREATE INDEX {partition}_tenant_actor_id ON {partition} (outcome)")
    await asyncio.to_thread(migrate.upgrade, empty_url, HERE)
    await owner.execute("UPDATE alembic_version SET version_num = $1", BEFORE)
    await asyncio.to_thread(migrate.upgrade, empty_url, HERE)
    await asyncio.to_thread(migrate.upgrade, empty_url)
    rows = await owner.fetch(
        "SELECT c.relname, x.indisvalid FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid "
        "WHERE x.indrelid = 'audit_event'::regclass"
    )
    await owner.close()
    indexes = {row["relname"]: row["indisvalid"] for row in rows}
    assert len(indexes) == 12
    assert all(indexes.values()), indexes
    assert await asyncio.to_thread(migrate.drift, empty_url) == []
    async with open_rest(empty_url) as rest:
        await make_tenants(rest)
        assert len((await read(rest, actor="key-0", since="2020-01-01T00:00:00Z"))["items"]) > 10


async def test_requests_may_not_change_the_function(postgres_database_url: str, tenant: str) -> None:
    database = Database(postgres_database_url, patience=PATIENT)
    async with database.transaction(tenant) as tx:
        with pytest.raises(DBAPIError, match="must be owner"):
            await tx.execute(
                text("DROP FUNCTION sluice_client_events(text, timestamptz, timestamptz, uuid, integer)")
            )
    await database.close()


def test_an_sqlite_record_of_the_previous_release_is_indexed_too(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sluice.db"
    migrate.upgrade(url)
    migrate.downgrade(url, BEFORE)
    asyncio.run(fill_events(url, Fill(0, 1_000, 5)))
    migrate.upgrade(url)
    assert migrate.drift(url) == []
