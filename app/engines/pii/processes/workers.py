"""The worker processes of a detector: kept alive and shared fairly; no answer is lost or given twice."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from app.core.errors import DeadlineExceededError, InternalError, OverloadedError, UnscannableContentError
from app.engines.pii.processes import frames
from app.engines.pii.processes.forking import StartError, WorkerFactory
from app.engines.pii.processes.lanes import Lanes, Weight
from app.engines.pii.processes.process import WorkerDiedError, WorkerProcess
from app.engines.pii.processes.startup import Startup

_log = logging.getLogger(__name__)
FRAME = 32_768
"""Characters of one question at most, unless a single run is longer, so that calls take turns on a worker."""
_SMALL = 8_192
_LONGEST_PAUSE_S = 5.0
_ATTEMPTS = 2
_AT_ONCE_S = 0.05
_GRACE_S = 1.0
"""Time after the deadline at which a worker ends itself if the pool has not killed it."""

Question = tuple[int, frames.Frame]
"""The size of a question in characters, and the question."""

T = TypeVar("T")


class WorkerPool:
    """Keep ``size`` workers; one that dies is replaced, and its question is sent once more to another."""

    def __init__(self, size: int, startup: Startup) -> None:
        if size < 1:
            raise ValueError("a pool needs at least one worker")
        self.deaths = 0
        self._size = size
        self._factory = WorkerFactory(startup)
        self._lanes = Lanes(size)
        self._alive: set[WorkerProcess] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing = False
        self._started = False
        self.loaded = False
        """Whether a worker was ready since the start: the first one loads for seconds, the others are forked."""

    @property
    def ready(self) -> bool:
        """Return whether at least one worker can take a call, now or after its current one."""
        return any(worker.ready and worker.running for worker in self._alive)

    @property
    def pids(self) -> list[int]:
        """Return the process ids of the workers, for monitoring."""
        return sorted(worker.pid for worker in self._alive)

    @property
    def version(self) -> bytes:
        """Return the `Startup.version` with which workers are started now."""
        return self._factory.startup.version

    @property
    def zygote(self) -> int | None:
        """Return the id of the process that workers are forked from, if there is one."""
        return self._factory.pid

    async def start(self) -> None:
        """Start the workers in the background; does nothing if they are already running."""
        if self._started:
            return
        self._started = True
        self._closing = False
        for _ in range(self._size):
            self._keep(self._supervise())

    async def reload(self, startup: Startup) -> None:
        """Replace all workers by new ones with other options; earlier findings are no longer valid.

        Questions that a worker is answering are sent once more to a new one.
        """
        before, self._factory = self._factory, WorkerFactory(startup)
        await before.close()
        await asyncio.gather(*(worker.kill() for worker in list(self._alive)))

    async def close(self) -> None:
        """Kill the workers and drop their work."""
        self._closing = True
        self._started = self.loaded = False
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(worker.kill() for worker in list(self._alive)))
        await self._factory.close()
        self._alive.clear()
        self._lanes = Lanes(self._size)

    async def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Return when a worker is ready; raise OverloadedError after ``timeout_s``."""
        try:
            async with asyncio.timeout(timeout_s):
                self._lanes.put(await self._lanes.take(Weight.SMALL))
        except TimeoutError:
            raise OverloadedError("The detection workers did not start in time.", retry_after_s=1) from None

    async def ask_all(
        self, questions: Sequence[tuple[int, frames.Frame]], until: float
    ) -> list[frames.Frame]:
        """Return the answers to questions, each of which comes with its size in characters.

        A call has at most as many open questions as there are workers, so that calls take turns. If the caller gives
        up, the workers finish their current questions, which keeps their pipes in step.
        """
        if len(questions) == 1:
            ((size, question),) = questions
            return [await asyncio.shield(_heard(self._keep(self._ask(question, size, until))))]
        answers: dict[int, frames.Frame] = {}
        remaining = list(enumerate(questions))[::-1]

        async def ask_in_turn() -> None:
            while remaining:
                number, (size, question) = remaining.pop()
                answers[number] = await self._ask(question, size, until)

        all_asked = asyncio.gather(
            *(self._keep(ask_in_turn()) for _ in range(min(self._size, len(remaining))))
        )
        try:
            await asyncio.shield(_heard(all_asked))
        finally:
            remaining.clear()
        return [answers[number] for number in range(len(questions))]

    async def _ask(self, question: frames.Frame, size: int, until: float) -> frames.Frame:
        clock = asyncio.get_running_loop().time
        deaths = 0
        for _try in range(self._size + _ATTEMPTS):
            if deaths == _ATTEMPTS:
                break
            worker = await self._acquire(size, until)
            began = clock()
            try:
                async with asyncio.timeout_at(until):
                    answer = await worker.ask(question | {"within": max(0.0, until - began) + _GRACE_S})
            except TimeoutError:
                await worker.kill()
                raise DeadlineExceededError("The scan for personal data did not end in time.") from None
            except WorkerDiedError:
                _log.warning("a detection worker died during a call", extra={"pid": worker.pid})
                # A worker that fails at once had died before, and all die with the zygote: the call is not the cause.
                deaths += clock() - began > _AT_ONCE_S and not worker.orphaned
                await worker.kill()
                continue
            except BaseException:
                await worker.kill()
                raise
            self._lanes.put(worker)
            return _checked(answer) | {"version": worker.version}
        raise OverloadedError(
            "The detection workers died during the scan; nothing was forwarded.", retry_after_s=1
        )

    async def _acquire(self, size: int, until: float) -> WorkerProcess:
        try:
            async with asyncio.timeout_at(until):
                return await self._lanes.take(_weight(size))
        except TimeoutError:
            raise DeadlineExceededError("No detection worker was free in time.") from None

    async def _supervise(self) -> None:
        """Keep one worker alive until the pool closes."""
        pause = 0.0
        while not self._closing:
            await asyncio.sleep(pause)
            factory = self._factory
            try:
                worker = await factory.worker()
            except StartError as error:
                pause = self._failed(pause, error.args[0])
                continue
            self._alive.add(worker)
            try:
                if not await worker.started():
                    pause = self._failed(pause, worker.failure)
                elif factory is self._factory:
                    pause = 0.0
                    self.loaded = True
                    self._lanes.put(worker)
                    await worker.ended()
                    self.deaths += 1
            finally:
                await worker.kill()
                self._alive.discard(worker)
                self._lanes.lost(worker)

    def _failed(self, pause: float, error: str | None) -> float:
        """Report that a worker did not start and return how long to wait before the next attempt."""
        _log.error("a detection worker did not start", extra={"error": error})
        return min(_LONGEST_PAUSE_S, pause * 2 + 0.25)

    def _keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _heard(work: asyncio.Future[T]) -> asyncio.Future[T]:
    """Return ``work``, whose exception is retrieved even if the caller gave up, so that nobody awaits it."""
    work.add_done_callback(lambda done: done.cancelled() or done.exception())
    return work


def _weight(size: int) -> Weight:
    return Weight.SMALL if size <= _SMALL else Weight.MEDIUM if size <= FRAME else Weight.LONG


def _checked(answer: frames.Frame) -> frames.Frame:
    if "error" not in answer:
        return answer
    error = f"{answer['error']} {answer['slow']}".rstrip()
    _log.error("a detection worker failed", extra={"error": error, "where": answer["where"]})
    if answer["error"] == frames.TOO_SLOW:
        raise UnscannableContentError(
            f"The text was not scanned: a pattern of the recognizer {answer['slow']} takes too long on it. If the "
            "recognizer is your own, make the repetitions in its patterns possessive, as in ++."
        )
    raise InternalError("Something went wrong while scanning for personal data.")
