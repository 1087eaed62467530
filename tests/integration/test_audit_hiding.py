"""Whoever owns the database hides what was done where a verifier could overlook it, and is named all the same."""

# ruff: noqa: S608 - the statements are the test's own

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta

import pytest

from app.core.transparency.notes import Checkpoint
from app.engines.signing import SigningKey
from app.services.audit.counts import AuditCounts
from app.services.audit.findings import Verification
from tests.integration.tampering import Tampered, tampered_on

pytestmark = pytest.mark.in_turn("module_url")
EVENT = "(SELECT event FROM log_leaf WHERE tenant = 'acme' AND position = 7)"
FORGED = "actor = 'forged'"


@pytest.fixture
async def sealed(module_url: str) -> AsyncIterator[Tampered]:
    async with tampered_on(module_url) as log:
        yield log


async def copied(log: Tampered, of: str = f"id = {EVENT}", **changed: str) -> None:
    """Insert a forged copy of an event, or of several, with other values in some columns."""
    columns = await log.columns()
    made = {"id": "gen_random_uuid()" if log.postgres else "lower(hex(randomblob(16)))", "actor": "'forged'"}
    values = ", ".join((made | changed).get(name, name) for name in columns)
    await log.do(
        f"INSERT INTO audit_event ({', '.join(columns)}) SELECT {values} FROM audit_event WHERE {of}"
    )


async def for_a_tenant_without_a_log(log: Tampered) -> None:
    await copied(log, tenant="'ghost'")


async def with_a_leaf_for_a_tenant_without_a_log(log: Tampered) -> None:
    await copied(log, tenant="'ghost'")
    await log.do("INSERT INTO log_leaf SELECT tenant, 0, id, at FROM audit_event WHERE tenant = 'ghost'")


async def at_a_time_to_come(log: Tampered) -> None:
    if log.postgres:
        await log.do(
            "CREATE TABLE IF NOT EXISTS to_come PARTITION OF audit_event "
            "FOR VALUES FROM ('2045-01-01') TO ('2046-01-01')"
        )
    await copied(log, at="timestamptz '2045-06-01'" if log.postgres else "'2045-06-01 00:00:00.000000'")


async def under_the_id_of_another(log: Tampered) -> None:
    await copied(
        log, id="id", at="at + interval '1 microsecond'" if log.postgres else "'2020' || substr(at, 5)"
    )


async def where_the_sealer_has_passed(log: Tampered) -> None:
    await copied(log)
    column = "written_by" if log.postgres else "rowid"
    await log.do(f"UPDATE audit_event SET {column} = -7 WHERE {FORGED}")


async def with_a_leaf_below_the_first(log: Tampered) -> None:
    await copied(log)
    await log.do(f"INSERT INTO log_leaf SELECT tenant, -1, id, at FROM audit_event WHERE {FORGED}")


async def with_a_leaf_between_two(log: Tampered) -> None:
    await copied(log)
    await log.do(f"INSERT INTO log_leaf SELECT tenant, 7.5, id, at FROM audit_event WHERE {FORGED}")


async def with_a_leaf_at_no_number(log: Tampered) -> None:
    await copied(log)
    await log.do(f"INSERT INTO log_leaf SELECT tenant, 'x', id, at FROM audit_event WHERE {FORGED}")


ANYWHERE = (
    *(for_a_tenant_without_a_log, with_a_leaf_for_a_tenant_without_a_log, at_a_time_to_come),
    *(under_the_id_of_another, where_the_sealer_has_passed, with_a_leaf_below_the_first),
)
SQLITE_ONLY = (with_a_leaf_between_two, with_a_leaf_at_no_number)


@pytest.mark.parametrize("insert", ANYWHERE + SQLITE_ONLY, ids=lambda insert: insert.__name__)
async def test_an_event_is_found_wherever_it_was_put(
    sealed: Tampered, insert: Callable[[Tampered], Awaitable[None]]
) -> None:
    if insert in SQLITE_ONLY and sealed.postgres:
        return  # a column of PostgreSQL takes no other type
    await insert(sealed)
    (row,) = await sealed.do(f"SELECT id, tenant FROM audit_event WHERE {FORGED}")
    findings = (await sealed.verify()).findings
    event = f"event {row[0]}".replace("-", "")
    assert ("inserted", row[1], event) in {
        (made.kind, made.tenant, made.place.replace("-", "")) for made in findings
    }


