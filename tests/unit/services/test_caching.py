"""What is remembered for a moment, and what never is."""

import asyncio

import pytest

from app.services.caching import ShortMemory


class Source:
    """Answers with its present value, when it is let."""

    def __init__(self, value: str | None) -> None:
        self.value = value
        self.loads = 0
        self.open = asyncio.Event()
        self.open.set()

    async def load(self, _key: str) -> str | None:
        self.loads += 1
        value = self.value
        await self.open.wait()
        return value


async def test_a_value_is_loaded_once_until_it_is_too_old() -> None:
    now = [0.0]
    memory: ShortMemory[str, str] = ShortMemory(ttl_s=5, size=10, clock=lambda: now[0])
    source = Source("a")
    for now[0] in (0, 1, 4.9):
        assert await memory.get("k", source.load) == "a"
    assert source.loads == 1
    now[0] = 5
    assert memory.peek("k") is None
    assert await memory.get("k", source.load) == "a"
    assert source.loads == 2


async def test_a_value_is_kept_while_every_change_is_told_and_no_longer() -> None:
    now, told = [0.0], [True]
    memory: ShortMemory[str, str] = ShortMemory(ttl_s=5, size=10, clock=lambda: now[0])
    memory.follow(lambda: told[0])
    source = Source("a")
    await memory.get("k", source.load)
    now[0] = 10_000
    assert await memory.get("k", source.load) == "a"
    assert source.loads == 1
    told[0] = False
    assert memory.peek("k") is None
    told[0], source.value = True, "b"
    memory.forget("k")
    assert await memory.get("k", source.load) == "b"


async def test_nothing_is_never_remembered() -> None:
    memory: ShortMemory[str, str] = ShortMemory(ttl_s=5, size=10)
    source = Source(None)
    assert await memory.get("k", source.load) is None
    source.value = "now"
    assert await memory.get("k", source.load) == "now"


async def test_concurrent_readers_share_a_load_and_one_that_leaves_takes_nothing_along() -> None:
    memory: ShortMemory[str, str] = ShortMemory(ttl_s=5, size=10)
    source = Source("a")
    source.open.clear()
    readers = [asyncio.create_task(memory.get("k", source.load)) for _ in range(10)]
    await asyncio.sleep(0)
    readers[0].cancel()
    await asyncio.sleep(0)
    source.open.set()
    results = await asyncio.gather(*readers, return_exceptions=True)
    assert results[1:] == ["a"] * 9
    assert isinstance(results[0], asyncio.CancelledError)
    assert source.loads == 1


async def test_an_answer_overtaken_by_a_change_is_not_remembered() -> None:
    memory: ShortMemory[str, str] = ShortMemory(ttl_s=5, size=10)
    source = Source("before")
    source.open.clear()
    early = asyncio.create_task(memory.get("k", source.load))
    while not source.loads:
        await asyncio.sleep(0)
    source.value = "after"
    memory.forget("k")
    late = asyncio.create_task(memory.get("k", source.load))
    while source.loads < 2:
        await asyncio.sleep(0)
    source.open.set()
    assert await early == "before"  # it asked before the change
    assert await late == "after"
    assert memory.peek("k") == "after"


async def test_a_failed_load_reaches_every_reader_and_the_next_one_tries_again() -> None:
    memory: ShortMemory[str, str] = ShortMemory(ttl_s=5, size=10)

    async def fail(_key: str) -> str:
        await asyncio.sleep(0)
        raise OSError("down")

    results = await asyncio.gather(*(memory.get("k", fail) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [OSError] * 3
    assert await memory.get("k", Source("a").load) == "a"


async def test_a_failure_nobody_waits_for_makes_no_noise() -> None:
    memory: ShortMemory[str, str] = ShortMemory(ttl_s=5, size=10)

    async def fail(_key: str) -> str:
        await asyncio.sleep(0)
        raise OSError("down")

    reader = asyncio.create_task(memory.get("k", fail))
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_the_memory_is_bounded_and_the_oldest_leaves_first() -> None:
    memory: ShortMemory[str, str] = ShortMemory(ttl_s=5, size=3)
    for name in "abcd":
        await memory.get(name, Source(name).load)
    assert [memory.peek(name) for name in "abcd"] == [None, "b", "c", "d"]


async def test_what_is_concerned_is_forgotten_and_the_rest_stays() -> None:
    memory: ShortMemory[str, str] = ShortMemory(ttl_s=5, size=10)
    for name in "abc":
        await memory.get(name, Source(name).load)
    memory.forget_where(lambda value: value == "b")
    assert [memory.peek(name) for name in "abc"] == ["a", None, "c"]
