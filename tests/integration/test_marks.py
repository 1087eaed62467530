"""The mark is never ahead of a database that lost nothing, whoever writes it and whenever a process ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import delete, func, select, update

from app.core.content.handles import Handle
from app.core.errors import StoreUnavailableError
from app.services.vault.mark import DatabaseBehindError, MarkKeeper
from app.store.database import Database
from app.store.tables import installation
from app.store.vault.mark_files import MarkFolder, MarkUnreadableError
from app.store.vault.mark_positions import advance_position, find_step
from app.store.vault.tables import erasure
from app.store.vault.vault import add_erasure
from tests.factories import PATIENT, caller_of, open_vault


@pytest.fixture
async def keepers(database_url: str, tmp_path: Path) -> AsyncIterator[list[MarkKeeper]]:
    """Return what three replicas would have: a database object each, and one folder."""
    databases = [Database(database_url, patience=PATIENT) for _ in range(3)]
    yield [
        MarkKeeper(database, MarkFolder(tmp_path, shared=False), database.address) for database in databases
    ]
    for database in databases:
        await database.close()


async def test_replicas_that_step_together_raise_no_false_alarm(keepers: list[MarkKeeper]) -> None:
    async def serve(keeper: MarkKeeper) -> None:
        for _ in range(8):
            await keeper.step()
            await keeper.verify()
            await keeper.look()

    await asyncio.gather(*(serve(keeper) for keeper in keepers))
    standing = await keepers[0].verify()
    assert standing.mark is not None
    assert standing.position is not None
    assert standing.mark.step == standing.position.step


async def test_a_process_that_ends_between_database_and_mark_raises_no_false_alarm(
    keepers: list[MarkKeeper],
) -> None:
    await keepers[0].step()
    async with keepers[0].database.system_transaction() as tx:
        await advance_position(tx)
    await keepers[1].verify()
    await keepers[1].step()
    await keepers[0].look()
    await keepers[0].verify()


@pytest.mark.parametrize("gap", ["step", "epoch", "erasures"])
async def test_a_database_behind_its_mark_is_refused_and_then_shut(
    keepers: list[MarkKeeper], tmp_path: Path, gap: str
) -> None:
    await keepers[0].step()
    (path,) = tmp_path.glob("mark-*.json")
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, gap: stored[gap] + 1}))
    for keeper in keepers:
        with pytest.raises(DatabaseBehindError, match="replay-erasures"):
            await keeper.verify()
    if gap == "step":
        # The database repeats a number that the mark has: the step that notices it shuts the database.
        with pytest.raises(DatabaseBehindError):
            await keepers[1].step()
        with pytest.raises(StoreUnavailableError):
            await keepers[1].database.ping()
    path.write_text("{")
    with pytest.raises(MarkUnreadableError, match=path.name):
        await keepers[2].verify()


async def test_a_shared_folder_without_the_mark_is_not_taken_for_a_new_database(
    keepers: list[MarkKeeper], tmp_path: Path
) -> None:
    await keepers[0].step()
    (tmp_path / "other").mkdir()
    database = keepers[0].database
    with pytest.raises(DatabaseBehindError, match="mount or name the right place"):
        await MarkKeeper(database, MarkFolder(tmp_path / "other", shared=True), database.address).verify()


async def test_nothing_is_stepped_where_nothing_was_written(keepers: list[MarkKeeper]) -> None:
    await keepers[0].step()
    before = await keepers[0].verify()
    await keepers[0].database.ping()
    await keepers[0].look()
    assert (await keepers[0].verify()).position == before.position
    async with keepers[0].database.system_transaction():
        pass
    await keepers[0].look()
    assert (await keepers[0].verify()).position != before.position


async def test_a_database_that_goes_back_while_nothing_is_written_is_shut(
    own_database_url: str, tmp_path: Path
) -> None:
    where = installation.c.name == "mark"
    exchanged, older = ({"line": "0" * 16, "step": step} for step in (99, 98))
    changes = (
        update(installation).where(where).values(value=exchanged),
        update(installation).where(where).values(value=older),
        delete(installation).where(where),
    )
    for number, change in enumerate(changes):
        async with (
            Database(own_database_url, patience=PATIENT) as database,
            Database(own_database_url, patience=PATIENT) as other,
        ):
            folder = MarkFolder(tmp_path / str(number), shared=False)
            keeper = MarkKeeper(database, folder, database.address)
            await keeper.step()
            await keeper.look()
            await database.ping()  # the control
            async with other.system_transaction() as tx:
                await tx.execute(change)
            await keeper.look()
            with pytest.raises(StoreUnavailableError, match="restored from a backup or exchanged"):
                await database.ping()


async def test_each_receipt_of_an_erasure_is_counted_once_by_whichever_replica_steps(
    own_database_url: str, tmp_path: Path
) -> None:
    async with (
        Database(own_database_url, patience=PATIENT) as database,
        Database(own_database_url, patience=PATIENT) as other,
    ):
        folder = MarkFolder(tmp_path, shared=False)
        keepers = [MarkKeeper(each, folder, each.address) for each in (database, other)]

        async def erase(count: int) -> None:
            async with database.system_transaction() as tx:
                for _ in range(count):
                    await add_erasure(tx, "acme", uuid4(), "scope", datetime.now(UTC), "k", "talk", {})

        async def counted() -> int:
            positions = [(await keeper.standing()).position for keeper in keepers]
            (count,) = {position.erasures for position in positions if position is not None}
            return count

        async def uncounted() -> int:
            async with database.system_transaction(write=False) as tx:
                query = select(func.count()).select_from(erasure).where(~erasure.c.counted)
                return (await tx.execute(query)).scalar_one()

        await erase(2)
        await keepers[0].step()
        assert (await counted(), await uncounted()) == (2, 0)
        await erase(3)
        assert (await counted(), await uncounted()) == (5, 3)
        await asyncio.gather(*(keeper.step() for keeper in keepers))
        assert (await counted(), await uncounted()) == (5, 0)
        await erase(1)
        # The previous release counts all of them itself, and writes no sum.
        async with other.system_transaction() as tx:
            line, step = await find_step(tx) or ("", 0)
            value = {"line": line, "step": step + 1}
            await tx.execute(update(installation).where(installation.c.name == "mark").values(value=value))
        assert await counted() == 6
        await keepers[1].step()
        assert (await counted(), await uncounted()) == (6, 0)
        mark = (await keepers[0].standing()).mark
        assert mark is not None
        assert mark.erasures == 6


async def test_what_a_process_wrote_last_is_in_the_mark_when_it_has_ended(keepers: list[MarkKeeper]) -> None:
    keeper = keepers[0]
    await keeper.step()
    before = await keeper.verify()
    async with keeper.running(), keeper.database.system_transaction():
        pass
    after = await keeper.verify()
    assert after.position != before.position
    assert after.mark is not None and after.position is not None
    assert after.mark.step == after.position.step
    async with keeper.running():
        pass
    assert (await keeper.verify()).position == after.position, "the control: nothing was written"


async def test_a_mark_that_cannot_be_written_ends_readiness_until_it_can(
    keepers: list[MarkKeeper], tmp_path: Path
) -> None:
    keeper = MarkKeeper(keepers[0].database, MarkFolder(tmp_path / "a file", shared=False), "somewhere")
    (tmp_path / "a file").write_text("")
    await keeper.note_erasure()
    assert not await keeper.ready()
    (tmp_path / "a file").unlink()
    await keeper.note_erasure()
    await keeper.look()
    assert await keeper.ready()


async def test_a_line_after_one_that_was_cut_off_stays_readable(
    database: Database, tenant: str, tmp_path: Path
) -> None:
    caller, sink = caller_of(tenant), tmp_path / "erasures.jsonl"
    async with open_vault(database, sink=sink) as vault:
        await vault.store(caller, "talk", "Ada", "Bob")
        sink.write_text('{"tenant": "ac')
        await vault.service.erase_handle(caller, "talk", Handle("PERSON", 2))
    assert json.loads(sink.read_text().splitlines()[1])["erased"] == [["talk", "PERSON", 2]]
