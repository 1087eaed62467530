"""Memory goes back to the system once, a moment after the last large body."""

import asyncio

from app.edge.memory import FreedMemory, tune_allocator


async def test_memory_is_given_back_once_after_several_large_bodies_and_never_for_small_ones() -> None:
    trims: list[int] = []
    freed = FreedMemory(quiet_s=0.05, trim=lambda pad: trims.append(pad) or 0)
    for _ in range(5):
        freed.after(1000)
    await asyncio.sleep(0.15)
    assert trims == []
    for _ in range(5):
        freed.after(8_000_000)
        await asyncio.sleep(0.01)
    assert trims == []
    await asyncio.sleep(0.3)
    assert trims == [0]


async def test_without_such_a_function_nothing_happens() -> None:
    FreedMemory(quiet_s=0, trim=None).after(8_000_000)


def test_the_allocator_of_this_process_can_be_tuned() -> None:
    tune_allocator()
