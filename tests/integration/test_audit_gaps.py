"""An event that is deleted before it is sealed leaves a gap, which the sealer records; failures leave none."""

# ruff: noqa: S608 - the statements are the test's own

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
from sqlalchemy import text

from app.core.access import Caller, Role
from app.core.audit import ALTERED_ACTION, GAP_ACTION, OUTCOME_OK, AuditEvent
from app.core.errors import AuditUnavailableError, ConflictError, StoreUnavailableError
from app.services.audit.canonical import payload
from app.services.audit.counts import AuditCounts
from app.services.audit.findings import Verification
from app.services.audit.sealer import LogSealer
from app.services.audit.verification import LogVerifier
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import as_owner
from tests.integration.access_setup import Replica, replica_on
from tests.integration.sealing import seal_all
from tests.sampling import SEED, examples

pytestmark = pytest.mark.in_turn("database_url")

WORKS = examples(2_000, 30)


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
def caller(tenant: str) -> Caller:
    return Caller(tenant, "00000001", frozenset({Role.INVOKER, Role.AUDITOR}))


def event_of(replica: Replica, caller: Caller, number: int = 0) -> AuditEvent:
    return replica.audit.new_event(caller, "middleware.invoke", OUTCOME_OK, None, details={"number": number})


async def record(replica: Replica, caller: Caller, count: int) -> list[AuditEvent]:
    events = [event_of(replica, caller, number) for number in range(count)]
    for event in events:
        await replica.audit.record(event)
    return events


async def as_owner_of(replica: Replica, caller: Caller, statement: str, *events: AuditEvent) -> None:
    """Run a statement on ``{rows}``: the rows of ``events``."""
    named = "'{}'" if not replica.database.embedded else "'{0.hex}'"
    ids = ", ".join(named.format(event.id) for event in events)
    rows = f"tenant = '{caller.tenant}' AND id IN ({ids})"
    await as_owner(replica.database, statement.format(rows=rows))


async def delete(replica: Replica, caller: Caller, *events: AuditEvent) -> None:
    await as_owner_of(replica, caller, "DELETE FROM audit_event WHERE {rows}", *events)


async def numbers(replica: Replica, caller: Caller) -> dict[str, list[int]]:
    """Return the numbers of each writer in a tenant's record."""
    query = text("SELECT writer, writer_seq FROM audit_event WHERE tenant = :tenant ORDER BY writer_seq")
    async with replica.database.system_transaction(write=False) as tx:
        rows = (await tx.execute(query, {"tenant": caller.tenant})).all()
    made: dict[str, list[int]] = {}
    for writer, number in rows:
        made.setdefault(writer, []).append(number)
    return made


async def verify(replica: Replica, caller: Caller) -> Verification:
    return await LogVerifier(replica.audit).verify(caller.tenant)


async def said(replica: Replica, caller: Caller, action: str) -> list[Any]:
    return [dict(event.details) for event in await replica.events(caller.tenant, action=action)]


def kinds(result: Verification) -> list[str]:
    return [finding.kind for finding in result.findings]


async def test_a_deletion_before_sealing_is_recorded_by_the_sealer_and_named_by_the_verifier(
    replica: Replica, caller: Caller
) -> None:
    events = await record(replica, caller, 6)
    await delete(replica, caller, *events[2:4])
    await seal_all(replica.audit)
    ((writer, own),) = (await numbers(replica, caller)).items()
    assert own == [1, 2, 5, 6, 7]  # the last is the sealer's own event
    assert await said(replica, caller, GAP_ACTION) == [{"writer": writer, "first": 3, "last": 4}]
    (finding,) = (await verify(replica, caller)).findings
    assert (finding.kind, finding.place) == ("gap", f"writer {writer}")
    assert "3 to 4" in finding.meaning
    # It is said once, and named each time.
    await record(replica, caller, 3)
    await seal_all(replica.audit)
    assert len(await said(replica, caller, GAP_ACTION)) == 1
    assert kinds(await verify(replica, caller)) == ["gap"]


