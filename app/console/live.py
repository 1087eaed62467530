"""Pages that follow what happens: one reader for all who watch the same thing, and bounds on how many watch."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from app.core.errors import OverloadedError, RateLimitedError, ServiceError

_RETRY_MS: Final = 5_000
_RETRY_AFTER_S: Final = 30.0
_LINE_END: Final = re.compile("\r\n|\r|\n")


class LiveReader(Protocol):
    """Reads what watchers of one topic follow."""

    async def mark(self) -> str:
        """Return what differs once there is something new; costs little."""

    async def content(self) -> str:
        """Return what watchers are sent: the same for all of them."""


@dataclass(frozen=True, slots=True)
class LiveLimits:
    """Bounds of the streams of a process, of a tenant and of a session in it, and how often is looked."""

    process: int = 200
    tenant: int = 50
    session: int = 4
    step_s: float = 5.0
    heartbeat_s: float = 10.0


@dataclass(frozen=True, slots=True)
class LiveWatch:
    """Who watches what, from which mark on.

    ``session`` names the session and is not its token. ``allowed`` says whether it still lives and may watch.
    ``reader`` makes the reader of the topic for its first watcher.
    """

    topic: str
    tenant: str
    session: str
    mark: str
    allowed: Callable[[], Awaitable[bool]]
    reader: Callable[[], LiveReader]


class LivePages:
    """Sends open pages what is new; ``close`` ends all streams, so that a stop waits for none.

    For each topic of a tenant one task reads, while somebody watches: its mark every ``step_s``, and the content when
    the mark has changed. All watchers are sent the same bytes.
    """

    def __init__(self, limits: LiveLimits | None = None) -> None:
        self.limits = limits or LiveLimits()
        self._topics: dict[tuple[str, str], _Topic] = {}
        self._open: Counter[tuple[str, ...]] = Counter()
        self._closing = False

    @property
    def watching(self) -> int:
        """Return how many streams are open."""
        return self._open[("process",)]

    def close(self) -> None:
        """End every stream, and let no other begin."""
        self._closing = True
        for topic in self._topics.values():
            topic.end()

    @contextmanager
    def seat(self, watch: LiveWatch) -> Iterator[AsyncIterator[bytes]]:
        """Return the events of a stream, while the block runs.

        Raises RateLimitedError where the session or its tenant watches too many pages, OverloadedError where this
        process has too many streams, or ends.
        """
        if self._closing:
            raise OverloadedError("This process is shutting down; another one answers.", retry_after_s=1.0)
        counted = (("session", watch.tenant, watch.session), ("tenant", watch.tenant), ("process",))
        self._check(counted)
        self._open.update(counted)
        name = (watch.tenant, watch.topic)
        topic = self._topics.get(name)
        if topic is None or topic.ended:
            topic = self._topics[name] = _Topic(watch.reader(), watch.mark, self.limits.step_s)
        topic.watchers += 1
        try:
            yield self._events(watch, topic)
        finally:
            self._open -= Counter(counted)
            topic.watchers -= 1
            if not topic.watchers:
                topic.end()
                if self._topics.get(name) is topic:
                    del self._topics[name]

    def _check(self, counted: tuple[tuple[str, ...], ...]) -> None:
        session, tenant, process = (self._open[name] for name in counted)
        if session >= self.limits.session:
            raise RateLimitedError(
                f"{session} pages of this session are live already: close one of them. This one shows how things "
                "stood when it was loaded.",
                retry_after_s=_RETRY_AFTER_S,
            )
        if tenant >= self.limits.tenant or process >= self.limits.process:
            raise OverloadedError(
                "Too many pages are live at once. This one shows how things stood when it was loaded.",
                retry_after_s=_RETRY_AFTER_S,
            )

    async def _events(self, watch: LiveWatch, topic: "_Topic") -> AsyncIterator[bytes]:
        """Yield events until the page's session ends, the topic does or the process: then the browser comes again."""
        yield b"retry: %d\n\n" % _RETRY_MS
        mark = watch.mark
        while not topic.ended:
            news = await topic.news(mark, self.limits.heartbeat_s)
            if topic.ended:
                return
            if not await watch.allowed():
                yield b"event: ended\ndata:\n\n"
                return
            if news is None:
                yield b":\n\n"  # shows proxies that the stream lives, and us that the browser does
            else:
                mark = news[0]
                yield _event(*news)


class _Topic:
    """What one reader reads for its watchers, from the mark of the first one's page on."""

    __slots__ = ("_changed", "_content", "_is_missed", "_mark", "_reader", "_task", "ended", "watchers")

    def __init__(self, reader: LiveReader, mark: str, step_s: float) -> None:
        self.watchers = 0
        self.ended = False
        self._reader, self._mark = reader, mark
        self._content: str | None = None
        self._is_missed = False
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._read(step_s))

    async def news(self, mark: str, patience_s: float) -> tuple[str, str] | None:
        """Return the newest mark and content once they differ from ``mark``; None if nothing comes in time."""
        if self._content is None or self._mark == mark:
            # A page may show what has gone by since, with nothing new for the others: it needs the content, too.
            self._is_missed |= self._mark != mark
            changed = self._changed
            try:
                async with asyncio.timeout(patience_s):
                    await changed.wait()
            except TimeoutError:
                return None
        return None if self._content is None or self._mark == mark else (self._mark, self._content)

    def end(self) -> None:
        """Stop reading, and let every watcher go."""
        self.ended = True
        self._task.cancel()
        self._changed.set()

    async def _read(self, step_s: float) -> None:
        try:
            while True:
                await asyncio.sleep(step_s)
                try:
                    mark = await self._reader.mark()
                    if mark == self._mark and not self._is_missed:
                        continue
                    self._content = await self._reader.content()
                    self._is_missed = False
                except ServiceError:
                    continue  # such as a database that is away: what was sent stays, and is looked at again
                self._mark = mark
                changed, self._changed = self._changed, asyncio.Event()
                changed.set()
        finally:
            self.ended = True
            self._changed.set()


def _event(mark: str, content: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(content))
    return f"id: {mark}\n{lines}\n".encode()
