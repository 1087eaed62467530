"""The record on both databases: durable before the answer, readable by the tenant's auditors, never changed."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.errors import (
    AuditUnavailableError,
    ConflictError,
    ForbiddenError,
    InternalError,
    StoreUnavailableError,
)
from app.core.request import RequestInfo
from app.services.audit.audit import AuditQuery
from app.services.audit.canonical import payload
from app.services.audit.keeping import KeptContent
from app.services.audit.leaves import expected_mac
from app.store.audit.audit import AuditFilters, list_events
from app.store.audit.writer import GroupWriter
from app.store.database import Database
from app.store.dialects import USUAL
from app.store.tables import audit_event
from tests.factories import as_owner
from tests.integration.access_setup import Replica, replica_on

WHY = "a complaint"
REQUEST = RequestInfo("req-1", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "127.0.0.1", 1e9)


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
def caller(tenant: str) -> Caller:
    return Caller(tenant, "00000001", frozenset({Role.INVOKER, Role.AUDITOR}))


def made(replica: Replica, caller: Caller, **fields: Any) -> AuditEvent:
    return replica.audit.new_event(caller, "middleware.invoke", OUTCOME_OK, REQUEST, **fields)


async def test_what_is_recorded_is_read_back_to_the_microsecond(replica: Replica, caller: Caller) -> None:
    event = made(
        replica,
        caller,
        middleware="pii_redaction",
        policy_version=3,
        scope_ref=replica.audit.scope_ref(caller.tenant, "chat-1"),
        in_hmac=replica.audit.digest(caller.tenant, b"in"),
        blocks=2,
        bytes_in=10,
        bytes_out=12,
        counts={"PERSON": 2, "EMAIL": 1},
        duration_us=1234,
        details={"stage": "started", "mapping_returned": True, "number": 7},
        sealed=b"\x00sealed",
    )
    await replica.audit.record(event)
    (read,) = await replica.events(caller.tenant, request_id="req-1")
    assert read == event
    assert (read.actor, read.roles, read.request_id) == ("00000001", ("auditor", "invoker"), "req-1")
    assert read.traceparent == REQUEST.traceparent


async def test_a_write_that_waits_too_long_is_given_up_and_never_stored(
    replica: Replica, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not replica.database.embedded:
        return  # no write waits for another's transaction there
    first, late, last = (made(replica, caller, details={"number": number}) for number in range(3))
    async with replica.database.transaction(caller.tenant):
        waiting = asyncio.create_task(replica.audit.record(first))
        for _ in range(10):
            await asyncio.sleep(0)
        # Only what is recorded now is impatient: the writer already waits for the transaction, with the first one.
        with monkeypatch.context() as impatient:
            impatient.setattr(replica.database, "patience", replace(USUAL, statement_s=0.01))
            with pytest.raises(AuditUnavailableError) as refused:
                await replica.audit.record(late)
        assert refused.value.retry_after_s == 1.0
        assert not waiting.done()
    await waiting
    await replica.audit.record(last)
    stored = {event.id for event in await replica.events(caller.tenant)}
    assert {first.id, late.id, last.id} & stored == {first.id, last.id}


async def test_every_stored_row_carries_a_code_that_any_change_breaks(
    replica: Replica, caller: Caller
) -> None:
    event = made(replica, caller, counts={"PERSON": 1}, details={"a": 1})
    await replica.audit.record(event)
    async with replica.database.transaction(caller.tenant, write=False) as tx:
        (stored,) = await list_events(tx, caller.tenant, AuditFilters(), before=None, limit=10)
    assert stored.mac == expected_mac(replica.keys, stored)
    changes: list[dict[str, Any]] = [
        {"tenant": "other"},
        {"at": event.at + timedelta(microseconds=1)},
        {"actor": "00000002"},
        {"roles": ("invoker",)},
        {"outcome": "failed"},
        {"counts": {"PERSON": 2}},
        {"details": {"a": 2}},
        {"sealed": b"x"},
        {"request_id": None},
        {"duration_us": 1},
    ]
    for change in changes:
        changed = replace(stored, event=replace(stored.event, **change))
        assert expected_mac(replica.keys, changed) != stored.mac, change
    assert stored.number is not None
    for number in (None, stored.number._replace(number=2), stored.number._replace(writer="another")):
        assert expected_mac(replica.keys, replace(stored, number=number)) != stored.mac, number


async def test_the_code_is_made_over_one_spelling(replica: Replica, caller: Caller) -> None:
    event = made(replica, caller, counts={"B": 1, "A": 2})
    other = replace(event, counts={"A": 2, "B": 1}, roles=tuple(reversed(event.roles)))
    assert payload(event) == payload(other)
    assert json.loads(payload(event))["at"] == round(event.at.timestamp() * 1_000_000)


async def test_concurrent_records_share_commits_and_none_is_lost(replica: Replica, caller: Caller) -> None:
    events = [made(replica, caller, blocks=number) for number in range(300)]
    replica.statements.clear()
    await asyncio.gather(*(replica.audit.record(event) for event in events))
    inserts = [one for one in replica.statements if one.startswith("INSERT INTO audit_event")]
    assert len(inserts) < 30
    assert {event.blocks for event in await replica.events(caller.tenant)} == set(range(300))


async def test_an_event_that_cannot_be_stored_withholds_the_answer(replica: Replica, caller: Caller) -> None:
    event = made(replica, caller)
    await replica.audit.record(event)
    with pytest.raises(AuditUnavailableError):  # the same id again: the database refuses it
        await replica.audit.record(event)
    stopped = GroupWriter(replica.database, replica.writer.keeper, replica.writer.code)
    with pytest.raises(AuditUnavailableError):
        await replace(replica.audit, writer=stopped).record(made(replica, caller))


async def test_an_event_in_a_transaction_shares_its_fate(replica: Replica, caller: Caller) -> None:
    with pytest.raises(ConflictError):  # noqa: PT012 - the point is what follows the rollback
        async with replica.database.transaction(caller.tenant) as tx:
            await replica.audit.record_with(tx, made(replica, caller, blocks=1))
            raise ConflictError("no")
    async with replica.database.transaction(caller.tenant) as tx:
        await replica.audit.record_with(tx, made(replica, caller, blocks=2), made(replica, caller, blocks=3))
    assert [event.blocks for event in await replica.events(caller.tenant)] == [2, 3]


async def test_a_refusal_is_recorded_and_passed_on(replica: Replica, caller: Caller) -> None:
    with pytest.raises(ConflictError):
        async with replica.audit.refusals(caller, "vault.erase", REQUEST):
            raise ConflictError("secret-looking message")
    (event,) = await replica.events(caller.tenant)
    assert (event.action, event.outcome, event.error_code) == ("vault.erase", "refused", "conflict")
    assert "secret-looking" not in repr(event)


async def test_a_failing_database_is_no_refusal(replica: Replica, caller: Caller) -> None:
    with pytest.raises(StoreUnavailableError):
        async with replica.audit.refusals(caller, "vault.erase", REQUEST):
            raise StoreUnavailableError("down")
    assert await replica.events(caller.tenant) == []


async def test_digests_are_keyed_by_tenant(replica: Replica) -> None:
    one, two = (replica.audit.digest(tenant, b"123-45-6789") for tenant in ("acme", "globex"))
    assert one != two
    assert one == replica.audit.digest("acme", b"123-45-6789")
    assert len(one) == 64


async def test_kept_content_is_sealed_and_opened_for_an_auditor_who_may_restore(
    replica: Replica, caller: Caller
) -> None:
    content = b"Ann's number is 123-45-6789"
    event = made(replica, caller, sealed=await replica.audit.seal(caller.tenant, content))
    await replica.audit.record(event)
    async with replica.database.transaction(caller.tenant, write=False) as tx:
        stored = (await tx.execute(select(audit_event.c.sealed).where(audit_event.c.id == event.id))).scalar()
    assert stored
    assert b"123-45" not in stored
    for role in (Role.INVOKER, Role.AUDITOR, Role.RESTORER):
        with pytest.raises(ForbiddenError):
            await KeptContent(replica.audit).open(replace(caller, roles=frozenset({role})), event.id, WHY)
    both = replace(caller, roles=frozenset({Role.AUDITOR, Role.RESTORER}))
    assert await KeptContent(replica.audit).open(both, event.id, WHY, REQUEST) == content
    looks = await replica.events(caller.tenant, action="audit.content")
    assert [look.outcome for look in looks] == [*["refused"] * 3, "ok"]
    assert dict(looks[-1].details) == {"event": str(event.id), "reason": WHY}


async def test_kept_content_that_was_moved_to_another_event_is_not_opened(
    replica: Replica, caller: Caller
) -> None:
    first, second = [
        made(replica, caller, sealed=await replica.audit.seal(caller.tenant, content))
        for content in (b"Ann", b"Bob")
    ]
    await replica.audit.record(first, second)
    await as_owner(
        replica.database,
        "UPDATE audit_event SET sealed = :moved WHERE tenant = :tenant AND request_id = :request",
        moved=second.sealed,
        tenant=caller.tenant,
        request=first.request_id,
    )
    both = replace(caller, roles=frozenset({Role.AUDITOR, Role.RESTORER}))
    with pytest.raises(InternalError):
        await KeptContent(replica.audit).open(both, first.id, WHY)
    assert await KeptContent(replica.audit).open(both, second.id, WHY) == b"Bob"
    looks = await replica.events(caller.tenant, action="audit.content")
    assert [look.outcome for look in looks] == ["failed", "ok"]


async def test_a_request_id_from_outside_is_cut_to_a_sensible_length(
    replica: Replica, caller: Caller
) -> None:
    request = replace(REQUEST, request_id="x" * 5000)
    await replica.audit.record(replica.audit.new_event(caller, "a", OUTCOME_OK, request))
    page = await replica.audit.query(caller, AuditQuery(action="a"))
    assert [len(event.request_id or "") for event in page.items] == [200]
