"""What waits is ended at its time, and by nothing else."""

import asyncio

import pytest

from app.core.deadlines import WaitLimit


async def test_what_waits_too_long_is_ended_with_a_timeout() -> None:
    with pytest.raises(TimeoutError), WaitLimit.after(0.01):
        await asyncio.sleep(30)
    await asyncio.sleep(0)  # the task goes on as if nothing had been


async def test_what_ends_in_time_is_left_alone() -> None:
    with WaitLimit.after(0.02):
        await asyncio.sleep(0)
    await asyncio.sleep(0.04)


async def test_a_cancellation_by_another_is_none_of_its_timeouts() -> None:
    async def wait() -> None:
        with WaitLimit.after(30):
            await asyncio.sleep(30)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_that_comes_together_with_the_timeout_goes_on() -> None:
    async def wait() -> None:
        with WaitLimit.after(0.01):
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                asyncio.current_task().cancel()  # type: ignore[union-attr]
                raise

    task = asyncio.create_task(wait())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_inner_of_two_limits_ends_what_it_surrounds_alone() -> None:
    with WaitLimit.after(30):
        with pytest.raises(TimeoutError), WaitLimit.after(0.01):
            await asyncio.sleep(30)
        await asyncio.sleep(0)
