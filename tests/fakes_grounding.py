"""Fakes of the contracts that judge answers."""

import re
from collections.abc import Sequence

from app.core.engines import Claim, EngineReport, Grounding


class FakeGroundingJudge:
    """Scores a claim by the part of its words that its evidence lacks."""

    async def judge(self, claims: Sequence[Claim]) -> Grounding:
        return Grounding([self._one(claim) for claim in claims], EngineReport("fake", "1"))

    @staticmethod
    def _one(claim: Claim) -> float:
        words = re.findall(r"\w+", claim.text.lower())
        known = set(re.findall(r"\w+", " ".join(claim.evidence).lower()))
        return sum(word not in known for word in words) / len(words) if words else 0.0