async def test_an_authentic_event_that_the_sealer_was_led_past_is_found(sealed: Tampered) -> None:
    await sealed.record("acme", 1)
    column = "written_by" if sealed.postgres else "rowid"
    newest = "writer_seq = 1 AND id = (SELECT max(CAST(id AS text)) FROM audit_event WHERE tenant = 'acme')"
    newest = newest.replace("id =", "CAST(id AS text) =")
    assert (await sealed.verify()).holds
    await sealed.do(f"UPDATE audit_event SET {column} = -7 WHERE tenant = 'acme' AND {newest}")
    assert [made.kind for made in (await sealed.verify()).findings] == ["inserted"]


async def test_what_waits_for_the_sealer_is_no_finding_however_long(sealed: Tampered) -> None:
    """Negative control: the service was stopped or killed before it sealed, days ago."""
    assert (await sealed.verify()).waiting == 0
    await sealed.record("acme", 3)
    await sealed.record("newcomer", 2)
    sealed.replica.clock.advance(timedelta(days=3).total_seconds())
    result = await sealed.verify(anchors=[sealed.anchor])
    assert (result.findings, result.waiting, result.tenants) == ([], 5, 2)
    assert (await sealed.verify(tenant="newcomer")).holds
    await sealed.do(f"UPDATE audit_event SET {FORGED} WHERE tenant = 'newcomer'")
    result = await sealed.verify()
    assert ([made.kind for made in result.findings], result.waiting) == (["inserted"] * 2, 3)


async def test_many_inserted_events_are_some_findings(sealed: Tampered) -> None:
    await copied(sealed, "tenant = 'acme' LIMIT 101", tenant="'ghost'")
    findings = [made for made in (await sealed.verify()).findings if made.kind == "inserted"]
    assert (len(findings), findings[-1].place) == (101, "1 events")


async def test_a_tenant_whose_head_was_deleted_is_still_verified_alone(sealed: Tampered) -> None:
    await sealed.do("DELETE FROM log_head WHERE tenant = 'acme'")
    assert "rolled_back" in kinds(await sealed.verify(tenant="acme"))


async def test_a_log_that_was_deleted_leaves_its_events(sealed: Tampered) -> None:
    for table in ("log_leaf", "log_tile", "log_head", "log_entry", "log_checkpoint", "log_writer"):
        await sealed.do(f"DELETE FROM {table}")
    assert kinds(await sealed.verify()) == {"inserted"}


async def test_a_broken_mark_of_the_sealer_is_made_anew(sealed: Tampered) -> None:
    for broken in ("{}", "7", '{"order": "x", "tenant": "", "event": "", "until": null}'):
        await sealed.do(f"UPDATE installation SET value = '{broken}' WHERE name = 'audit_log_sealed'")
        assert (await sealed.verify()).holds
    await sealed.record("acme", 2)
    await sealed.seal()
    result = await sealed.verify()
    assert (result.findings, result.events, result.waiting) == ([], 279, 0)


async def test_a_key_that_somebody_adds_is_named_and_trusted_by_nobody(sealed: Tampered) -> None:
    ((value,),) = await sealed.do(
        "SELECT CAST(value AS text) FROM installation WHERE name = 'audit_log_keys'"
    )
    ((size, note),) = await sealed.do("SELECT size, note FROM log_checkpoint ORDER BY size DESC LIMIT 1")
    stored = json.loads(value)
    forging = SigningKey.create(stored["origin"])
    for sealed_part in (stored["keys"][0]["sealed"], base64.b64encode(b"nothing").decode()):
        added = {**stored["keys"][0], "public": str(forging.public), "sealed": sealed_part}
        keys = json.dumps({**stored, "keys": [added, *stored["keys"]]})
        await sealed.do(f"UPDATE installation SET value = '{keys}' WHERE name = 'audit_log_keys'")
        forged = forging.signed(Checkpoint(stored["origin"], size, bytes(32)).text())
        await sealed.do(f"UPDATE log_checkpoint SET note = '{forged}' WHERE size = {size}")
        result = await sealed.verify()
        assert [made.kind for made in result.findings] == ["bad_signature"] * 2
        assert result.findings[0].place == f"key {forging.public}"
        assert str(forging.public) not in map(str, result.keys)
    await sealed.do(f"UPDATE log_checkpoint SET note = '{note}' WHERE size = {size}")


