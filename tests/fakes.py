"""One fake per contract of core.engines, small enough to be read."""

import math
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from app.core.content.context import Context
from app.core.content.handles import Handle, Original
from app.core.content.text_edits import PendingConceal
from app.core.contracts.engines import (
    Candidate,
    Detection,
    DetectionOptions,
    Embedder,
    Embeddings,
    EngineReport,
    Engines,
    Explanation,
    GroundingJudge,
    InjectionDetector,
    Moderator,
    Retriever,
    SecretScanner,
    Span,
    ToolCandidate,
    ToolRanker,
    ToolRanking,
)
from app.core.contracts.grounding import AnswerChecker, LinkProbe
from tests.fakes_grounding import FakeAnswerChecker, FakeGroundingJudge
from tests.fakes_injection import FakeInjectionDetector
from tests.fakes_moderation import FakeModerator, FakeTermMatcher
from tests.fakes_retrieval import FakeRetriever
from tests.fakes_secrets import FakeSecretScanner

NOON = datetime(2025, 10, 4, 15, 42, tzinfo=UTC)
"""The moment of the proposal's timestamp example."""


class FakeDetector:
    """Finds what its patterns say; the contract's options entities, exclude, allow and deny hold."""

    def __init__(self, patterns: Mapping[str, str] | None = None) -> None:
        self.patterns = patterns or {
            "EMAIL": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
            "PERSON": r"\b(?:John Doe|Jane Smith|Jos\u00e9)\b",
            "SSN": r"\b\d{3}-\d{2}-\d{4}\b",
            "CARD": r"\b\d{16}\b",
        }

    def labels(self) -> frozenset[str]:
        return frozenset(self.patterns) | {"CUSTOM", "ORGANIZATION"}

    def label_of(self, name: str) -> str | None:
        name = name.removesuffix("_ADDRESS")
        return name if name in self.labels() else None

    async def detect(
        self,
        texts: Sequence[str],
        options: DetectionOptions,
        *,
        tenant: str = "",
        joined: Sequence[Sequence[int]] = (),
    ) -> Detection:
        return Detection([self._one(text, options) for text in texts], "fake")

    async def explain(
        self, texts: Sequence[str], options: DetectionOptions, *, tenant: str = ""
    ) -> list[Explanation]:
        return [self._explained(text, options, tenant) for text in texts]

    def _explained(self, text: str, options: DetectionOptions, tenant: str) -> Explanation:
        spans = self._one(text, options)
        reason = f"score 1.00 is enough for {tenant}"
        won = [
            Candidate(span, span.label, "FakeRecognizer", "", 1.0, "", "text", won=True, reason=reason)
            for span in spans
        ]
        return Explanation(spans, won, "fake", "en")

    def _one(self, text: str, options: DetectionOptions) -> list[Span]:
        patterns = dict(self.patterns)
        if options.deny_list:
            patterns["CUSTOM"] = "|".join(map(re.escape, options.deny_list))
        spans: list[Span] = []
        for label, pattern in patterns.items():
            if label in options.exclude or (options.entities is not None and label not in options.entities):
                continue
            for found in re.finditer(pattern, text):
                free = all(found.end() <= span.start or span.end <= found.start() for span in spans)
                if free and found[0] not in options.allow_list and found[0]:
                    spans.append(Span(found.start(), found.end(), label, 1.0))
        return sorted(spans, key=lambda span: span.start)


class FakeMasker:
    """Masks with stars, hashes to a constant, removes."""

    async def apply_operator(
        self, mode: str, items: Sequence[tuple[str, str]], key: bytes | None = None
    ) -> list[str]:
        return [masked(mode, label, text) for label, text in items]


def masked(mode: str, label: str, text: str) -> str:
    """Return what FakeMasker makes of one text."""
    return {"mask": "*" * len(text), "hash": f"#{label}", "remove": ""}[mode]


class MemoryVault:
    """One scope in memory: equal originals of a label get equal handles."""

    def __init__(self) -> None:
        self.handles: dict[tuple[str, bytes], Handle] = {}
        self.originals: dict[Handle, Original] = {}

    def allocate(self, pending: PendingConceal) -> Handle:
        key = pending.label, pending.original.encode()
        if key not in self.handles:
            ordinal = 1 + sum(label == pending.label for label, _ in self.handles)
            self.handles[key] = Handle(pending.label, ordinal)
            self.originals[self.handles[key]] = pending.original
        return self.handles[key]

    def settle(self, context: Context) -> Context:
        handles: dict[PendingConceal, Handle | None] = {}
        for pending in context.conceals:
            known = pending.keep is not None and pending.keep in self.originals
            handles[pending] = None if known else self.allocate(pending)
        settled = context.resolved(handles, self.originals)
        return settled.masked({one: masked(one.mode, one.label, one.text) for one in settled.masks})


class FakeEmbedder:
    """Counts words in 64 buckets: texts that share words are alike."""

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings([self._one(text) for text in texts], EngineReport("fake", "1"))

    @staticmethod
    def _one(text: str) -> bytes:
        counts = [1e-3] + [0.0] * 63
        for word in re.findall(r"\w+", text.lower()):
            counts[zlib.crc32(word.encode()) % 64] += 1.0
        length = math.hypot(*counts)
        return struct.pack("<64f", *(count / length for count in counts))


class FakeToolRanker:
    """Scores a tool by the part of its name's words that the query has."""

    async def rank(self, queries: Sequence[str], tools: Sequence[ToolCandidate]) -> ToolRanking:
        scores = [[self._one(query.lower(), tool.name) for tool in tools] for query in queries]
        order = [sorted(range(len(tools)), key=row.__getitem__, reverse=True) for row in scores]
        return ToolRanking(scores, order, EngineReport("fake", "1"))

    @staticmethod
    def _one(query: str, name: str) -> float:
        words = re.findall(r"[a-z0-9]+", name.lower())
        return sum(word in query for word in words) / len(words) if words else 0.0


def engines(
    detector: FakeDetector | None = None,
    *,
    tools: ToolRanker | None = None,
    moderator: Moderator | None = None,
    embedder: Embedder | None = None,
    grounding: GroundingJudge | None = None,
    answers: AnswerChecker | None = None,
    links: LinkProbe | None = None,
    secrets: SecretScanner | None = None,
    injection: InjectionDetector | None = None,
    retriever: Retriever | None = None,
) -> Engines:
    """Return engines that need no model, no process and no clock."""
    return Engines(
        detector=detector or FakeDetector(),
        now=lambda: NOON,
        embedder=embedder or FakeEmbedder(),
        tools=tools or FakeToolRanker(),
        moderator=moderator or FakeModerator(),
        terms=FakeTermMatcher(),
        injection=injection or FakeInjectionDetector(),
        grounding=grounding or FakeGroundingJudge(),
        answers=answers or FakeAnswerChecker(),
        links=links,
        secrets=secrets or FakeSecretScanner(),
        retriever=retriever or FakeRetriever(),
    )
