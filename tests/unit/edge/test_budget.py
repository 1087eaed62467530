"""The bytes that bodies hold: bounded for a key, a tenant and all; large ones wait their turn, small ones never."""

import asyncio

import pytest

from app.core.access import Caller
from app.core.errors import OverloadedError
from app.edge.budget import SMALL_BODY, ByteBudget, ByteLimits, Holding

ONE = 100_000
A1, A2, B1 = (Caller(tenant, key, frozenset()) for tenant, key in (("a", "1"), ("a", "2"), ("b", "1b")))


def budget(*, total: int = 9, tenant: int = 6, key: int = 3) -> ByteBudget:
    """Return a budget in units of ``ONE`` large body, without what is kept for small ones."""
    kept = 8 / 7
    return ByteBudget(ByteLimits(*(round(units * ONE * kept) + 8 for units in (total, tenant, key))))


async def grown(counted: ByteBudget, caller: Caller, size: int = ONE, timeout_s: float = 5) -> Holding:
    holding = counted.holding(caller)
    await holding.grow(size, timeout_s)
    return holding


async def test_large_bodies_of_one_key_wait_for_each_other_in_order_and_for_nobody_else() -> None:
    counted = budget()
    first, *_ = [await grown(counted, A1) for _ in range(3)]
    fourth = asyncio.create_task(grown(counted, A1))
    fifth = asyncio.create_task(grown(counted, A1))
    await asyncio.sleep(0)
    assert counted.waiting == 2
    others = [await grown(counted, caller) for caller in (A2, B1)]
    first.release()
    await asyncio.sleep(0.01)
    assert (fourth.done(), fifth.done()) == (True, False)
    for holding in (*others, await fourth):
        holding.release()
    (await fifth).release()
    assert counted.held == 2 * ONE


async def test_a_smaller_body_does_not_overtake_a_larger_one_that_waits_for_the_same_room() -> None:
    counted = budget(total=3)
    first = [await grown(counted, A1), await grown(counted, A2)]
    larger = asyncio.create_task(grown(counted, B1, 2 * ONE))
    smaller = asyncio.create_task(grown(counted, B1))
    await asyncio.sleep(0.01)
    assert (larger.done(), smaller.done()) == (False, False)
    for holding in first:
        holding.release()
    for task in (larger, smaller):
        (await task).release()
    assert counted.held == 0


async def test_a_tenant_of_many_keys_leaves_room_for_others() -> None:
    counted = budget()
    keys = [Caller("a", f"{number}", frozenset()) for number in range(12)]
    tasks = [asyncio.create_task(grown(counted, key)) for key in keys]
    await asyncio.sleep(0.01)
    assert (counted.held, counted.waiting) == (6 * ONE, 6)
    other = await grown(counted, B1)
    for task in tasks:
        (await task).release()
    other.release()
    assert (counted.held, counted.waiting) == (0, 0)


async def test_small_bodies_go_on_where_large_ones_wait_until_their_own_share_is_taken() -> None:
    counted = budget(key=6)
    large = [await grown(counted, A1) for _ in range(6)]
    small = await grown(counted, A1, 20_000)
    refusals = [
        error
        for error in await asyncio.gather(
            *(grown(counted, A1, SMALL_BODY) for _ in range(100)), return_exceptions=True
        )
        if isinstance(error, OverloadedError)
    ]
    assert len(refusals) == 99
    assert refusals[0].retry_after_s == 1
    for holding in (*large, small):
        holding.release()


async def test_a_body_larger_than_a_limit_is_held_alone() -> None:
    counted = budget(total=1, tenant=1, key=1)
    lone = await grown(counted, A1, 50 * ONE)
    with pytest.raises(OverloadedError):
        await grown(counted, B1, 50 * ONE, timeout_s=0.01)
    lone.release()
    (await grown(counted, B1, 50 * ONE)).release()
    assert (counted.held, counted.waiting) == (0, 0)


async def test_nothing_is_lost_where_requests_end_while_they_wait() -> None:
    counted = budget(key=1)
    holding = await grown(counted, A1)
    waiting = [asyncio.create_task(grown(counted, A1)) for _ in range(4)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    holding.release()  # the turn of the first comes in the moment in which its request ends
    waiting[2].cancel()
    for task in (waiting[1], waiting[3]):
        (await task).release()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert (counted.held, counted.waiting) == (0, 0)


async def test_a_tenant_may_not_fill_the_queue() -> None:
    counted = budget(key=1)
    holding = await grown(counted, A1)
    waiting = [asyncio.create_task(grown(counted, A1)) for _ in range(256)]
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await grown(counted, A2)
    (await grown(counted, B1)).release()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    holding.release()
    assert (counted.held, counted.waiting) == (0, 0)
