"""Background tasks end with their owner, and none of them brings down another."""

import asyncio
import gc
import logging
from contextlib import suppress

import pytest

from app.core.background import BackgroundTasks, ended, meanwhile

SECRET = "jane@example.com"


async def forever():
    await asyncio.Event().wait()


async def failing():
    raise ValueError(SECRET)


async def test_closing_cancels_what_runs_and_waits_until_it_has_ended():
    tasks, ended = BackgroundTasks(), []

    async def slow_to_end():
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    started = [tasks.start(slow_to_end(), name="slow"), tasks.start(forever())]
    await asyncio.sleep(0)
    assert len(tasks) == 2
    assert started[0].get_name() == "slow"
    await tasks.close()
    assert ended == ["cleaned up"]
    assert all(task.cancelled() for task in started)
    assert len(tasks) == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_task_that_fails_is_logged_by_its_kind_alone_and_the_others_go_on(caplog):
    tasks = BackgroundTasks()
    other, failed = tasks.start(forever()), tasks.start(failing())
    with caplog.at_level(logging.WARNING):
        await asyncio.wait({failed})
        await asyncio.sleep(0)
    assert [record.getMessage() for record in caplog.records] == ["a background task failed: ValueError"]
    assert caplog.records[0].exc_info is None
    assert not other.done()
    assert len(tasks) == 1
    await tasks.close()


async def test_a_task_that_ended_or_was_cancelled_is_forgotten_without_a_word(caplog):
    tasks = BackgroundTasks()
    done, cancelled = tasks.start(asyncio.sleep(0)), tasks.start(forever())
    await done
    cancelled.cancel()
    await asyncio.wait({cancelled})
    await asyncio.sleep(0)
    assert len(tasks) == 0
    assert not caplog.records


async def test_waiting_cancels_nothing_and_outlives_a_failure():
    tasks, done = BackgroundTasks(), []

    async def work():
        await asyncio.sleep(0.01)
        done.append("work")

    tasks.start(failing())
    tasks.start(work())
    await tasks.wait()
    assert done == ["work"]
    assert len(tasks) == 0


async def test_work_runs_while_the_body_does_and_is_gone_behind_it():
    begun = asyncio.Event()

    async def work():
        begun.set()
        await forever()

    async with meanwhile(work(), name="work"):
        await asyncio.wait_for(begun.wait(), 1)
        assert "work" in {task.get_name() for task in asyncio.all_tasks()}
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_work_ends_when_the_body_fails_and_the_error_of_the_body_is_raised():
    with pytest.raises(KeyError):
        async with meanwhile(forever(), name="work"):
            raise KeyError
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_the_work_raised_is_raised_behind_the_body():
    begun = asyncio.Event()

    async def work():
        begun.set()
        raise ValueError(SECRET)

    async def body():
        async with meanwhile(work(), name="work"):
            await begun.wait()

    with pytest.raises(ValueError, match=SECRET):
        await body()


async def losing_one(begun: asyncio.Event) -> None:
    """Go on behind the first cancellation, as a loop does when a library loses it."""
    begun.set()
    with suppress(asyncio.CancelledError):
        await forever()
    await forever()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("app.core.background._AGAIN_S", 0.01)


@pytest.mark.usefixtures("impatient")
async def test_work_that_loses_a_cancellation_ends_all_the_same():
    begun = asyncio.Event()
    async with asyncio.timeout(20):
        async with meanwhile(losing_one(begun), name="work"):
            await begun.wait()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.usefixtures("impatient")
async def test_an_owner_that_closes_outlasts_a_lost_cancellation():
    begun, tasks = asyncio.Event(), BackgroundTasks()
    tasks.start(losing_one(begun))
    await begun.wait()
    async with asyncio.timeout(20):
        await tasks.close()
    assert len(tasks) == 0


async def test_who_cancels_the_owner_is_heard_while_it_ends_its_work():
    begun = asyncio.Event()
    held = asyncio.create_task(losing_one(begun))

    async def owner():
        await ended(held)

    await begun.wait()
    waiting = asyncio.create_task(owner())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting}, timeout=5)
    assert waiting.cancelled()
    held.cancel()
    await asyncio.wait({held})


async def test_what_a_task_raises_at_its_end_is_for_nobody(caplog):
    async def failing_to_end():
        try:
            await forever()
        finally:
            raise ValueError(SECRET)

    failed = asyncio.create_task(failing_to_end())
    await asyncio.sleep(0)
    await ended(failed)
    del failed
    gc.collect()
    assert not caplog.records
