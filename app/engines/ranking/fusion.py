"""One score for each tool of what words, names, n-grams and meaning say."""

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

import numpy as np

from app.engines.ranking.index import Evidence
from app.engines.ranking.postings import Floats


@lru_cache(maxsize=1)
def weights() -> Mapping[str, Mapping[str, float]]:
    """Return how much each part counts, with the encoder (``hybrid``) and without (``lexical``)."""
    text = files("app.engines.ranking").joinpath("weights/fusion.json").read_text("utf-8")
    found: Mapping[str, Mapping[str, float]] = json.loads(text)
    return found


def fused(evidence: Evidence, meaning: Floats | None) -> Floats:
    """Return the score of each tool for one query, higher for better."""
    parts = {"words": evidence.words, "name": evidence.name, "grams": evidence.grams}
    if meaning is not None:
        parts["meaning"] = meaning
    chosen = weights()["lexical" if meaning is None else "hybrid"]
    total = sum(chosen[name] for name in parts)
    result = np.zeros_like(evidence.words)
    for name, part in parts.items():
        result += spread(part) * (chosen[name] / total)
    return result


def spread(part: Floats) -> Floats:
    """Return ``part`` stretched over 0..1, all zero where it tells nothing apart."""
    low, high = float(part.min()), float(part.max())
    return np.zeros_like(part) if high <= low else (part - low) / (high - low)