FORMS = {
    "roles": ("'{\"invoker\": 1}'", True),
    "leaf": ("mac", True),
    # What SQLite compares as text, or reads the first of, while everything else reads the last.
    "at": ("replace(at, ' ', 'T')", False),
    "details": ("replace(details, '{', '{\"number\": 9, ')", False),
}


@pytest.mark.parametrize("column", FORMS)
async def test_the_same_value_in_another_form_is_a_change(sealed: Tampered, column: str) -> None:
    value, is_for_both = FORMS[column]
    if sealed.postgres and not is_for_both:
        return
    await sealed.do(f"UPDATE audit_event SET {column} = {value} WHERE id = {EVENT}")
    if column == "at":
        await sealed.do(
            "UPDATE log_leaf SET at = replace(at, ' ', 'T') WHERE tenant = 'acme' AND position = 7"
        )
    (made,) = (await sealed.verify()).findings
    assert (made.kind, made.tenant) == ("changed", "acme")


async def test_an_event_that_was_moved_in_time_is_found_among_those_since_then(sealed: Tampered) -> None:
    since = (await sealed.do("SELECT min(at) FROM log_entry"))[0][0]
    since = since if isinstance(since, datetime) else datetime.fromisoformat(f"{since}+00:00")
    await sealed.do(f"UPDATE audit_event SET at = {moved(sealed)} WHERE id = {EVENT}")
    await sealed.do(f"UPDATE log_leaf SET at = {moved(sealed)} WHERE tenant = 'acme' AND position = 7")
    assert "changed" in kinds(await sealed.verify(since=since - timedelta(minutes=5)))


def moved(log: Tampered) -> str:
    return "date_trunc('month', at)" if log.postgres else "substr(at, 1, 8) || '01 00:00:00.000000'"


async def test_a_checkpoint_and_an_entry_before_the_first_are_found(sealed: Tampered) -> None:
    await sealed.do("INSERT INTO log_checkpoint SELECT -5, 'x', at FROM log_checkpoint LIMIT 1")
    await sealed.do(
        "INSERT INTO log_entry SELECT -5, tenant, size, root, at FROM log_entry WHERE position = 1"
    )
    assert kinds(await sealed.verify()) == {"bad_checkpoint", "inserted"}


async def test_heads_that_nobody_signed_are_counted(sealed: Tampered) -> None:
    assert (await sealed.verify()).unsigned == 0
    await sealed.do("DELETE FROM log_checkpoint")
    result = await sealed.verify()
    assert (result.holds, result.checkpoints) == (True, 0)
    assert [result.unsigned] == [row[0] for row in await sealed.do("SELECT count(*) FROM log_entry")]


COUNTS = {
    "more": "UPDATE log_count SET events = events + 1",
    "fewer": "UPDATE log_count SET events = events - 1",
    "of another": "UPDATE log_count SET actor = 'forged'",
    "none": "DELETE FROM log_count",
    "one from nowhere": "INSERT INTO log_count VALUES ('acme', '2026-01-01', 'x', 'ok', 'forged', 1)",
    "less far than they go": "UPDATE log_counted SET size = size - 1",
    "further than the log goes": "UPDATE log_counted SET size = size + 1",
}


@pytest.mark.parametrize("done", COUNTS.values(), ids=COUNTS)
async def test_counts_that_somebody_changed_are_named(sealed: Tampered, done: str) -> None:
    await AuditCounts(sealed.replica.audit).count()
    whole = await sealed.verify(part=256)
    assert (whole.findings, whole) == ([], await sealed.verify())
    await sealed.do(f"{done} WHERE tenant = 'acme'" if "INSERT" not in done else done)
    findings = (await sealed.verify()).findings
    assert [(made.kind, made.tenant) for made in findings] == [("miscounted", "acme")]


async def test_counts_keep_events_that_are_gone(sealed: Tampered) -> None:
    """Negative control: a deleted event is one finding, for its counts may be right."""
    await AuditCounts(sealed.replica.audit).count()
    await sealed.do(f"DELETE FROM audit_event WHERE id = {EVENT}")
    assert [made.kind for made in (await sealed.verify()).findings] == ["missing"]


def kinds(result: Verification) -> set[str]:
    return {made.kind for made in result.findings}
