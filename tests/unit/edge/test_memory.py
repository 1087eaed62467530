"""Memory goes back to the system once, a moment after the last large body."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient

from app.edge.budget import SMALL_BODY
from app.edge.guard import EdgeGuard
from app.edge.limits import EdgeLimits
from app.edge.memory import LARGE_BYTES, FreedMemory, tune_allocator


def _noted(calls: list[str], name: str) -> Callable[..., int]:
    def note(*_: int) -> int:
        calls.append(name)
        return 0

    return note


async def test_memory_is_given_back_once_after_several_large_bodies_and_never_for_small_ones() -> None:
    calls: list[str] = []
    freed = FreedMemory(quiet_s=0.5, trim=_noted(calls, "trim"), collect=_noted(calls, "collect"))
    guard = EdgeGuard(FastAPI(), EdgeLimits(max_body_bytes=2 * LARGE_BYTES), freed=freed)
    small, large = (b'"' + b"x" * (size - 2) + b'"' for size in (LARGE_BYTES // 2, LARGE_BYTES))
    json = {"content-type": "application/json"}
    async with AsyncClient(transport=ASGITransport(guard), base_url="http://localhost", headers=json) as http:
        for _ in range(3):
            await http.post("/any", content=small)
        await asyncio.sleep(0.8)
        assert calls == []
        for _ in range(3):
            await http.post("/any", content=large)
        assert calls == []
    await asyncio.sleep(0.8)
    assert calls == ["collect", "trim"]


async def test_a_small_request_is_not_counted_and_a_larger_one_with_its_answer_is() -> None:
    sizes: list[int] = []
    guard = EdgeGuard(FastAPI(), EdgeLimits(), freed=SimpleNamespace(ended=sizes.append))
    json = {"content-type": "application/json"}
    async with AsyncClient(transport=ASGITransport(guard), base_url="http://localhost", headers=json) as http:
        await http.post("/any", content=b'"small"')
        answer = await http.post("/any", content=b'"' + b"x" * SMALL_BODY + b'"')
    assert sizes == [SMALL_BODY + 2 + len(answer.content)]


@pytest.mark.parametrize("size", [LARGE_BYTES // 2, 8 * LARGE_BYTES])
async def test_cycles_are_collected_while_bodies_never_cease(size: int) -> None:
    calls: list[str] = []
    freed = FreedMemory(quiet_s=3600, trim=_noted(calls, "trim"), collect=_noted(calls, "collect"))
    for _ in range(64 * LARGE_BYTES // size - 1):
        freed.ended(size)
    assert calls == []
    freed.ended(size)
    assert calls == ["collect"]
    freed.ended(size)
    assert calls == ["collect"]


async def test_without_such_a_function_only_cycles_are_collected() -> None:
    calls: list[str] = []
    FreedMemory(quiet_s=0, trim=None, collect=_noted(calls, "collect")).ended(LARGE_BYTES)
    await asyncio.sleep(0.05)
    assert calls == ["collect"]


def test_the_allocator_of_this_process_can_be_tuned() -> None:
    tune_allocator()
