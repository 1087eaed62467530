"""Who gets the next free worker."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from app.engines.pii.processes.lanes import Lanes, Weight


@dataclass(eq=False)
class Worker:
    running: bool = True


async def served(lanes: Lanes, order: list[str], name: str, weight: Weight) -> None:
    worker = await lanes.take(weight)
    order.append(name)
    await asyncio.sleep(0)
    lanes.put(worker)


KINDS = {"s": Weight.SMALL, "m": Weight.MEDIUM, "l": Weight.LONG}


async def order_of(size: int, waiting: str) -> list[str]:
    """Return in which order work is served where all waits before a worker is free: see `KINDS`."""
    lanes: Any = Lanes(size)
    order: list[str] = []
    tasks = [
        asyncio.create_task(served(lanes, order, f"{kind}{number}", KINDS[kind]))
        for number, kind in enumerate(waiting)
    ]
    await asyncio.sleep(0)
    for _ in range(size):
        lanes.put(Worker())
    async with asyncio.timeout(5):
        await asyncio.gather(*tasks)
    return order


def test_short_and_long_work_take_turns_each_in_the_order_of_arrival() -> None:
    assert asyncio.run(order_of(1, "llllss")) == ["s4", "l0", "s5", "l1", "l2", "l3"]
    assert asyncio.run(order_of(1, "lmmlss")) == ["s4", "m1", "l0", "s5", "m2", "l3"]


def test_a_flood_of_small_work_does_not_starve_long_work() -> None:
    assert asyncio.run(order_of(1, "sssssl")).index("l5") == 1


async def test_of_several_workers_one_is_left_to_shorter_work() -> None:
    lanes: Any = Lanes(2)
    first, second = Worker(), Worker()
    lanes.put(first)
    lanes.put(second)
    assert await lanes.take(Weight.LONG) is first
    waiting = asyncio.create_task(lanes.take(Weight.LONG))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert await lanes.take(Weight.MEDIUM) is second
    lanes.put(second)
    assert await lanes.take(Weight.SMALL) is second
    lanes.lost(first)
    lanes.put(second)
    assert await waiting is second


async def test_a_worker_that_ended_is_given_to_nobody() -> None:
    lanes: Any = Lanes(1)
    lanes.put(Worker(running=False))
    waiting = asyncio.create_task(lanes.take(Weight.SMALL))
    await asyncio.sleep(0)
    assert not waiting.done()
    lanes.put(alive := Worker())
    assert await waiting is alive


async def test_who_gives_up_takes_no_worker_away() -> None:
    lanes: Any = Lanes(1)
    gone = asyncio.create_task(lanes.take(Weight.SMALL))
    late = asyncio.create_task(lanes.take(Weight.SMALL))
    next_ = asyncio.create_task(lanes.take(Weight.SMALL))
    await asyncio.sleep(0)
    gone.cancel()
    lanes.put(worker := Worker())
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    assert await next_ is worker
