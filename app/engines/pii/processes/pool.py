"""The service's Detector: worker processes behind pipes, so that no scan ever blocks the event loop."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from app.core.contracts.engines import Detection, DetectionOptions, Explanation
from app.core.errors import InvalidArgumentsError
from app.core.offload import off_loop
from app.engines.pii.names.languages import detected, warnings
from app.engines.pii.names.taggers import TaggerChoice, tagger_choice
from app.engines.pii.processes import frames
from app.engines.pii.processes.recall import Keys, Memory, Recall, Run, runs_of
from app.engines.pii.processes.startup import Matcher, Startup
from app.engines.pii.processes.workers import FRAME, WorkerPool
from app.engines.pii.recognizers.user import read_definitions

CACHE_BYTES = 64 * 1024 * 1024

_INLINE = 4_096
"""Characters in which the server looks for names itself; takes about half a millisecond."""
_TURN_S = 0.0005
"""Time after which a longer search in the server yields to other tasks."""
_HASHED_AT_ONCE = 8
"""Digests are this many times faster than the work that the threshold of `off_loop` is based on."""
_CHARACTERS_PER_SECOND = 20_000


class PoolDetector:
    """Scan texts in ``workers`` separate processes, except texts whose findings are cached.

    ``start`` returns at once; otherwise the first call starts the workers and waits until one is ready.
    If a call exceeds its deadline (``deadline_s`` and a second for each 20,000 characters), its worker is killed and
    the call fails. A call that meets the first start waits at most ``deadline_s`` for it, before its own time begins.
    A worker that dies is replaced, and its question is sent once more to another. The cache takes at
    most ``cache_bytes``, see `recall`. Use as ``async with`` or call `start` and `close`.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        deadline_s: float = 20.0,
        cache_bytes: int = CACHE_BYTES,
        matcher: Matcher = "auto",
        startup: Startup | None = None,
    ) -> None:
        startup = startup or Startup(matcher=matcher)
        self._deadline_s = deadline_s
        self._memory = Memory(cache_bytes)
        self._definitions = read_definitions(startup.recognizers)
        self._workers = WorkerPool(workers, startup)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def ready(self) -> bool:
        """Return whether at least one worker can take a call, now or after its current one."""
        return self._workers.ready

    @property
    def pids(self) -> list[int]:
        """Return the process ids of the workers, for monitoring."""
        return self._workers.pids

    @property
    def zygote(self) -> int | None:
        """Return the id of the process that workers are forked from, if there is one."""
        return self._workers.zygote

    def counts(self) -> Mapping[str, int]:
        """Return the counts for metrics: cache look-ups by outcome, the cache's size in bytes, deaths of workers."""
        cache = self._memory.cache
        return {
            "hits": cache.hits,
            "misses": cache.misses,
            "evictions": cache.evictions,
            "bytes": cache.size,
            "deaths": self._workers.deaths,
        }

    def labels(self) -> frozenset[str]:
        """Return every label that a span can carry."""
        return self._definitions.labels()

    def label_of(self, name: str) -> str | None:
        """Return the label for ``name``, which is a label or Presidio's name of a type."""
        return self._definitions.label_of(name)

    async def start(self) -> None:
        """Start the workers in the background; does nothing if they are already running."""
        await self._workers.start()

    async def reload(self, startup: Startup) -> None:
        """Replace all workers by new ones with other options; earlier findings are no longer valid."""
        self._definitions = read_definitions(startup.recognizers)
        await self._workers.reload(startup)

    async def close(self) -> None:
        """Kill the workers and drop their work."""
        await self._workers.close()

    async def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Return when a worker is ready; raise OverloadedError after ``timeout_s``."""
        await self._workers.wait_ready(timeout_s)

    async def detect(
        self,
        texts: Sequence[str],
        options: DetectionOptions,
        *,
        tenant: str = "",
        joined: Sequence[Sequence[int]] = (),
        deadline_s: float | None = None,
    ) -> Detection:
        """Return the findings in ``texts``, all of one context, or raise; never returns a text unscanned."""
        self._check(options)
        await self._begin()
        until = self._until(sum(map(len, texts)), deadline_s)
        plan = await _tagger_choice(options)
        options = plan.options
        recall = await self._recall(texts, options, tenant, runs_of(len(texts), joined))
        await self._scan(recall, texts, options, until)
        await self._search(recall, texts, options, until)
        all_warnings = [*plan.warnings, *warnings(recall.evidence(), options.language)]
        return Detection(recall.spans(), plan.engine, all_warnings)

    async def apply_operator(
        self, mode: str, items: Sequence[tuple[str, str]], key: bytes | None = None
    ) -> list[str]:
        """Return the replacement by Presidio's operator for ``mode`` of each ``(label, text)``; see `operators`."""
        if not items:
            return []
        await self._begin()
        size = sum(len(text) for _, text in items)
        question = {"ask": "operate", "mode": mode, "items": [tuple(item) for item in items], "key": key}
        (answer,) = await self._workers.ask_all([(size, question)], self._until(size))
        texts: list[str] = answer["texts"]
        return texts

    async def explain(
        self, texts: Sequence[str], options: DetectionOptions, *, tenant: str = ""
    ) -> list[Explanation]:
        """Return the findings in each of ``texts`` and every candidate; nothing is cached."""
        del tenant
        self._check(options)
        await self._begin()
        plan = await _tagger_choice(options)
        size = sum(map(len, texts))
        question = {"ask": "explain", "texts": list(texts), "options": frames.raw_options(plan.options)}
        (answer,) = await self._workers.ask_all([(size, question)], self._until(size))
        all_evidence = [raw["evidence"] for raw in answer["texts"]]
        all_warnings = [*plan.warnings, *warnings(all_evidence, options.language)]
        language = detected(all_evidence, options.language)
        return [
            Explanation(
                frames.spans_from(raw["spans"]),
                [frames.candidate_from(candidate) for candidate in raw["candidates"]],
                plan.engine,
                language,
                all_warnings,
            )
            for raw in answer["texts"]
        ]

    async def _begin(self) -> None:
        """Start the workers if need be; raise OverloadedError, which tells the caller to come back, while they load."""
        await self.start()
        if not self._workers.loaded:
            await self.wait_ready(self._deadline_s)

    def _check(self, options: DetectionOptions) -> None:
        for argument, labels in (("entities", options.entities or ()), ("exclude", options.exclude)):
            unknown = sorted(set(labels) - self.labels())
            if unknown:
                raise InvalidArgumentsError(
                    f"Unknown labels in {argument}.",
                    details={"pointer": f"/{argument}", "unknown": unknown, "known": sorted(self.labels())},
                )

    def _until(self, characters: int, limit: float | None = None) -> float:
        """Return the time of the event loop's clock by which a call over so many characters must end."""
        allowed = self._deadline_s + characters / _CHARACTERS_PER_SECOND if limit is None else limit
        return asyncio.get_running_loop().time() + allowed

    async def _recall(
        self, texts: Sequence[str], options: DetectionOptions, tenant: str, runs: Sequence[Run]
    ) -> Recall:
        """Return what the cache knows about ``texts``; texts without a tenant are not cached."""
        version = self._workers.version
        keys = Keys(self._memory.key_for(tenant, frames.raw_options(options), version))
        keyed = await off_loop(sum(map(len, texts)) // _HASHED_AT_ONCE, keys.of_texts, texts, runs)
        cache = self._memory.cache if tenant and self._memory.cache.capacity else None
        return Recall(cache, tenant, texts, options, keys, runs, keyed)

    async def _scan(
        self, recall: Recall, texts: Sequence[str], options: DetectionOptions, until: float
    ) -> None:
        """Let workers scan the texts that are not cached."""
        parts = list(_parts(recall.unseen(), texts))
        if not parts:
            return
        version = self._workers.version
        common = {"ask": "scan", "names": recall.names(), "options": frames.raw_options(options)}
        questions = [
            (
                sum(len(texts[place]) for run in runs for place in run),
                common | {"runs": [[texts[place] for place in run] for run in runs]},
            )
            for runs in parts
        ]
        for runs, answer in zip(parts, await self._workers.ask_all(questions, until), strict=True):
            if answer["version"] != version:
                recall.forget()
            recall.learn(runs, answer)

    async def _search(
        self, recall: Recall, texts: Sequence[str], options: DetectionOptions, until: float
    ) -> None:
        """Look for the names found in one text in all of them."""
        clock = asyncio.get_running_loop().time
        names = recall.names()
        began = clock()
        for _step in recall.search(names):
            if clock() - began > _TURN_S:
                await asyncio.sleep(0)
                began = clock()
        if sum(len(texts[place]) for place in recall.stale) <= _INLINE:
            if recall.stale:
                recall.carry(names)
            return
        common = {"ask": "carry", "names": names, "options": frames.raw_options(options)}
        parts = [[place for (place,) in part] for part in _parts([(place,) for place in recall.stale], texts)]
        questions = [
            (
                sum(len(texts[place]) for place in part),
                common
                | {"texts": [texts[place] for place in part], "spans": list(map(recall.own_spans, part))},
            )
            for part in parts
        ]
        for part, answer in zip(parts, await self._workers.ask_all(questions, until), strict=True):
            recall.take_carried(part, names, answer["texts"])


async def _tagger_choice(options: DetectionOptions) -> TaggerChoice:
    """Return the tagger for ``options``; verifying weights reads their files, so it runs in a thread."""
    return (
        tagger_choice(options) if options.names == "fast" else await asyncio.to_thread(tagger_choice, options)
    )


def _parts(runs: Sequence[Run], texts: Sequence[str]) -> Iterator[list[Run]]:
    """Yield the runs in lists of at most `FRAME` characters."""
    part: list[Run] = []
    size = 0
    for run in runs:
        length = sum(len(texts[place]) for place in run)
        if part and size + length > FRAME:
            yield part
            part, size = [], 0
        part.append(run)
        size += length
    if part:
        yield part
