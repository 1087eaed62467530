"""Events whose retention is over are deleted and named as pruned; younger, held and unsealed ones never go."""

# ruff: noqa: S608 - the statements are the test's own

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import text

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.contracts.policy import Policy
from app.core.errors import StoreUnavailableError
from app.services.access.access import HOST
from app.services.audit import retention as module
from app.services.audit.findings import Verification
from app.services.audit.retention import PurgedRecord, RetentionService
from app.services.audit.verification import LogVerifier
from app.store.audit.retention import purge_events
from app.store.database import Database
from tests.conftest import PATIENT, connect
from tests.factories import as_owner
from tests.integration.access_setup import Clock, Replica, replica_on
from tests.integration.rest_app import open_rest
from tests.integration.sealing import seal_all
from tests.integration.test_audit_proofs import key_of, proofs, verified

pytestmark = pytest.mark.in_turn("module_url")

DAY_S = 24 * 3600.0
HELD = "ab" * 32
KEEP = {"audit_days": 30}


class Kept:
    """A tenant whose policy was made a hundred days ago, and the record's owner."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.tenant = f"t-{uuid4().hex[:12]}"
        self.caller = Caller(self.tenant, "00000001", frozenset({Role.OPERATOR, Role.INVOKER}))
        self.retention = RetentionService.over(replica.audit)

    async def record(self, count: int, *, days: float = 0, seal: bool = True, **fields: Any) -> None:
        """Record and seal events, and let time pass."""
        events = [self.event(number, **fields) for number in range(count)]
        await self.replica.audit.record(*events)
        if seal:
            await seal_all(self.replica.audit)
        self.replica.clock.advance(days * DAY_S)

    def event(self, number: int, action: str = "middleware.invoke", **fields: Any) -> AuditEvent:
        details = {"number": number, **fields.pop("details", {})}
        return self.replica.audit.new_event(self.caller, action, OUTCOME_OK, None, details=details, **fields)

    def arrive_after(self, days: float) -> None:
        """Let so much time pass that the tenant's clock will be the database's in some days."""
        self.replica.clock.advance((100 - days) * DAY_S)

    async def keep(self, **retention: Any) -> None:
        policy = Policy.model_validate({"retention": retention})
        await self.replica.policies.put(HOST, self.tenant, policy)

    async def purge(self) -> tuple[int, int]:
        """Run the job; return how many events it deleted and stated of this tenant."""
        (done,) = await self.retention.purge(self.tenant) or [PurgedRecord(self.tenant, 0, 0)]
        return done.deleted, done.stated

    async def purged(self) -> int:
        """State what is due, seal it and delete; return how many events that were."""
        await self.purge()
        await seal_all(self.replica.audit)
        return (await self.purge())[0]

    async def verify(self) -> Verification:
        return await LogVerifier(self.replica.audit).verify(self.tenant)

    async def count(self, table: str = "audit_event", condition: str = "true") -> int:
        query = f"SELECT count(*) FROM {table} WHERE tenant = :tenant AND {condition}"
        async with self.replica.database.system_transaction(write=False) as tx:
            return int((await tx.execute(text(query), {"tenant": self.tenant})).scalar_one())

    async def delete_by_hand(self, condition: str) -> None:
        """Delete events as the owner of the database could."""
        gone = f"DELETE FROM audit_event WHERE tenant = :tenant AND {condition}"
        await as_owner(self.replica.database, gone, tenant=self.tenant)

    async def call(self, most: int = 10_000_000, days: float = 100_000) -> int:
        """Delete as the role that may, with parameters that ask for everything."""
        database, now = self.replica.database, self.replica.clock.now()
        opened = database.system_transaction if database.embedded else database.purging_transaction
        async with opened() as tx:
            return await purge_events(tx, self.tenant, now + timedelta(days=days), now, most=most)


@pytest.fixture
async def kept(module_url: str) -> AsyncIterator[Kept]:
    database, clock = Database(module_url, patience=PATIENT), Clock()
    clock.advance(-100 * DAY_S)
    try:
        async with replica_on(database, clock) as replica:
            made = Kept(replica)
            await replica.tenants.create(HOST, made.tenant)
            yield made
    finally:
        await database.close()


async def test_what_is_over_goes_and_the_rest_verifies(kept: Kept) -> None:
    await kept.keep(**KEEP, held_scopes=[HELD])
    await kept.record(300)
    await kept.record(2, scope_ref=HELD)
    await kept.record(5, scope_ref="cd" * 32, days=20)
    await kept.record(40, days=11)
    assert await kept.purge() == (0, 307), "what is due is stated before it is deleted"
    assert await kept.purge() == (0, 0), "and no event goes before its statement is sealed"
    assert (await kept.verify()).pruned == 0
    await seal_all(kept.replica.audit)
    deleted, stated = await kept.purge()
    assert (deleted, stated) == (307, 0)
    assert await kept.count() == await kept.count("log_leaf") == 43
    assert await kept.count(condition=f"scope_ref = '{HELD}'") == 2
    result = await kept.verify()
    assert (result.findings, result.events, result.pruned) == ([], 43, 307)


async def test_a_file_of_proofs_says_what_was_pruned(kept: Kept, tmp_path: Path) -> None:
    await kept.keep(**KEEP, held_scopes=[HELD])
    await kept.record(6)
    await kept.record(2, scope_ref=HELD, days=31)
    await kept.purged()
    auditor = Caller(kept.tenant, "00000002", frozenset({Role.AUDITOR}))
    lines, key = await proofs(kept.replica, auditor), await key_of(kept.replica)
    code, said = verified(tmp_path, lines, key)
    assert (code, "(all of them; 8 were pruned, as " in said) == (0, True), said
    code, said = verified(tmp_path, lines[:-1], key)
    assert (code, "(not all of them: " in said, "pruned" in said) == (0, True, False), said


async def test_what_goes_without_a_statement_is_missing(kept: Kept) -> None:
    await kept.keep(**KEEP)
    await kept.record(20, days=31)
    await kept.record(20)
    pruned = await kept.purged()
    assert (await kept.verify()).holds
    await kept.delete_by_hand(
        "id = (SELECT id FROM audit_event WHERE tenant = :tenant AND action = 'middleware.invoke' LIMIT 1)"
    )
    result = await kept.verify()
    assert [finding.kind for finding in result.findings] == ["missing"]
    await kept.delete_by_hand("action = 'audit.purge'")
    result = await kept.verify()
    assert {finding.kind for finding in result.findings} == {"missing"}
    assert (len(result.findings), result.pruned) == (pruned + 2, 0), (
        "nothing says any more that they were due"
    )


async def test_a_statement_that_somebody_else_made_neither_takes_young_events_nor_excuses_old_ones(
    kept: Kept,
) -> None:
    """Whoever may add rows to the record, and call the function, has no key for authentication codes."""
    kept.arrive_after(31)
    await kept.keep(**KEEP, held_scopes=[HELD])
    await kept.record(10, scope_ref=HELD)
    await kept.record(10, days=31)
    await kept.record(10)
    before = (kept.replica.clock.now() - timedelta(days=2)).isoformat()
    await kept.record(1, action="audit.purge", details={"pruned": "0-9999", "before": before}, seal=False)
    await as_owner(
        kept.replica.database,
        "UPDATE audit_event SET mac = :mac WHERE tenant = :tenant AND action = 'audit.purge'",
        tenant=kept.tenant,
        mac=bytes(32),
    )
    assert await kept.call() == 0, "the statement is not sealed"
    await kept.record(10)
    old = 10 + 2  # and the events of the tenant and its policy
    assert await kept.call() == old
    assert await kept.call() == 0
    assert await kept.count(condition=f"scope_ref = '{HELD}'") == 10
    assert await kept.count(condition="action = 'middleware.invoke'") == 30
    result = await kept.verify()
    assert sorted(finding.kind for finding in result.findings) == ["changed"] + ["missing"] * old
    kept.replica.clock.advance(DAY_S)
    assert await kept.purge() == (0, 0), "what went by a forged statement is stated by no other"
    assert len((await kept.verify()).findings) == old + 1


@pytest.mark.parametrize("pruned", ["9-3", "x", "0-9'; DROP TABLE audit_event; --", "", "0-5;7-9"])
async def test_a_statement_that_cannot_be_read_takes_nothing(kept: Kept, pruned: str) -> None:
    await kept.keep(**KEEP)
    await kept.record(10, days=31)
    await kept.record(1, action="audit.purge", details={"pruned": pruned, "before": ""})
    assert await kept.call() == 0
    result = await kept.verify()
    assert (result.findings, result.pruned) == ([], 0)


@pytest.mark.in_turn("module_url")
@pytest.mark.parametrize(
    "policy",
    [None, {}, {"audit_days": None}, {"audit_days": 32}, {"audit_days": 1, "hold": True}],
    ids=["none", "default", "null", "longer", "held"],
)
async def test_the_policy_that_holds_at_the_deletion_decides(kept: Kept, policy: Any) -> None:
    kept.arrive_after(31)
    await kept.keep(**KEEP)
    await kept.record(10, days=31)
    assert (await kept.purge())[1] == 12
    await seal_all(kept.replica.audit)
    if policy is None:
        gone = "DELETE FROM policy WHERE tenant = :tenant"
        await as_owner(kept.replica.database, gone, tenant=kept.tenant)
    else:
        await kept.keep(**policy)
    assert (await kept.purge())[0] == await kept.call() == 0
    assert (await kept.verify()).holds
    # Negative control: only the policy stood in the way.
    await as_owner(kept.replica.database, "DELETE FROM policy WHERE tenant = :tenant", tenant=kept.tenant)
    await kept.keep(**KEEP)
    assert await kept.call() == 12


async def test_a_scope_that_is_held_after_the_statement_stays_and_still_verifies(kept: Kept) -> None:
    await kept.keep(**KEEP)
    await kept.record(3, scope_ref=HELD)
    await kept.record(3, days=31)
    assert (await kept.purge())[1] == 8
    await kept.keep(**KEEP, held_scopes=[HELD])
    await seal_all(kept.replica.audit)
    assert (await kept.purge())[0] == 5
    result = await kept.verify()
    assert (result.findings, result.pruned) == ([], 5)
    await kept.delete_by_hand(f"scope_ref = '{HELD}'")
    assert len((await kept.verify()).findings) == 3, "the row of the log stands, its event is missing"


async def test_a_clock_that_was_set_back_in_the_row_makes_no_event_old(kept: Kept) -> None:
    """The heads that were logged say how old an event is, and not its own row alone."""
    await kept.keep(**KEEP)
    clock = kept.replica.clock
    clock.advance(-40 * DAY_S)
    events = [kept.event(number) for number in range(10)]
    clock.advance(40 * DAY_S)
    await kept.replica.audit.record(*events)
    await seal_all(kept.replica.audit)
    assert await kept.purge() == (0, 0)
    clock.advance(31 * DAY_S)
    assert await kept.purged() == 12


async def test_statements_go_on_until_all_is_stated(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STATED", 10)
    monkeypatch.setattr(module, "BATCH", 4)
    await kept.keep(**KEEP)
    await kept.record(23, days=31)
    deleted = [await kept.purged() for _ in range(3)]
    assert deleted == [10, 10, 5]
    result = await kept.verify()
    assert (result.findings, result.pruned) == ([], 25)
    assert await kept.purge() == (0, 0), "the next statement waits for a day"


async def test_statements_themselves_go_and_stay_short(kept: Kept) -> None:
    await kept.keep(audit_days=1)
    for _ in range(6):
        await kept.record(10, days=1)
        await kept.purged()
        assert (await kept.verify()).holds
    assert await kept.count(condition="action = 'audit.purge'") <= 3
    assert await kept.count() <= 20
    (said,) = await stated(kept, 1)
    assert said.count("-") == 1, "one run, whose end only moves"


async def stated(kept: Kept, limit: int) -> Sequence[str]:
    events = [event for event in await kept.replica.events(kept.tenant) if event.action == "audit.purge"]
    return [str(event.details["pruned"]) for event in events[-limit:]]


async def test_a_statement_with_too_many_runs_leaves_the_smallest_for_later(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RUNS", 2)
    await kept.keep(**KEEP, held_scopes=[HELD])
    for size in (3, 1, 5):
        await kept.record(size)
        await kept.record(1, scope_ref=HELD)
    await kept.record(2, days=31)
    deleted = await kept.purged()
    assert (await stated(kept, 1))[0].count("-") == 2
    assert deleted == 2 + 3 + 5
    assert (await kept.verify()).holds


async def test_a_tenant_that_keeps_everything_loses_nothing(kept: Kept) -> None:
    await kept.record(5, days=99)
    assert await kept.retention.purge(kept.tenant) == []
    assert await kept.call() == 0
    assert await kept.count() == 6


@pytest.mark.parametrize("module_url", ["postgresql"], indirect=True)
async def test_who_has_only_the_role_may_do_nothing_but_call_the_function(kept: Kept) -> None:
    database = kept.replica.database
    await kept.keep(**KEEP, held_scopes=[HELD])
    await kept.record(3, scope_ref=HELD)
    await kept.record(5, days=31)
    await kept.record(5)
    assert (await kept.purge())[1] == 7
    login = f"purger_{kept.tenant[2:]}"
    owner = await connect(database.url.set(drivername="postgresql").render_as_string())
    await owner.execute(f"CREATE ROLE {login} LOGIN; GRANT sluice_purge TO {login}")
    hand = await connect(database.url.set(drivername="postgresql", username=login).render_as_string())
    try:
        for table in ("audit_event", "log_leaf", "log_entry", "log_tile", "policy", "entry", "installation"):
            for statement in (
                f"SELECT FROM {table}",
                f"DELETE FROM {table}",
                f"INSERT INTO {table} DEFAULT VALUES",
            ):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await hand.execute(statement)
        for statement in (
            "UPDATE policy SET document = '{}'",
            "SET ROLE sluice_system",
            "SELECT sluice_make_audit_partitions(1)",
            "SELECT sluice_drop_emptied_months()",
            "CREATE TABLE mine ()",
            "ALTER FUNCTION sluice_purge_audit COST 1",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await hand.execute(statement)
        call = "SELECT sluice_purge_audit($1, 'infinity', 2147483647)"
        assert await hand.fetchval(call, kept.tenant) == 0, "the statement is not sealed"
        await seal_all(kept.replica.audit)
        assert await hand.fetchval(call, "system") == await hand.fetchval(call, None) == 0
        assert await hand.fetchval(call, kept.tenant) == 7
    finally:
        await hand.close()
        await owner.execute(f"DROP ROLE {login}")
        await owner.close()
    assert await kept.count(condition="action = 'middleware.invoke'") == 8
    assert (await kept.verify()).holds


@pytest.mark.parametrize("module_url", ["postgresql"], indirect=True)
async def test_the_application_may_not_call_the_function(kept: Kept) -> None:
    database = kept.replica.database
    call = text("SELECT sluice_purge_audit(:tenant, now(), 1)")
    for opened in (database.transaction(kept.tenant), database.system_transaction()):
        with pytest.raises(StoreUnavailableError):
            async with opened as tx:
                await tx.execute(call, {"tenant": kept.tenant})


@pytest.mark.in_turn("database_url")
async def test_an_operator_sets_the_retention_over_rest_and_hears_what_it_widens(database_url: str) -> None:
    async with open_rest(database_url) as rest:
        answer = await rest.put_policy({"retention": {"audit_days": 30, "held_scopes": [HELD]}})
        assert answer.status_code == 200, answer.text
        assert [each["pointer"] for each in answer.json()["widened"]] == ["/retention/audit_days"]
        for refused in ({"audit_days": 0}, {"held_scopes": ["talk"]}, {"days": 3}):
            answer = await rest.put_policy({"retention": refused})
            assert answer.status_code == 422, refused
        kept = (await rest.call("GET", "/api/v1/policies", roles=["operator"])).json()
        assert kept["policy"]["retention"] == {"audit_days": 30, "hold": False, "held_scopes": [HELD]}


async def stored_bytes(kept: Kept) -> dict[str, int]:
    """Return how large the record and its log are, without what later rows will take the place of."""
    database = kept.replica.database
    if database.embedded:
        async with database.system_transaction(write=False) as tx:
            rows = await tx.execute(text("SELECT name, sum(pgsize - unused) FROM dbstat GROUP BY name"))
            sizes = {str(row[0]): int(row[1]) for row in rows}
        return {
            table: sum(size for name, size in sizes.items() if table in name)
            for table in ("audit_event", "log_leaf", "log_tile", "log_entry")
        }
    owner = await connect(database.url.set(drivername="postgresql").render_as_string())
    for table in ("audit_event", "log_leaf"):
        await owner.execute(f"VACUUM {table}")
    sizes = {
        table: await owner.fetchval(
            "SELECT coalesce(sum(pg_total_relation_size(relid)), pg_total_relation_size($1::text::regclass))::bigint "
            "FROM pg_partition_tree($1::text::regclass)",
            table,
        )
        for table in ("audit_event", "log_leaf", "log_tile", "log_entry")
    }
    await owner.close()
    return sizes


@pytest.mark.soak
async def test_twenty_days_with_five_kept_show_a_level_size(kept: Kept) -> None:
    await kept.keep(audit_days=5)
    rows, sizes = [], []
    for day in range(1, 21):
        for _ in range(4):
            await kept.record(100, days=0.25)
        await kept.purged()
        assert day % 5 or (await kept.verify()).holds
        rows.append(await kept.count())
        sizes.append(await stored_bytes(kept))
    print(f"\nrows {rows}", *(f"day {day}: {sizes[day - 1]}" for day in (1, 5, 8, 12, 16, 20)), sep="\n")
    assert max(rows[8:]) <= 1.05 * rows[7]
    for table in ("audit_event", "log_leaf"):
        assert max(size[table] for size in sizes[8:]) <= 1.25 * sizes[7][table]
