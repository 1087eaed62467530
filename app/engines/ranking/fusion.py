"""Fuse the scores of words, n-grams and meaning into one for each tool, and calibrate it."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from app.engines.ranking.index import ToolEvidence
from app.engines.ranking.postings import Floats

WORDS: Final = 0.4
GRAMS: Final = 0.3
MEANING: Final = 1.0
STEPS: Final = 0.5
"""Weights of the parts, and of the best step beside the whole; chosen on one half of the open sets' queries."""

_LEAST_WORDS: Final = 0.2
_LEAST_GRAMS: Final = 0.15
_LEAST_MEANING: Final = 0.3
"""Each part gives the best tool for a request full marks, unless its score is below this, which is chance."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic curve from a fused score to the probability that the request needs such a tool."""

    bias: float
    fused: float
    grams: float
    meaning: float


HYBRID: Final = Calibration(bias=-9.64, fused=11.31, grams=0.64, meaning=0.97)
LEXICAL: Final = Calibration(bias=-6.02, fused=8.70, grams=0.44, meaning=0.0)
"""Fitted on the half of the queries that chooses: HYBRID by training/calibrate.py on lists of 5 to 1,000 tools, LEXICAL
in the same way on lists of up to 4,000, before that recipe had its present sizes."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Tools for one text: the ``fused`` score of each, and the best of each part, which shows if any fits."""

    fused: Floats
    grams: float
    meaning: float


def scored(evidence: ToolEvidence, meaning: Floats | None) -> Scored:
    """Fuse the parts, each scaled so that the best tool for this text scores 1."""
    possible = max(evidence.possible, 1e-6)
    total = WORDS * _stretched(evidence.words, _LEAST_WORDS * possible)
    total += GRAMS * _stretched(evidence.grams, _LEAST_GRAMS)
    weight = WORDS + GRAMS
    if meaning is not None:
        low = min(float(meaning.min()), 0.0)
        total += MEANING * _stretched(meaning - np.float32(low), _LEAST_MEANING - low)
        weight += MEANING
    return Scored(
        fused=(total / np.float32(weight)).astype(np.float32),
        grams=float(evidence.grams.max()),
        meaning=0.0 if meaning is None else float(meaning.max()),
    )


def merged(whole: Scored, parts: list[Scored]) -> Scored:
    """Return the scores for a request of several steps: a tool scores by the step that it fits best."""
    if not parts:
        return whole
    best = np.maximum.reduce([part.fused for part in parts])
    return Scored(
        fused=(1 - STEPS) * whole.fused + STEPS * best,
        grams=max(part.grams for part in parts),
        meaning=max(part.meaning for part in parts),
    )


def calibrated(scored: Scored, calibration: Calibration) -> Floats:
    """Return for each tool a score 0..1 in the order of ``fused``; equal scores mean the same for every request.

    The term added to the fused score is the same for all tools of a request, so the order stays.
    """
    best = calibration.grams * scored.grams + calibration.meaning * scored.meaning
    logits = calibration.bias + calibration.fused * scored.fused.astype(np.float64) + best
    return (1 / (1 + np.exp(-logits))).astype(np.float32)


def _stretched(part: Floats, least: float) -> Floats:
    return part / np.float32(max(float(part.max()), least, 1e-6))
