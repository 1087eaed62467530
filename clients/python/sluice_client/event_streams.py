"""Restore the events of a model's stream: every text in a channel of its own, arguments of tools whole."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

Event = dict[str, Any]
"""One event of a provider, as JSON."""

TextStream = Callable[[AsyncIterable[str]], AsyncGenerator[str, None]]
"""Restores a text while it arrives."""

Whole = Callable[[str, str], Awaitable[str]]
"""Restores the arguments of a tool, a JSON text: (name of the tool, arguments) to arguments."""

WAITING_EVENTS = 256


@dataclass(frozen=True, slots=True)
class Feed:
    """A piece of text of a channel; ``event`` forms an event of a restored piece."""

    channel: Hashable
    text: str
    event: Callable[[str], Event]


@dataclass(frozen=True, slots=True)
class Collect:
    """A piece of a tool's arguments, which are restored whole when their channel is closed."""

    channel: Hashable
    tool: str
    text: str
    event: Callable[[str], Event]


@dataclass(frozen=True, slots=True)
class Close:
    """The channel is complete: what was held back comes before the next event."""

    channel: Hashable


@dataclass(frozen=True, slots=True)
class Pass:
    """An event to pass on; it is formed when everything before it has been restored, and None passes nothing."""

    event: Callable[[], Event | None]


Step = Feed | Collect | Close | Pass


class EventShapes(Protocol):
    """One family of events: what of an event is text of which channel."""

    restored: dict[str, str]
    """Texts of closed channels as they came, and as they were restored: for events that repeat them."""

    def steps(self, event: Event) -> list[Step]:
        """Return what is to be done for ``event``, in order."""


@dataclass(frozen=True, slots=True)
class _End:
    fault: BaseException | None = None


async def restored_events(
    events: AsyncIterable[Event], shapes: EventShapes, stream: TextStream, whole: Whole
) -> AsyncGenerator[Event, None]:
    """Yield ``events`` with their texts restored; leaving early ends the source and all channels."""
    restoration = _Restoration(shapes, stream, whole)
    driver = asyncio.create_task(restoration.drive(events))
    try:
        while not isinstance(item := await restoration.out.get(), _End):
            yield item
        if item.fault is not None:
            raise item.fault
    finally:
        driver.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await driver


class _Restoration:
    def __init__(self, shapes: EventShapes, stream: TextStream, whole: Whole) -> None:
        self.out: asyncio.Queue[Event | _End] = asyncio.Queue(WAITING_EVENTS)
        self._shapes = shapes
        self._stream = stream
        self._whole = whole
        self._open: dict[Hashable, _Channel | _Arguments] = {}

    async def drive(self, events: AsyncIterable[Event]) -> None:
        """Read the source to its end; what fails, a channel too, ends the answer."""
        end = _End()
        try:
            async with asyncio.TaskGroup() as group:
                async for event in events:
                    for step in self._shapes.steps(event):
                        await self._do(step, group)
                for channel in list(self._open):
                    await self._close(channel)
        except ExceptionGroup as faults:
            end = _End(faults.exceptions[0])
        except Exception as fault:  # noqa: BLE001 -- it is raised again where the events are read
            end = _End(fault)
        finally:
            await _aclose(events)
        await self.out.put(end)

    async def _do(self, step: Step, group: asyncio.TaskGroup) -> None:
        if isinstance(step, Pass):
            event = step.event()
            if event is not None:
                await self.out.put(event)
        elif isinstance(step, Close):
            await self._close(step.channel)
        elif isinstance(step, Feed):
            channel = self._open.get(step.channel)
            if not isinstance(channel, _Channel):
                channel = self._open[step.channel] = _Channel(self.out)
                channel.start(self._stream, group)
            await channel.feed(step)
        else:
            collected = self._open.setdefault(step.channel, _Arguments(step))
            if isinstance(collected, _Arguments):
                collected.add(step)

    async def _close(self, key: Hashable) -> None:
        channel = self._open.pop(key, None)
        if isinstance(channel, _Channel):
            text, restored = await channel.close()
            self._remember(text, restored)
        elif channel is not None:
            text = channel.text()
            restored = await self._whole(channel.step.tool, text) if text else text
            self._remember(text, restored)
            if restored:
                await self.out.put(channel.step.event(restored))

    def _remember(self, text: str, restored: str) -> None:
        if restored != text:
            self._shapes.restored[text] = restored


class _Arguments:
    def __init__(self, step: Collect) -> None:
        self.step = step
        self._pieces: list[str] = []

    def add(self, step: Collect) -> None:
        self.step = step
        self._pieces.append(step.text)

    def text(self) -> str:
        return "".join(self._pieces)


class _Channel:
    """One text: pieces go to the service as they come, restored ones become events."""

    def __init__(self, out: "asyncio.Queue[Event | _End]") -> None:
        self._out = out
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue(WAITING_EVENTS)
        self._event: Callable[[str], Event] | None = None
        self._text: list[str] = []
        self._restored: list[str] = []
        self._task: asyncio.Task[None] | None = None

    def start(self, stream: TextStream, group: asyncio.TaskGroup) -> None:
        self._task = group.create_task(self._pump(stream))

    async def feed(self, step: Feed) -> None:
        self._event = step.event
        self._text.append(step.text)
        await self._pieces.put(step.text)

    async def close(self) -> tuple[str, str]:
        """Wait until everything is restored; return the text as it came, and restored."""
        await self._pieces.put(None)
        if self._task is not None:
            await self._task
        return "".join(self._text), "".join(self._restored)

    async def _pump(self, stream: TextStream) -> None:
        restored = stream(self._fed())
        try:
            async for piece in restored:
                self._restored.append(piece)
                if piece and self._event is not None:
                    await self._out.put(self._event(piece))
        finally:
            await restored.aclose()

    async def _fed(self) -> AsyncIterator[str]:
        while (piece := await self._pieces.get()) is not None:
            yield piece


async def _aclose(events: AsyncIterable[Event]) -> None:
    close = getattr(events, "aclose", None)
    if close is not None:
        with contextlib.suppress(Exception):
            await close()
