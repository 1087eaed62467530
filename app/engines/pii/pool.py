"""The Detector of the service: worker processes behind pipes, so that no scan ever holds up the event loop."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from app.core.engines import Detection, DetectionOptions, Span
from app.core.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentsError,
    OverloadedError,
    UnscannableContentError,
)
from app.engines.pii import frames
from app.engines.pii.labels import LABELS, label_of
from app.engines.pii.process import WorkerDiedError, WorkerProcess

ENGINE = "presidio+embedded"

_log = logging.getLogger(__name__)
_SPREAD_FROM = 32_768
_CHARACTERS_PER_SECOND = 20_000
_LONGEST_PAUSE_S = 5.0
_ATTEMPTS = 2
_AT_ONCE_S = 0.05

T = TypeVar("T")


class PoolDetector:
    """Scan texts in ``workers`` processes of their own.

    ``start`` returns at once; the first call starts what nobody started and waits until a worker is ready.
    A call that exceeds its deadline (``deadline_s`` and a second for each 20,000 characters) has its worker
    killed and fails; a worker that dies is replaced, and its call tried once more on another. Use as
    ``async with`` or call `start` and `close`.
    """

    def __init__(self, workers: int = 1, *, deadline_s: float = 20.0) -> None:
        if workers < 1:
            raise ValueError("a pool needs at least one worker")
        self._size = workers
        self._deadline_s = deadline_s
        self._idle: asyncio.Queue[WorkerProcess] = asyncio.Queue()
        self._alive: set[WorkerProcess] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
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

    async def close(self) -> None:
        """Kill the workers and forget what they were doing."""
        self._closing = True
        self._started = False
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(worker.kill() for worker in list(self._alive)))
        self._alive.clear()
        self._idle = asyncio.Queue()

    async def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Return when a worker is ready; raise OverloadedError after ``timeout_s``."""
        try:
            async with asyncio.timeout(timeout_s):
                self._idle.put_nowait(await self._idle.get())
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
        del tenant, joined
        self._check(options)
        await self.start()
        if not any(texts):
            return Detection([[] for _ in texts], ENGINE)
        limit = deadline_s if deadline_s is not None else self._limit(sum(map(len, texts)))
        until = asyncio.get_running_loop().time() + limit
        raw = frames.raw_options(options)
        groups = self._groups(texts)
        scans = [
            {"ask": "scan", "texts": [texts[i] for i in group], "options": raw, "alone": len(groups) == 1}
            for group in groups
        ]
        answers = await self._ask_all(scans, until)
        names = sorted({name for answer in answers for name in answer["names"]})
        if len(groups) > 1 and names:
            found = [answer["spans"] for answer in answers]
            carries = [
                {"ask": "carry", "texts": scan["texts"], "spans": spans, "names": names, "options": raw}
                for scan, spans in zip(scans, found, strict=True)
            ]
            carried = await self._ask_all(carries, until)
            answers = [{**first, **second} for first, second in zip(answers, carried, strict=True)]
        spans: list[list[Span]] = [[] for _ in texts]
        for group, answer in zip(groups, answers, strict=True):
            for place, found_here in zip(group, frames.given_spans(answer["spans"]), strict=True):
                spans[place] = found_here
        return Detection(
            spans, ENGINE, list(dict.fromkeys(w for answer in answers for w in answer["warnings"]))
        )

    async def apply_operator(
        self, mode: str, items: Sequence[tuple[str, str]], key: bytes | None = None
    ) -> list[str]:
        """Return what Presidio's operator for ``mode`` makes of each ``(label, text)``; see `operators`."""
        if not items:
            return []
        await self.start()
        limit = self._limit(sum(len(text) for _, text in items))
        until = asyncio.get_running_loop().time() + limit
        question = {"ask": "operate", "mode": mode, "items": [tuple(item) for item in items], "key": key}
        (answer,) = await self._ask_all([question], until)
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

    def _limit(self, characters: int) -> float:
        return self._deadline_s + characters / _CHARACTERS_PER_SECOND

    def _groups(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the indices of ``texts`` in as many groups as there are workers, about equal in size."""
        total = sum(map(len, texts))
        count = min(self._size, len(texts), max(1, total // _SPREAD_FROM + 1))
        groups: list[list[int]] = [[] for _ in range(count)]
        load = [0] * count
        for place in sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i)):
            least = load.index(min(load))
            groups[least].append(place)
            load[least] += len(texts[place]) + 1
        return [sorted(group) for group in groups if group]

    async def _ask_all(self, questions: Sequence[frames.Frame], until: float) -> list[frames.Frame]:
        """Return the answers; a caller that gives up leaves the workers to finish, which keeps their pipes in step."""
        tasks = [self._keep(self._ask(question, until)) for question in questions]
        return list(await asyncio.shield(asyncio.gather(*tasks)))

    async def _ask(self, question: frames.Frame, until: float) -> frames.Frame:
        loop = asyncio.get_running_loop()
        deaths = 0
        for _try in range(self._size + _ATTEMPTS):
            if deaths == _ATTEMPTS:
                break
            worker = await self._acquire(until)
            asked = loop.time()
            try:
                async with asyncio.timeout_at(until):
                    answer = await worker.ask(question)
            except TimeoutError:
                await worker.kill()
                raise DeadlineExceededError("The scan for personal data did not end in time.") from None
            except WorkerDiedError:
                _log.warning("a detection worker died during a call", extra={"pid": worker.pid})
                # One that is gone at once had died before; the call is not to blame.
                deaths += loop.time() - asked > _AT_ONCE_S
                await worker.kill()
                continue
            except BaseException:
                await worker.kill()
                raise
            self._idle.put_nowait(worker)
            return self._checked(answer)
        raise OverloadedError(
            "The detection workers died during the scan; nothing was passed on.", retry_after_s=1
        )

    @staticmethod
    def _checked(answer: frames.Frame) -> frames.Frame:
        if "error" not in answer:
            return answer
        _log.error("a detection worker failed", extra={"error": answer["error"], "where": answer["where"]})
        if answer["error"] == "ScanTimeoutError":
            raise UnscannableContentError("The text defeats a detection pattern and was not scanned.")
        raise InternalError("Something went wrong while scanning for personal data.")

    async def _acquire(self, until: float) -> WorkerProcess:
        try:
            async with asyncio.timeout_at(until):
                while True:
                    worker = await self._idle.get()
                    if worker.running:
                        return worker
        except TimeoutError:
            raise DeadlineExceededError("No detection worker was free in time.") from None

    async def _supervise(self) -> None:
        """Keep one worker alive until the pool closes."""
        pause = 0.0
        while not self._closing:
            await asyncio.sleep(pause)
            worker = await WorkerProcess.spawn()
            self._alive.add(worker)
            try:
                if await worker.started():
                    pause = 0.0
                    self._idle.put_nowait(worker)
                else:
                    pause = min(_LONGEST_PAUSE_S, pause * 2 + 0.25)
                    _log.error("a detection worker did not start", extra={"error": worker.failure})
                await worker.ended()
            finally:
                await worker.kill()
                self._alive.discard(worker)

    def _keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
