"""Events say for whom and by what: in the record, in its queries and in the log, beside those of earlier releases."""

# ruff: noqa: S608 - the statements are the test's own

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.request import RequestInfo
from app.services.audit.verification import LogVerifier
from app.store import migrate
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import as_owner
from tests.integration.access_setup import Replica, replica_on
from tests.integration.rest_app import Rest, open_rest
from tests.integration.sealing import seal_all

BEFORE = "2026_12_03_over_writers"
CALLER = Caller("acme", "00000001", frozenset({Role.INVOKER}), key_name="desk")
REQUEST = RequestInfo("req-1", None, "10.1.2.3", 1e9)
CALL = {"context": [{"type": "text", "text": "Ada Byron called."}]}


async def recorded(replica: Replica, *, earlier: bool) -> AuditEvent:
    """Record an event, as the release before would have where it is ``earlier``."""
    caller = CALLER if earlier else replace(CALLER, end_user="grace")
    event = replica.audit.new_event(caller, "middleware.invoke", OUTCOME_OK, REQUEST)
    if earlier:
        event = replace(event, key_name=None, address_class=None, versions=None)
    await replica.audit.record(event)
    return event


async def test_what_was_sealed_before_the_upgrade_verifies_after_it(own_database_url: str) -> None:
    async with Database(own_database_url, patience=PATIENT) as database, replica_on(database) as replica:
        old = await recorded(replica, earlier=True)
        await seal_all(replica.audit)
        await recorded(replica, earlier=True)
    await asyncio.to_thread(migrate.downgrade, own_database_url, BEFORE)
    await asyncio.to_thread(migrate.upgrade, own_database_url)
    async with Database(own_database_url, patience=PATIENT) as database, replica_on(database) as replica:
        new = await recorded(replica, earlier=False)
        await recorded(replica, earlier=True)  # a process of the previous release still runs
        await seal_all(replica.audit)
        result = await LogVerifier(replica.audit).verify("acme")
        assert (result.findings, result.events, result.unnumbered) == ([], 4, 0)
        for event in (old, new):
            for column, value in (
                *[(name, "'public'") for name in ("on_behalf_of", "key_name", "address_class", "decision")],
                ("versions", "'{}'" if event is old else "NULL"),
            ):
                await tampered(database, event, column, value)
                findings = (await LogVerifier(replica.audit).verify("acme")).findings
                assert [finding.kind for finding in findings] == ["changed"], column
                await tampered(database, event, column, stored(event, column))
        assert (await LogVerifier(replica.audit).verify("acme")).holds


async def tampered(database: Database, event: AuditEvent, column: str, value: str) -> None:
    made = str(event.id) if not database.embedded else event.id.hex
    await as_owner(database, f"UPDATE audit_event SET {column} = {value} WHERE id = '{made}'")


def stored(event: AuditEvent, column: str) -> str:
    value = getattr(event, column)
    if value is None:
        return "NULL"
    return f"""'{{"sluice": "{value["sluice"]}"}}'""" if column == "versions" else f"'{value}'"


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as running:
        yield running


async def ask(rest: Rest, user: str) -> Any:
    path = "/api/v1/middleware/timestamp_injector/invoke"
    roles = [Role.INVOKER, Role.DELEGATE]
    return await rest.call("POST", path, CALL, roles=roles, headers={"x-sluice-user": user})


async def found(rest: Rest, query: str) -> list[dict[str, Any]]:
    path = f"/api/v1/audit/events?action=middleware.invoke&{query}"
    answer = await rest.call("GET", path, roles=[Role.AUDITOR])
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


@pytest.mark.in_turn("database_url")
async def test_events_are_found_by_their_end_user_who_is_not_in_them(rest: Rest) -> None:
    for user in ("grace", "grace", "linus"):
        assert (await ask(rest, user)).status_code == 200
    await rest.call("POST", "/api/v1/middleware/timestamp_injector/invoke", CALL, roles=[Role.INVOKER])
    digests = [event["on_behalf_of"] for event in await found(rest, "limit=10")]
    assert digests[0] is None
    linus, grace = digests[1], digests[2]
    assert digests == [None, linus, grace, grace]
    assert linus != grace
    for query, wanted in (("user=grace", [grace] * 2), (f"on_behalf_of={linus}", [linus]), ("user=ada", [])):
        events = await found(rest, query)
        assert [event["on_behalf_of"] for event in events] == wanted
        assert "grace" not in str(events)
    both = await rest.call(
        "GET", f"/api/v1/audit/events?user=grace&on_behalf_of={linus}", roles=[Role.AUDITOR]
    )
    assert (both.status_code, both.json()["pointer"]) == (422, "/user")
    export = await rest.call("GET", "/api/v1/audit/export?user=grace&format=csv", roles=[Role.AUDITOR])
    assert (export.text.count(grace), export.text.count(linus), "grace" in export.text) == (2, 0, False)


@pytest.mark.in_turn("database_url")
async def test_events_are_found_by_their_scope_as_events_show_it(rest: Rest) -> None:
    body = {"context": ["I am Ada Byron."], "arguments": {}}
    for scope in ("talk", "other", "talk"):
        body["arguments"] = {"scope": scope}
        path = "/api/v1/middleware/pii_redaction/invoke"
        assert (await rest.call("POST", path, body, roles=[Role.INVOKER])).status_code == 200
    talk = [event["scope_ref"] for event in await found(rest, "scope=talk")]
    other = [event["scope_ref"] for event in await found(rest, "scope=other")]
    assert (len(talk), len(other), talk[0] == talk[1] != other[0]) == (2, 1, True)
    seen = await found(rest, f"scope_ref={talk[0]}")
    assert [event["scope_ref"] for event in seen] == talk
    assert len(await found(rest, f"scope=talk&scope_ref={talk[0]}")) == 2
    both = await rest.call(
        "GET", f"/api/v1/audit/events?scope=talk&scope_ref={other[0]}", roles=[Role.AUDITOR]
    )
    assert (both.status_code, both.json()["pointer"]) == (422, "/scope")
