"""Fakes of the contracts that judge answers."""

import re
from collections.abc import Sequence

from app.core.contracts.engines import Claim, EngineReport, Grounding
from app.core.contracts.grounding import AnswerFinding, CheckOptions, LinkState, SourcePlace, Statements


class FakeGroundingJudge:
    """Scores a claim by the part of its words that its evidence lacks."""

    async def judge(self, claims: Sequence[Claim]) -> Grounding:
        return Grounding([self._one(claim) for claim in claims], EngineReport("fake", "1"))

    @staticmethod
    def _one(claim: Claim) -> float:
        words = re.findall(r"\w+", claim.text.lower())
        known = set(re.findall(r"\w+", " ".join(claim.evidence).lower()))
        return sum(word not in known for word in words) / len(words) if words else 0.0


class FakeAnswerChecker:
    """Knows links, by a pattern, and sentences, by their full stops."""

    async def statements(self, answers: Sequence[str]) -> Sequence[Statements]:
        return [self._one(answer) for answer in answers]

    @staticmethod
    def _one(answer: str) -> Statements:
        places = [found.span() for found in re.finditer(r"[A-Z][^.?!]+\.", answer)]
        return Statements(places, answer if places else None)

    def links(self, answer: str) -> Sequence[tuple[int, int]]:
        return [found.span() for found in re.finditer(r"https?://[\w./-]*\w", answer)]

    async def nearest(self, sentences: Sequence[str], sources: Sequence[str]) -> Sequence[SourcePlace | None]:
        return [SourcePlace(0, 0, len(sources[0])) if sources else None for _ in sentences]

    async def check(
        self, answers: Sequence[str], sources: Sequence[str], options: CheckOptions
    ) -> Sequence[Sequence[AnswerFinding]]:
        known = " ".join(sources)
        return [
            [
                AnswerFinding("url", start, end, "high", 0.9, "This address is not in the context.")
                for start, end in self.links(answer)
                if "urls" in options.checks and sources and answer[start:end] not in known
            ]
            for answer in answers
        ]


class FakeLinkProbe:
    """Says that nothing answers at the given addresses."""

    def __init__(self, *gone: str) -> None:
        self.gone = gone

    async def probe(self, urls: Sequence[str]) -> Sequence[LinkState]:
        return [LinkState(url, url not in self.gone) for url in urls]
