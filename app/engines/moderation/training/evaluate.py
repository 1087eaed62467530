"""Figures of a moderator: python -m app.engines.moderation.training.evaluate DATA_FOLDER."""

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.core.contracts.engines import Moderator
from app.core.contracts.moderation import POLICIES, THRESHOLDS
from app.engines.encoder import Encoder
from app.engines.moderation.embedded import EmbeddedModerator
from app.engines.moderation.training.examples import Pair, read_pairs

TOXIC = ("harassment", "hate", "sexual", "violence")
"""The policies that together say what the Wikipedia test calls toxic."""

Judge = Callable[[Sequence[str]], Awaitable[NDArray[np.float64]]]
"""Returns for each text one number: how bad."""


def judge_by(moderator: Moderator, policies: Sequence[str] = POLICIES) -> Judge:
    """Return a judge that takes the highest score over ``policies``."""

    async def judge(texts: Sequence[str]) -> NDArray[np.float64]:
        found = []
        for text in texts:  # one at a time, as requests come
            moderation = await moderator.moderate([text], policies)
            found.append(max(moderation.scores[0].values()))
        return np.array(found)

    return judge


def area_under_roc(labels: Sequence[bool], scores: NDArray[np.float64]) -> float:
    """Return how likely a bad text scores above a harmless one; ties count a half."""
    bad = np.array(labels)
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    positives, negatives = int(bad.sum()), int((~bad).sum())
    return float((ranks[bad].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def average_precision(labels: Sequence[bool], scores: NDArray[np.float64]) -> float:
    """Return the area under precision over recall, by steps; equal scores enter together."""
    order = np.argsort(-scores, kind="stable")
    bad = np.array(labels)[order]
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    hits = np.cumsum(bad)[last]
    return float(np.sum(np.diff(hits, prepend=0) * hits / (last + 1)) / bad.sum())


def read_wikipedia(folder: Path) -> tuple[list[str], list[bool]]:
    """Return the comments of the Wikipedia test and whether they are toxic."""
    rows = _rows(folder / "test_wikipedia.jsonl")
    return [str(row["comment"]) for row in rows], [str(row["toxic"]) == "True" for row in rows]


def read_ordinary(folder: Path) -> list[str]:
    """Return ordinary requests, none of which goes against a policy."""
    return [str(row["text"]) for row in _rows(folder / "test_ordinary_requests.jsonl")]


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def pair_figures(judge: Judge, pairs: Sequence[Pair], threshold: float) -> tuple[float, float, float]:
    """Return how often the unsafe text of a pair scores higher, and the flagged shares of safe and unsafe ones."""
    safe, unsafe = await judge([one.safe for one in pairs]), await judge([one.unsafe for one in pairs])
    return (
        float((unsafe > safe).mean()),
        float((safe >= threshold).mean()),
        float((unsafe >= threshold).mean()),
    )


async def figures(folder: Path, moderator: Moderator) -> Mapping[str, float]:
    """Return every figure by name; the test parts are never fitted on."""
    texts, toxic = read_wikipedia(folder)
    scores = await judge_by(moderator, TOXIC)(texts)
    ordinary = await judge_by(moderator)(read_ordinary(folder))
    held_out = [pair for pair in read_pairs() if pair.held_out]
    found = {
        "Wikipedia AUPRC": average_precision(toxic, scores),
        "Wikipedia AUROC": area_under_roc(toxic, scores),
    }
    for level, threshold in THRESHOLDS.items():
        found[f"Wikipedia recall, {level}"] = float((scores[np.array(toxic)] >= threshold).mean())
        found[f"Wikipedia false alarms, {level}"] = float((scores[~np.array(toxic)] >= threshold).mean())
        found[f"ordinary requests flagged, {level}"] = float((ordinary >= threshold).mean())
        ordered, safe, unsafe = await pair_figures(judge_by(moderator), held_out, threshold)
        found["held-out pairs in order"] = ordered
        found[f"held-out safe texts flagged, {level}"] = safe
        found[f"held-out unsafe texts flagged, {level}"] = unsafe
    return found


def main() -> None:
    """Print the figures, with the encoder and by words alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    folder = parser.parse_args().data
    for name, moderator in (
        ("with the encoder", EmbeddedModerator(Encoder())),
        ("by words alone", EmbeddedModerator()),
    ):
        print(name)
        for figure, value in asyncio.run(figures(folder, moderator)).items():
            print(f"  {figure}: {value:.4f}")


if __name__ == "__main__":
    main()
