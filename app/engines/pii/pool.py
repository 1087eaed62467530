"""The Detector of the service: worker processes behind pipes, so that no scan ever holds up the event loop."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from app.core.engines import Detection, DetectionOptions
from app.core.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentsError,
    OverloadedError,
    UnscannableContentError,
)
from app.core.offload import off_loop
from app.engines.pii import frames
from app.engines.pii.forking import StartError, WorkerFactory
from app.engines.pii.labels import LABELS, label_of
from app.engines.pii.lanes import Lanes
from app.engines.pii.languages import warnings
from app.engines.pii.process import WorkerDiedError, WorkerProcess
from app.engines.pii.recall import Keys, Memory, Recall, Run, runs_of
from app.engines.pii.startup import Startup

ENGINE = "presidio+embedded"
CACHE_BYTES = 64 * 1024 * 1024

_log = logging.getLogger(__name__)
_FRAME = 32_768
"""Characters that one question holds, unless a single run is longer: so calls that share a worker take turns."""
_LARGE = 8_192
"""Characters from which on work is large, see `Lanes`."""
_INLINE = 4_096
"""Characters in which the server itself looks for names: about half a millisecond."""
_TURN_S = 0.0005
"""Time after which a longer search in the server lets others have a turn."""
_HASHED_AT_ONCE = 8
"""Digests are this many times faster than the work that `off_loop` was measured with."""
_CHARACTERS_PER_SECOND = 20_000
_LONGEST_PAUSE_S = 5.0
_ATTEMPTS = 2
_AT_ONCE_S = 0.05
_GRACE_S = 1.0
"""Time after the deadline at which a worker ends itself, should nobody have killed it."""

T = TypeVar("T")


class PoolDetector:
    """Scan texts in ``workers`` processes of their own, and what was seen before not at all.

    ``start`` returns at once; the first call starts what nobody started and waits until a worker is ready.
    A call that exceeds its deadline (``deadline_s`` and a second for each 20,000 characters) has its worker
    killed and fails; a worker that dies is replaced, and its question asked once more of another. Findings are
    remembered in at most ``cache_bytes``, see `recall`. Use as ``async with`` or call `start` and `close`.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        deadline_s: float = 20.0,
        cache_bytes: int = CACHE_BYTES,
        startup: Startup | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError("a pool needs at least one worker")
        self._size = workers
        self._deadline_s = deadline_s
        self._memory = Memory(cache_bytes)
        self._factory = WorkerFactory(startup or Startup())
        self._lanes = Lanes(workers)
        self._alive: set[WorkerProcess] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._deaths = 0
        self._closing = False
        self._started = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def ready(self) -> bool:
        """Say whether at least one worker can take a call now or after the one it has."""
        return any(worker.ready and worker.running for worker in self._alive)

    @property
    def pids(self) -> list[int]:
        """Return the process ids of the workers, for monitoring."""
        return sorted(worker.pid for worker in self._alive)

    @property
    def zygote(self) -> int | None:
        """Return the id of the process that workers are forked off, where there is one."""
        return self._factory.pid

    def counts(self) -> Mapping[str, int]:
        """Return what metrics show: what became of look-ups in the cache, its size, and deaths of workers."""
        cache = self._memory.cache
        return {
            "hits": cache.hits,
            "misses": cache.misses,
            "evictions": cache.evictions,
            "bytes": cache.size,
            "deaths": self._deaths,
        }

    def labels(self) -> frozenset[str]:
        """Return every label that a span can carry."""
        return LABELS

    def label_of(self, name: str) -> str | None:
        """Return the label that ``name`` stands for: itself, or Presidio's name of a type."""
        return label_of(name)

    async def start(self) -> None:
        """Start the workers in the background; does nothing where they run already."""
        if self._started:
            return
        self._started = True
        self._closing = False
        for _ in range(self._size):
            self._keep(self._supervise())

    async def reload(self, startup: Startup) -> None:
        """Go on with workers that are started anew, with other options; what was found before counts no more.

        Questions that are with a worker are asked once more of a new one.
        """
        before, self._factory = self._factory, WorkerFactory(startup)
        await before.close()
        await asyncio.gather(*(worker.kill() for worker in list(self._alive)))

    async def close(self) -> None:
        """Kill the workers and forget what they were doing."""
        self._closing = True
        self._started = False
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
                self._lanes.put(await self._lanes.take(large=False))
        except TimeoutError:
            raise OverloadedError("The detection workers did not start in time.", retry_after_s=1) from None

    async def detect(
        self,
        texts: Sequence[str],
        options: DetectionOptions,
        *,
        tenant: str = "",
        joined: Sequence[Sequence[int]] = (),
        deadline_s: float | None = None,
    ) -> Detection:
        """Return the findings in ``texts``, all of one context, or raise; never a text that was not scanned."""
        self._check(options)
        await self.start()
        until = self._until(sum(map(len, texts)), deadline_s)
        recall = await self._recall(texts, options, tenant, runs_of(len(texts), joined))
        await self._scan(recall, texts, options, until)
        await self._search(recall, texts, options, until)
        return Detection(recall.spans(), ENGINE, warnings(recall.evidence(), options.language))

    async def apply_operator(
        self, mode: str, items: Sequence[tuple[str, str]], key: bytes | None = None
    ) -> list[str]:
        """Return what Presidio's operator for ``mode`` makes of each ``(label, text)``; see `operators`."""
        if not items:
            return []
        await self.start()
        size = sum(len(text) for _, text in items)
        question = {"ask": "operate", "mode": mode, "items": [tuple(item) for item in items], "key": key}
        (answer,) = await self._ask_all([(size, question)], self._until(size))
        texts: list[str] = answer["texts"]
        return texts

    def _check(self, options: DetectionOptions) -> None:
        for argument, labels in (("entities", options.entities or ()), ("exclude", options.exclude)):
            unknown = sorted(set(labels) - LABELS)
            if unknown:
                raise InvalidArgumentsError(
                    f"Unknown labels in {argument}.",
                    details={"pointer": f"/{argument}", "unknown": unknown, "known": sorted(LABELS)},
                )

    def _until(self, characters: int, limit: float | None = None) -> float:
        """Return when a call over so many characters must have ended."""
        allowed = self._deadline_s + characters / _CHARACTERS_PER_SECOND if limit is None else limit
        return asyncio.get_running_loop().time() + allowed

    async def _recall(
        self, texts: Sequence[str], options: DetectionOptions, tenant: str, runs: Sequence[Run]
    ) -> Recall:
        """Return what is known of ``texts``; of what is nobody's nothing is remembered."""
        version = self._factory.startup.version
        keys = Keys(self._memory.key_for(tenant, frames.raw_options(options), version))
        keyed = await off_loop(sum(map(len, texts)) // _HASHED_AT_ONCE, keys.of_texts, texts, runs)
        cache = self._memory.cache if tenant and self._memory.cache.capacity else None
        return Recall(cache, tenant, texts, options, keys, runs, keyed)

    async def _scan(
        self, recall: Recall, texts: Sequence[str], options: DetectionOptions, until: float
    ) -> None:
        """Have workers scan what is not known."""
        version = self._factory.startup.version
        common = {"ask": "scan", "names": recall.names(), "options": frames.raw_options(options)}
        parts = list(_parts(recall.unseen(), texts))
        questions = [
            (
                sum(len(texts[place]) for run in runs for place in run),
                common | {"runs": [[texts[place] for place in run] for run in runs]},
            )
            for runs in parts
        ]
        for runs, answer in zip(parts, await self._ask_all(questions, until), strict=True):
            if answer["version"] != version:
                recall.forget()
            recall.learn(runs, answer)

    async def _search(
        self, recall: Recall, texts: Sequence[str], options: DetectionOptions, until: float
    ) -> None:
        """Carry the names found in one text to all of them."""
        clock = asyncio.get_running_loop().time
        names = recall.names()
        began = clock()
        for _step in recall.search(names):
            if clock() - began > _TURN_S:
                await asyncio.sleep(0)
                began = clock()
        if sum(len(texts[place]) for place in recall.stale) <= _INLINE:
            recall.carry(names)
            return
        common = {"ask": "carry", "names": names, "options": frames.raw_options(options)}
        parts = [[place for (place,) in part] for part in _parts([(one,) for one in recall.stale], texts)]
        questions = [
            (
                sum(len(texts[place]) for place in part),
                common
                | {"texts": [texts[place] for place in part], "spans": list(map(recall.own_spans, part))},
            )
            for part in parts
        ]
        for part, answer in zip(parts, await self._ask_all(questions, until), strict=True):
            recall.take_carried(part, names, answer["texts"])

    async def _ask_all(
        self, questions: Sequence[tuple[int, frames.Frame]], until: float
    ) -> list[frames.Frame]:
        """Return the answers to questions, each with its size in characters.

        A call has as many questions with workers as there are workers, so that calls take turns. A caller that gives up
        leaves the workers to finish what they have, which keeps their pipes in step.
        """
        answers: dict[int, frames.Frame] = {}
        left = list(enumerate(questions))[::-1]

        async def ask_on() -> None:
            while left:
                number, (size, question) = left.pop()
                answers[number] = await self._ask(question, size, until)

        asked = asyncio.gather(*(self._keep(ask_on()) for _ in range(min(self._size, len(left)))))
        # Nobody hears of what became of the questions of a caller that gave up.
        asked.add_done_callback(lambda all_: all_.cancelled() or all_.exception())
        try:
            await asyncio.shield(asked)
        finally:
            left.clear()
        return [answers[number] for number in range(len(questions))]

    async def _ask(self, question: frames.Frame, size: int, until: float) -> frames.Frame:
        clock = asyncio.get_running_loop().time
        deaths = 0
        for _try in range(self._size + _ATTEMPTS):
            if deaths == _ATTEMPTS:
                break
            worker = await self._acquire(size, until)
            asked = clock()
            try:
                async with asyncio.timeout_at(until):
                    answer = await worker.ask(question | {"within": max(0.0, until - asked) + _GRACE_S})
            except TimeoutError:
                await worker.kill()
                raise DeadlineExceededError("The scan for personal data did not end in time.") from None
            except WorkerDiedError:
                _log.warning("a detection worker died during a call", extra={"pid": worker.pid})
                # One that is gone at once had died before; the call is not to blame.
                deaths += clock() - asked > _AT_ONCE_S
                await worker.kill()
                continue
            except BaseException:
                await worker.kill()
                raise
            self._lanes.put(worker)
            return _checked(answer) | {"version": worker.version}
        raise OverloadedError(
            "The detection workers died during the scan; nothing was passed on.", retry_after_s=1
        )

    async def _acquire(self, size: int, until: float) -> WorkerProcess:
        try:
            async with asyncio.timeout_at(until):
                return await self._lanes.take(large=size > _LARGE)
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
                    self._lanes.put(worker)
                    await worker.ended()
                    self._deaths += 1
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


def _checked(answer: frames.Frame) -> frames.Frame:
    if "error" not in answer:
        return answer
    _log.error("a detection worker failed", extra={"error": answer["error"], "where": answer["where"]})
    if answer["error"] == "ScanTimeoutError":
        raise UnscannableContentError("The text defeats a detection pattern and was not scanned.")
    raise InternalError("Something went wrong while scanning for personal data.")


def _parts(runs: Sequence[Run], texts: Sequence[str]) -> Iterator[list[Run]]:
    """Yield the runs in lists of about `_FRAME` characters."""
    part: list[Run] = []
    size = 0
    for run in runs:
        length = sum(len(texts[place]) for place in run)
        if part and size + length > _FRAME:
            yield part
            part, size = [], 0
        part.append(run)
        size += length
    if part:
        yield part