async def test_the_first_event_of_a_writer_is_missed_too(replica: Replica, caller: Caller) -> None:
    events = await record(replica, caller, 2)
    await delete(replica, caller, events[0])
    await seal_all(replica.audit)
    assert [(gap["first"], gap["last"]) for gap in await said(replica, caller, GAP_ACTION)] == [(1, 1)]
    assert kinds(await verify(replica, caller)) == ["gap"]


async def test_a_deletion_is_named_before_anything_is_sealed_again(replica: Replica, caller: Caller) -> None:
    await record(replica, caller, 1)
    await seal_all(replica.audit)
    events = await record(replica, caller, 3)
    assert (await verify(replica, caller)).holds
    await delete(replica, caller, events[1])
    assert kinds(await verify(replica, caller)) == ["gap"]


async def test_the_newest_event_of_a_writer_is_missed_with_its_next_one(
    replica: Replica, caller: Caller
) -> None:
    events = await record(replica, caller, 3)
    await delete(replica, caller, events[2])
    await seal_all(replica.audit)
    assert (await verify(replica, caller)).holds  # as the page for auditors says
    await record(replica, caller, 1)
    await seal_all(replica.audit)
    assert [(gap["first"], gap["last"]) for gap in await said(replica, caller, GAP_ACTION)] == [(3, 3)]
    assert kinds(await verify(replica, caller)) == ["gap"]


async def test_numbers_that_are_moved_up_to_close_a_gap_are_named(replica: Replica, caller: Caller) -> None:
    events = await record(replica, caller, 4)
    await delete(replica, caller, events[1])
    await as_owner_of(
        replica, caller, "UPDATE audit_event SET writer_seq = writer_seq - 1 WHERE {rows}", *events[2:]
    )
    await seal_all(replica.audit)
    assert kinds(await verify(replica, caller)) == ["changed", "changed"]


async def test_who_also_forges_what_the_sealer_remembers_is_named_by_the_verifier(
    replica: Replica, caller: Caller
) -> None:
    events = await record(replica, caller, 2)
    await seal_all(replica.audit)
    events = await record(replica, caller, 2)
    await delete(replica, caller, events[0])
    await as_owner(
        replica.database, f"UPDATE log_writer SET number = number + 1 WHERE tenant = '{caller.tenant}'"
    )
    await seal_all(replica.audit)
    assert await said(replica, caller, GAP_ACTION) == []
    assert kinds(await verify(replica, caller)) == ["gap"]


@pytest.mark.parametrize(
    ("change", "recorded"),
    [
        ("actor = '00000002'", False),  # the hash that was stored with the row is sealed, not this
        ("writer = NULL, writer_seq = NULL", False),
        ("leaf = {zeros}", True),
        ("leaf = {short}", True),
        ("mac = {zeros}", True),
        ("leaf = NULL, writer = NULL, writer_seq = NULL", True),
    ],
)
async def test_a_row_that_is_changed_before_sealing_is_named(
    replica: Replica, caller: Caller, change: str, recorded: bool
) -> None:
    literal = "x'{}'" if replica.database.embedded else "'\\x{}'"
    changed = change.format(zeros=literal.format("00" * 32), short=literal.format("00"))
    events = await record(replica, caller, 3)
    await as_owner_of(replica, caller, f"UPDATE audit_event SET {changed} WHERE {{rows}}", events[1])
    await seal_all(replica.audit)
    alarms = await said(replica, caller, ALTERED_ACTION)
    assert alarms == ([{"events": 1, "event": str(events[1].id)}] if recorded else [])
    assert "changed" in kinds(await verify(replica, caller))


