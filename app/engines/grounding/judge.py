"""The embedded judge: logistic regression over the wording of a claim and of its evidence."""

import hashlib
import json
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from app.core.contracts.engines import Claim, EngineReport, Grounding
from app.core.offload import off_loop
from app.engines.grounding.evidence import Evidence
from app.engines.grounding.features import NAMES, features_of

NAME: Final = "embedded-grounding"
_WEIGHTS: Final = Path(__file__).with_name("weights") / "judge.json"
_VERSION_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Weights:
    """The result of training: the weight of each feature, none negative, and the bias."""

    weights: tuple[float, ...]
    bias: float
    version: str

    @classmethod
    def read(cls, path: Path) -> "Weights":
        """Read the file of ``training/train.py``; its features must be those of this code."""
        raw = path.read_bytes()
        document = json.loads(raw)
        if tuple(document["features"]) != NAMES:
            raise ValueError(
                "the weights were trained for other features than this code has: train them again"
            )
        if min(document["weights"]) < 0:
            raise ValueError("a weight is negative, so that support could raise a score: train them again")
        version = hashlib.sha256(raw).hexdigest()[:_VERSION_DIGITS]
        return cls(tuple(document["weights"]), document["bias"], version)

    def probability(self, features: Sequence[float]) -> float:
        """Return how likely a claim of these features is unsupported."""
        logit = self.bias + sum(weight * value for value, weight in zip(features, self.weights, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))


class LexicalJudge:
    """Judges by wording alone: reliable where answers restate their source or bring in what it lacks."""

    def __init__(self, weights: Path = _WEIGHTS) -> None:
        self._path = weights
        self._lock = threading.Lock()

    @cached_property
    def weights(self) -> Weights:
        """Return the weights, read on first use."""
        with self._lock:
            return Weights.read(self._path)

    async def judge(self, claims: Sequence[Claim]) -> Grounding:
        """Judge each of ``claims`` separately; evidence that several share is read once."""
        evidence = {claim.evidence for claim in claims}
        size = sum(len(claim.text) for claim in claims) + sum(
            len(text) for texts in evidence for text in texts
        )
        scores = await off_loop(4 * size, self._scores, claims)
        return Grounding(scores, EngineReport(NAME, self.weights.version))

    def _scores(self, claims: Sequence[Claim]) -> list[float]:
        read: dict[tuple[str, ...], Evidence] = {}
        scores = []
        for claim in claims:
            if claim.evidence not in read:
                read[claim.evidence] = Evidence(claim.evidence)
            scores.append(self.weights.probability(features_of(claim.text, read[claim.evidence])))
        return scores
