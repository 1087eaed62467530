"""Processes that verify the log end with the verification, whatever ends it, and their failures are errors."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from app.core.access import Caller
from app.core.audit import OUTCOME_OK
from app.core.errors import StoreUnavailableError
from app.services.audit.comparing import range_processes
from app.services.audit.comparing.comparison import LogPart
from app.services.audit.comparing.range_processes import usual_processes, working
from app.services.audit.verification import LogVerifier
from app.store.audit.log import Head
from app.store.database import Database
from tests.factories import with_schema
from tests.integration.access_setup import Replica, replica_on
from tests.integration.sealing import seal_all

PART = LogPart("acme", 0, 1, None)


@pytest.fixture
async def replica(tmp_path: Path) -> AsyncIterator[Replica]:
    async with (
        Database(with_schema(f"sqlite:///{tmp_path}/sluice.db")) as database,
        replica_on(database) as it,
    ):
        yield it


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "range_process" in " ".join(child.cmdline())]


async def test_a_process_that_cannot_start_is_an_error_and_leaves_none(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = Caller("acme", "00000001", frozenset())
    await replica.audit.record(replica.audit.new_event(caller, "middleware.invoke", OUTCOME_OK, None))
    await seal_all(replica.audit)
    monkeypatch.setattr(range_processes, "_environment", dict)
    monkeypatch.setattr(range_processes.sys, "executable", "/bin/false")
    with pytest.raises(StoreUnavailableError, match="--processes 1"):
        await LogVerifier(replica.audit, processes=2).verify()
    assert children() == []


async def test_an_error_of_the_database_comes_back_from_another_process(
    replica: Replica, tmp_path: Path
) -> None:
    missing = Database(with_schema(f"sqlite:///{tmp_path}/other.db"))
    async with missing:
        (tmp_path / "other.db").unlink()
        (tmp_path / "other.db").touch()
        async with working(missing, replica.keys, 2) as work:
            with pytest.raises(StoreUnavailableError):
                await work.tree(Head("acme", 1, b"", 0), 1)
            assert len(children()) == 2
    assert children() == []


async def test_who_interrupts_a_verification_leaves_no_process(replica: Replica) -> None:
    async def ask() -> None:
        async with working(replica.database, replica.keys, 2) as work:
            while True:
                await work.compare(PART)

    asking = asyncio.create_task(ask())
    async with asyncio.timeout(30):
        while len(children()) < 2:
            await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert children() == []


def test_few_events_are_worth_no_other_process() -> None:
    assert usual_processes(1) == 1
    assert usual_processes(10**9) >= 1
