"""The sealer on both databases: each event once, in order, whatever writes at the same time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from app.core.access import SYSTEM_TENANT, Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent, WriterNumber
from app.core.errors import ForbiddenError
from app.core.transparency.hashing import leaf_hash
from app.core.transparency.notes import Checkpoint, Note
from app.core.transparency.tiles import TilePlace, edge, root
from app.engines.signing import checker
from app.services.audit.leaves import leaf_of
from app.services.audit.log_access import AuditLogService
from app.services.audit.log_keys import LogKeyService
from app.services.audit.sealer import LogSealer, head_leaf
from app.store.audit.audit import RecordedEvent
from app.store.audit.log import (
    HEADS,
    Progress,
    list_entries,
    list_heads,
    list_leaves,
    list_tiles,
    newest_checkpoint,
    write_progress,
)
from app.store.database import Database
from tests.integration.access_setup import Replica, replica_on
from tests.integration.sealing import seal_all


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
def caller(tenant: str) -> Caller:
    return Caller(tenant, "00000001", frozenset({Role.INVOKER, Role.AUDITOR}))


def event_of(replica: Replica, caller: Caller, number: int) -> AuditEvent:
    details = {"number": number}
    return replica.audit.new_event(caller, "middleware.invoke", OUTCOME_OK, None, details=details)


async def record(replica: Replica, caller: Caller, count: int) -> list[AuditEvent]:
    events = [event_of(replica, caller, number) for number in range(count)]
    await asyncio.gather(*(replica.audit.record(event) for event in events))
    return events


async def log_of(replica: Replica, tenant: str) -> tuple[Any, list[AuditEvent], dict[TilePlace, bytes]]:
    """Return the head of a tenant, its events in the order of the log, and the tiles at the edge."""
    head, rows, tiles = await rows_of(replica, tenant)
    return head, [row.event for row in rows], tiles


async def rows_of(replica: Replica, tenant: str) -> tuple[Any, list[RecordedEvent], dict[TilePlace, bytes]]:
    """Return the same with the events as they are stored."""
    async with replica.database.system_transaction(write=False) as tx:
        head = (await list_heads(tx, [tenant]))[tenant]
        leaves = await list_leaves(tx, tenant, 0, 10_000)
        tiles = await list_tiles(tx, [(tenant, place) for place in edge(head.size)])
    assert [leaf.position for leaf, _ in leaves] == list(range(head.size))
    return head, [stored for _, stored in leaves if stored is not None], tiles[tenant]


async def test_every_event_enters_the_log_once(replica: Replica, caller: Caller) -> None:
    first = await record(replica, caller, 30)
    await seal_all(replica.audit)
    second = await record(replica, caller, 300)
    await seal_all(replica.audit)
    assert await LogSealer.over(replica.audit).seal() == 0
    head, logged, tiles = await log_of(replica, caller.tenant)
    assert head.size == 330
    assert {event.id for event in logged} == {event.id for event in first + second}
    assert {event.id for event in logged[:30]} == {event.id for event in first}
    assert root(330, tiles) == head.root
    _, rows, _ = await rows_of(replica, caller.tenant)
    assert tiles[TilePlace(0, 1)][:32] == leaf_hash(leaf_of(rows[256]))


async def test_rows_from_before_their_hashes_were_stored_are_sealed_by_their_content(
    replica: Replica, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = replica.audit.writer
    code = writer.code

    def without_leaf(event: AuditEvent, number: WriterNumber) -> Any:
        return code(event, number)._replace(leaf=None)

    for old in (True, False, True):
        monkeypatch.setattr(writer, "code", without_leaf if old else code)
        await record(replica, caller, 3)
    await seal_all(replica.audit)
    head, rows, tiles = await rows_of(replica, caller.tenant)
    assert head.size == 9
    stored = tiles[TilePlace(0, 0)]
    assert [stored[at : at + 32] for at in range(0, 9 * 32, 32)] == [leaf_hash(leaf_of(row)) for row in rows]


async def test_what_is_written_while_it_seals_is_sealed_too(replica: Replica, caller: Caller) -> None:
    done = asyncio.Event()

    async def keep_sealing() -> None:
        while not done.is_set():
            await LogSealer.over(replica.audit).seal()

    sealing = asyncio.create_task(keep_sealing())
    events = []
    for _ in range(10):
        events += await record(replica, caller, 20)
    done.set()
    await sealing
    await seal_all(replica.audit)
    _, logged, _ = await log_of(replica, caller.tenant)
    assert sorted(event.id for event in logged) == sorted(event.id for event in events)


async def test_sealing_does_not_run_after_what_comes_meanwhile(
    replica: Replica, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed: list[int] = []
    batch, done = LogSealer._batch, asyncio.Event()

    async def counted(sealer: LogSealer) -> Any:
        result = await batch(sealer)
        sealed.append(result.events)
        return result

    async def keep_writing() -> int:
        written = 0
        while not done.is_set():
            written += len(await record(replica, caller, 1))
        return written

    await seal_all(replica.audit)
    monkeypatch.setattr(LogSealer, "_batch", counted)
    await record(replica, caller, 20)
    writing = asyncio.create_task(keep_writing())
    await LogSealer.over(replica.audit).seal()
    done.set()
    written = await writing
    assert sum(map(bool, sealed)) <= 1
    await seal_all(replica.audit)
    _, logged, _ = await log_of(replica, caller.tenant)
    assert len(logged) == 20 + written


async def test_a_backlog_is_sealed_at_once(
    replica: Replica, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not replica.database.embedded:
        return  # others of the same server may hold a transaction open
    monkeypatch.setattr("app.services.audit.sealer.BATCH", 10)
    await seal_all(replica.audit)
    for count in (25, 20):
        await record(replica, caller, count)
        assert await LogSealer.over(replica.audit).seal() == count


async def test_a_transaction_that_is_still_open_is_passed_over_by_none(
    replica: Replica, caller: Caller
) -> None:
    if replica.database.embedded:
        return  # one connection writes at a time
    sealer = LogSealer.over(replica.audit)
    slow = event_of(replica, caller, 1)
    async with replica.database.transaction(caller.tenant) as tx:
        await replica.audit.record_with(tx, slow)
        (quick,) = await record(replica, caller, 1)
        await sealer.seal()
        async with replica.database.system_transaction(write=False) as reader:
            assert caller.tenant not in await list_heads(reader, [caller.tenant])
    await seal_all(replica.audit)
    _, logged, _ = await log_of(replica, caller.tenant)
    assert [event.id for event in logged] == [slow.id, quick.id]


async def test_the_head_of_each_tenant_is_in_the_signed_log_of_heads(
    replica: Replica, caller: Caller
) -> None:
    await record(replica, caller, 3)
    await seal_all(replica.audit)
    async with replica.database.system_transaction(write=False) as tx:
        heads = await list_heads(tx, [caller.tenant, HEADS])
        entries = await list_entries(tx, heads[caller.tenant].entry, 1)
        tiles = (await list_tiles(tx, [(HEADS, place) for place in edge(heads[HEADS].size)]))[HEADS]
        checkpoint = await newest_checkpoint(tx)
    assert (entries[0].tenant, entries[0].size, entries[0].root) == (
        caller.tenant,
        3,
        heads[caller.tenant].root,
    )
    tile, offset = divmod(entries[0].position, 256)
    assert tiles[TilePlace(0, tile)][offset * 32 : offset * 32 + 32] == leaf_hash(head_leaf(entries[0]))
    assert checkpoint is not None
    note = Note.parse(checkpoint.note)
    ((key, _),) = await LogKeyService.over(replica.audit).public()
    assert note.is_signed(key, checker(key))
    head = Checkpoint.parse(note.text)
    assert (head.origin, head.size, head.root) == (key.name, heads[HEADS].size, heads[HEADS].root)


async def test_a_new_key_signs_and_the_old_one_stays_known(replica: Replica, caller: Caller) -> None:
    keys = LogKeyService.over(replica.audit)
    await record(replica, caller, 1)
    await seal_all(replica.audit)
    ((old, _),) = (await keys.public())[-1:]
    renewed = await keys.renew()
    await record(replica, caller, 1)
    await seal_all(replica.audit)
    public = [key for key, _ in await keys.public()]
    assert public[-2:] == [old, renewed]
    async with replica.database.system_transaction(write=False) as tx:
        checkpoint = await newest_checkpoint(tx)
    assert checkpoint is not None
    note = Note.parse(checkpoint.note)
    assert note.is_signed(renewed, checker(renewed))
    assert not note.is_signed(old, checker(old))


async def test_only_key_custodians_of_the_tenant_system_renew_the_key(
    replica: Replica, caller: Caller
) -> None:
    keys, log = LogKeyService.over(replica.audit), AuditLogService(replica.audit)
    await record(replica, caller, 1)
    await seal_all(replica.audit)
    before = [key for key, _ in await keys.public()]
    others = frozenset(role for role in Role if role is not Role.KEY_CUSTODIAN)
    for tenant, roles in ((SYSTEM_TENANT, others), (caller.tenant, frozenset(Role))):
        with pytest.raises(ForbiddenError):
            await log.renew_key(Caller(tenant, "00000001", roles))
    assert [key for key, _ in await keys.public()] == before
    renewed = await log.renew_key(Caller(SYSTEM_TENANT, "00000001", frozenset({Role.KEY_CUSTODIAN})))
    assert [key for key, _ in await keys.public()] == [*before, renewed]


@pytest.mark.parametrize("lost", ["progress", "order"])
async def test_a_database_that_numbers_its_rows_anew_is_sealed_all_the_same(
    replica: Replica, caller: Caller, lost: str
) -> None:
    before = await record(replica, caller, 5)
    await seal_all(replica.audit)
    async with replica.database.system_transaction() as tx:
        if lost == "progress":
            await tx.execute(text("DELETE FROM installation WHERE name = 'audit_log_sealed'"))
        else:
            # As after a restore to another cluster, or into a file that was compacted.
            await write_progress(tx, Progress(2**62, "x", UUID(int=1)))
    after = await record(replica, caller, 5)
    await seal_all(replica.audit)
    _, logged, _ = await log_of(replica, caller.tenant)
    assert sorted(event.id for event in logged) == sorted(event.id for event in before + after)
    assert {event.id for event in logged[:5]} == {event.id for event in before}
    more = await record(replica, caller, 2)
    await seal_all(replica.audit)
    _, logged, _ = await log_of(replica, caller.tenant)
    assert {event.id for event in logged[10:]} == {event.id for event in more}


async def test_a_tenant_reads_its_own_log_and_the_heads_hashes_only(replica: Replica, caller: Caller) -> None:
    if replica.database.embedded:
        return  # SQLite has no row-level security
    other = Caller(f"{caller.tenant}-other", "00000002", caller.roles)
    await record(replica, caller, 2)
    await record(replica, other, 3)
    await seal_all(replica.audit)
    async with replica.database.transaction(caller.tenant, write=False) as tx:
        assert set(await list_heads(tx)) == {caller.tenant}
        assert len(await list_leaves(tx, caller.tenant, 0, 10)) == 2
        assert await list_leaves(tx, other.tenant, 0, 10) == []
        assert {entry.tenant for entry in await list_entries(tx, 0, 10_000)} == {caller.tenant}
        tiles = await list_tiles(tx, [(log, TilePlace(0, 0)) for log in (caller.tenant, other.tenant, HEADS)])
        assert {log for log, own in tiles.items() if own} == {caller.tenant, HEADS}
        assert await newest_checkpoint(tx) is not None
