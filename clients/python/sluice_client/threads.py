"""A bridge for the blocking client: an asynchronous generator, fed and read by blocking code."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

WAITING_PIECES = 256
T = TypeVar("T")
Stream = Callable[[AsyncIterable[T]], AsyncGenerator[T, None]]


@dataclass(frozen=True, slots=True)
class _End:
    """The last entry of a queue; ``fault`` is the error, if any."""

    fault: BaseException | None = None


def iterate(chunks: Iterable[T], stream: Stream[T]) -> Generator[T, None, None]:
    """Yield what ``stream`` makes of ``chunks``, with an event loop in a thread of its own.

    Leaving the loop early ends the stream at once; a ``chunks`` that blocks is left to end by itself.
    """
    bridge = _Bridge(chunks, stream)
    bridge.start()
    try:
        while True:
            piece = bridge.pieces.get()
            if isinstance(piece, _End):
                if piece.fault is not None:
                    raise piece.fault
                return
            yield piece
    finally:
        bridge.stop()


class _Bridge(Generic[T]):
    """One stream: a thread that runs the event loop and a thread that reads the source, both daemons."""

    def __init__(self, chunks: Iterable[T], stream: Stream[T]) -> None:
        self.pieces: queue.Queue[T | _End] = queue.Queue(WAITING_PIECES)
        self._chunks = chunks
        self._stream = stream
        self._room = threading.Semaphore(WAITING_PIECES)
        self._stopped = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._pump: asyncio.Task[None] | None = None

    def start(self) -> None:
        threading.Thread(target=self._run, name="sluice-stream", daemon=True).start()

    def stop(self) -> None:
        """End the stream from the reading thread; harmless when it has ended."""
        self._stopped.set()
        self._room.release()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._cancel)
        with contextlib.suppress(queue.Empty):
            while True:
                self.pieces.get_nowait()

    def _cancel(self) -> None:
        if self._pump is not None:
            self._pump.cancel()

    def _run(self) -> None:
        fault: BaseException | None = None
        try:
            self._pump = self._loop.create_task(self._forward())
            self._loop.run_until_complete(self._pump)
        except BaseException as error:  # noqa: BLE001 -- it is raised again in the reading thread
            fault = error
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()
        self._put(_End(fault))

    def _put(self, piece: T | _End) -> None:
        """Wait for space in the queue, unless the reader has left."""
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self.pieces.put(piece, timeout=0.5)
                return

    async def _forward(self) -> None:
        restored = self._stream(self._fed())
        try:
            async for piece in restored:
                await asyncio.to_thread(self._put, piece)
        finally:
            await restored.aclose()

    async def _fed(self) -> AsyncIterator[T]:
        """Yield the chunks; a daemon thread reads them, so that a blocked source cannot keep the program alive."""
        arrived: asyncio.Queue[T | _End] = asyncio.Queue()

        def hand_over(item: T | _End) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended before the source did
                self._loop.call_soon_threadsafe(arrived.put_nowait, item)

        def read() -> None:
            try:
                for chunk in self._chunks:
                    self._room.acquire()
                    if self._stopped.is_set():
                        return
                    hand_over(chunk)
            except BaseException as error:  # noqa: BLE001 -- it is raised again where the stream is read
                hand_over(_End(error))
            else:
                hand_over(_End())

        threading.Thread(target=read, name="sluice-source", daemon=True).start()
        while not isinstance(item := await arrived.get(), _End):
            self._room.release()
            yield item
        if item.fault is not None:
            raise item.fault