async def test_rows_from_before_the_upgrade_are_sealed_as_found_and_counted(
    replica: Replica, caller: Caller
) -> None:
    events = await record(replica, caller, 3)
    for event in events:
        code = replica.keys.mac(caller.tenant, payload(event)).hex()
        literal = f"x'{code}'" if replica.database.embedded else f"'\\x{code}'"
        change = f"writer = NULL, writer_seq = NULL, leaf = NULL, mac = {literal}"
        await as_owner_of(replica, caller, f"UPDATE audit_event SET {change} WHERE {{rows}}", event)
    replica.writer._writers.free.clear()
    await record(replica, caller, 2)
    await seal_all(replica.audit)
    result = await verify(replica, caller)
    assert (result.findings, result.events, result.unnumbered) == ([], 5, 3)


async def test_nothing_that_fails_leaves_a_gap(replica: Replica, caller: Caller, database_url: str) -> None:
    """Transactions that are rolled back, cancelled, refused or in each other's way, in two processes at once."""
    chance = random.Random(SEED)
    async with AsyncExitStack() as stack:
        replicas = [replica]
        if not replica.database.embedded:
            other = await stack.enter_async_context(Database(database_url, patience=PATIENT))
            replicas.append(await stack.enter_async_context(replica_on(other)))
        twice = event_of(replica, caller)
        await replica.audit.record(twice)

        async def transaction(own: Replica, fails: bool) -> None:
            async with own.database.transaction(caller.tenant) as tx:
                later = event_of(own, caller)
                await own.audit.record_with(tx, event_of(own, caller), event_of(own, caller))
                await asyncio.sleep(0)
                await own.audit.record_with(tx, later)
                if fails:
                    raise ConflictError("no")

        async def work(number: int) -> None:
            own = replicas[number % len(replicas)]
            kind = chance.randrange(6)
            if kind < 2:
                with suppress(AuditUnavailableError):
                    await own.audit.record(event_of(own, caller), event_of(own, caller))
            elif kind == 2:
                with pytest.raises(AuditUnavailableError):
                    await own.audit.record(twice)
            elif kind == 3:
                with pytest.raises((ConflictError, StoreUnavailableError)):
                    await transaction(own, fails=True)
            elif kind == 4:
                task = asyncio.create_task(transaction(own, fails=False))
                for _ in range(chance.randrange(40)):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            else:
                # What was cancelled may still have SQLite's lock.
                with suppress(StoreUnavailableError):
                    await transaction(own, fails=False)

        width = 4
        for start in range(0, WORKS, width):
            await asyncio.gather(*(work(number) for number in range(start, start + width)))
            if start % 20 == 0:
                with suppress(StoreUnavailableError):
                    await LogSealer.over(replica.audit).seal()
        await seal_all(replica.audit)
    made = await numbers(replica, caller)
    assert all(own == list(range(1, len(own) + 1)) for own in made.values())
    assert len(made) > 1
    assert await said(replica, caller, GAP_ACTION) == []
    assert (await verify(replica, caller)).findings == []


async def test_a_log_that_grows_while_it_is_verified_holds(replica: Replica, caller: Caller) -> None:
    await record(replica, caller, 2)
    await seal_all(replica.audit)
    done = asyncio.Event()

    async def grow() -> None:
        while not done.is_set():
            await record(replica, caller, 3)
            await LogSealer.over(replica.audit).seal()

    growing = asyncio.create_task(grow())
    try:
        results = [await verify(replica, caller) for _ in range(8)]
    finally:
        done.set()
        await growing
    assert [result.findings for result in results] == [[]] * 8
    assert results[-1].events > results[0].events


async def test_what_is_sealed_behind_the_heads_that_were_read_is_no_finding(
    replica: Replica, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await record(replica, caller, 2)
    await seal_all(replica.audit)
    verify_heads = LogVerifier._verify_heads

    async def growing(verifier: LogVerifier, *arguments: Any) -> Any:
        await record(replica, caller, 3)
        await seal_all(replica.audit)
        await AuditCounts(replica.audit).count()
        return await verify_heads(verifier, *arguments)

    monkeypatch.setattr(LogVerifier, "_verify_heads", growing)
    result = await verify(replica, caller)
    assert (result.findings, result.events) == ([], 2)
