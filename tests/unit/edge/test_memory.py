"""Memory goes back to the system once, a moment after the last large body."""

import asyncio

from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient

from app.edge.guard import EdgeGuard
from app.edge.limits import EdgeLimits
from app.edge.memory import LARGE_BYTES, FreedMemory, tune_allocator


async def test_memory_is_given_back_once_after_several_large_bodies_and_never_for_small_ones() -> None:
    trims: list[int] = []
    freed = FreedMemory(quiet_s=0.5, trim=lambda pad: trims.append(pad) or 0)
    guard = EdgeGuard(FastAPI(), EdgeLimits(max_body_bytes=2 * LARGE_BYTES), freed=freed)
    small, large = (b'"' + b"x" * (size - 2) + b'"' for size in (LARGE_BYTES - 1, LARGE_BYTES))
    json = {"content-type": "application/json"}
    async with AsyncClient(transport=ASGITransport(guard), base_url="http://localhost", headers=json) as http:
        for _ in range(3):
            await http.post("/any", content=small)
        await asyncio.sleep(0.8)
        assert trims == []
        for _ in range(3):
            await http.post("/any", content=large)
        assert trims == []
    await asyncio.sleep(0.8)
    assert trims == [0]


async def test_without_such_a_function_nothing_happens() -> None:
    FreedMemory(quiet_s=0, trim=None).after_large()


def test_the_allocator_of_this_process_can_be_tuned() -> None:
    tune_allocator()
