"""Live pages: one reader for all watchers, bounds with an answer, and an end for every stream."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager

import pytest

from app.console.live import LiveLimits, LivePages, LiveReader, LiveWatch
from app.core.errors import OverloadedError, RateLimitedError, StoreUnavailableError

QUICK = LiveLimits(process=6, tenant=4, session=2, step_s=0.001, heartbeat_s=0.005)


class Told:
    """A reader whose content the test sets, and which counts how often it is read."""

    def __init__(self) -> None:
        self.now, self.marks, self.contents = "0", 0, 0
        self.is_away = False

    async def mark(self) -> str:
        self.marks += 1
        if self.is_away:
            raise StoreUnavailableError("The database is away.")
        return self.now

    async def content(self) -> str:
        self.contents += 1
        return f"<p>{self.now}</p>\r\n<p>second\u2028line</p>"


async def always() -> bool:
    return True


def watch(
    told: Told,
    session: str = "s",
    tenant: str = "t",
    *,
    mark: str = "0",
    allowed: Callable[[], object] = always,
) -> LiveWatch:
    def reader() -> LiveReader:
        return told

    return LiveWatch("overview", tenant, session, mark, allowed, reader)  # type: ignore[arg-type]


@asynccontextmanager
async def opened(pages: LivePages, watched: LiveWatch) -> AsyncIterator[AsyncIterator[bytes]]:
    with pages.seat(watched) as events:
        try:
            assert await anext(events) == b"retry: 5000\n\n"
            yield events
        finally:
            await events.aclose()  # type: ignore[attr-defined]


async def news(events: AsyncIterator[bytes]) -> bytes | None:
    """Return the next event that is no heartbeat, None at the end."""
    async with asyncio.timeout(20):
        return await anext((event async for event in events if event != b":\n\n"), None)


async def test_all_watchers_get_what_one_reader_reads_once() -> None:
    pages, told = LivePages(QUICK), Told()
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(opened(pages, watch(told, f"s{number}"))) for number in range(4)
        ]
        told.now = "1"
        expected = b"id: 1\ndata: <p>1</p>\ndata: <p>second\xe2\x80\xa8line</p>\n\n"
        assert await asyncio.gather(*map(news, streams)) == [expected] * 4
        assert told.contents == 1
        assert pages.watching == 4
    assert pages.watching == 0
    read = told.marks
    await asyncio.sleep(0.02)
    assert told.marks == read, "somebody reads though nobody watches"


async def test_tenants_have_readers_of_their_own() -> None:
    pages, ours, theirs = LivePages(QUICK), Told(), Told()
    async with (
        opened(pages, watch(ours, tenant="a")) as first,
        opened(pages, watch(theirs, tenant="b")) as second,
    ):
        theirs.now = "7"
        assert (await news(second) or b"").startswith(b"id: 7\n")
        ours.now = "8"
        assert (await news(first) or b"").startswith(b"id: 8\n")


async def test_who_comes_later_gets_what_is_newer_than_its_page_and_no_more() -> None:
    pages, told = LivePages(QUICK), Told()
    async with opened(pages, watch(told)) as first:
        told.now = "1"
        assert await news(first)
        async with opened(pages, watch(told, mark="1")) as current:
            assert await anext(current) == b":\n\n"
        async with opened(pages, watch(told, mark="0")) as behind:
            assert (await anext(behind)).startswith(b"id: 1\n")
        assert told.contents == 1


async def test_a_page_of_what_has_gone_by_gets_what_holds_though_nothing_is_new_for_others() -> None:
    pages, told = LivePages(QUICK), Told()
    async with opened(pages, watch(told)) as current, opened(pages, watch(told, "b", mark="1")) as behind:
        assert (await news(behind) or b"").startswith(b"id: 0\n")
        assert [await anext(current), await anext(behind)] == [b":\n\n"] * 2
        told.now = "2"
        assert await news(current) == await news(behind)
    assert told.contents == 2


async def test_streams_are_bounded_for_sessions_tenants_and_the_process() -> None:
    pages, told = LivePages(QUICK), Told()
    with ExitStack() as stack:
        for session in ("a", "a", "b", "b"):
            stack.enter_context(pages.seat(watch(told, session)))
        with pytest.raises(RateLimitedError, match="2 pages of this session are live already"):
            stack.enter_context(pages.seat(watch(told, "a")))
        with pytest.raises(OverloadedError, match="Too many pages"):
            stack.enter_context(pages.seat(watch(told, "c")))
        stack.enter_context(pages.seat(watch(told, "a", "other")))
        stack.enter_context(pages.seat(watch(told, "b", "other")))
        with pytest.raises(OverloadedError):
            stack.enter_context(pages.seat(watch(told, "c", "third")))
        assert pages.watching == 6
    assert pages.watching == 0
    with pages.seat(watch(told, "a")):
        assert pages.watching == 1


@pytest.mark.parametrize("has_news", [False, True])
async def test_a_stream_ends_with_its_session_and_says_so(has_news: bool) -> None:
    pages, told, lives = LivePages(QUICK), Told(), True

    async def allowed() -> bool:
        return lives

    async with (
        opened(pages, watch(told, "a", allowed=allowed)) as ending,
        opened(pages, watch(told, "b")) as staying,
    ):
        assert await anext(ending) == b":\n\n"
        lives = False
        if has_news:
            told.now = "1"
        assert [await news(ending), await news(ending)] == [b"event: ended\ndata:\n\n", None]
        told.now = "2"
        assert await news(staying)


async def test_a_database_that_is_away_ends_no_stream() -> None:
    pages, told = LivePages(QUICK), Told()
    async with opened(pages, watch(told)) as events:
        told.is_away = True
        while told.marks < 3:
            assert await anext(events) == b":\n\n"
        told.now, told.is_away = "1", False
        assert (await news(events) or b"").startswith(b"id: 1\n")


async def test_a_stop_ends_every_stream_at_once_and_lets_none_begin() -> None:
    pages, told = LivePages(LiveLimits()), Told()
    async with opened(pages, watch(told, "a")) as first, opened(pages, watch(told, "b")) as second:
        waiting = [asyncio.ensure_future(news(events)) for events in (first, second)]
        await asyncio.sleep(0)
        pages.close()
        assert await asyncio.gather(*waiting) == [None, None]
        with pytest.raises(OverloadedError, match="shutting down"), pages.seat(watch(told, "c")):
            pass
