"""How well content moderation tells harm from ordinary text, on open sets where given; and how fast."""

import asyncio
import importlib.util
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.core.contracts.engines import Moderator
from app.core.contracts.moderation import POLICIES, THRESHOLDS
from app.engines.encoder import Encoder
from app.engines.moderation.embedded import EmbeddedModerator
from app.engines.moderation.training.evaluate import (
    TOXIC,
    Judge,
    area_under_roc,
    average_precision,
    judge_by,
    pair_figures,
    read_ordinary,
    read_wikipedia,
)
from app.engines.moderation.training.examples import read_pairs
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import SMOKE, Sizes
from tests.benchmarks.speed.texts import mail

FOLDER = "SLUICE_TEST_MODERATION_DATA"
SIZE = 4096
USUAL = 0.5


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the tables of speed and of contrast pairs, and those on open sets where there are some."""
    small = sizes is SMOKE
    yield asyncio.run(_speed(20 if small else 400))
    yield asyncio.run(_pairs(12 if small else None))
    given = os.environ.get(FOLDER)
    if given:
        yield asyncio.run(_open_sets(Path(given), 20 if small else None))


async def _speed(rounds: int) -> str:
    rows = []
    for name, moderator in _ours().items():
        await moderator.moderate(["warm"], POLICIES)
        times = []
        for seed in range(rounds):
            text = mail(SIZE, seed)
            begin = time.perf_counter()
            await moderator.moderate([text], POLICIES)
            times.append((time.perf_counter() - begin) * 1e3)
        rows.append((name, percentile(times, 0.5), percentile(times, 0.95)))
    note = f"{rounds} mails of 4 KB, each seen for the first time, one after the other, engine warm."
    return table("Moderation of 4 KB, in milliseconds", ("engine", "p50", "p95"), rows, note)


async def _pairs(limit: int | None) -> str:
    pairs = [pair for pair in read_pairs() if pair.held_out][:limit]
    rows = []
    for name, judge, thresholds in _judges(POLICIES):
        rows += [
            (name, level, *await pair_figures(judge, pairs, threshold))
            for level, threshold in thresholds.items()
        ]
    return table(
        "Moderation: held-out pairs of a harmless and a harmful text that share words",
        ("engine", "level", "harmful one scores higher", "harmless flagged", "harmful flagged"),
        rows,
        f"{len(pairs)} pairs of our own, never trained on. Ties are no success.",
    )


async def _open_sets(folder: Path, limit: int | None) -> str:
    comments, toxic = read_wikipedia(folder)
    ordinary = read_ordinary(folder)[:limit]
    comments, toxic = comments[-limit:] if limit else comments, toxic[-limit:] if limit else toxic
    rows = []
    for (name, judge, thresholds), (_, everything, _) in zip(_judges(TOXIC), _judges(POLICIES), strict=True):
        scores, requests = await judge(comments), await everything(ordinary)
        figures = average_precision(toxic, scores), area_under_roc(toxic, scores)
        for level, threshold in thresholds.items():
            found = float((scores[np.array(toxic)] >= threshold).mean())
            rows.append((name, level, *figures, found, float((requests >= threshold).mean())))
    return table(
        "Moderation on open sets: comments of Wikipedia (toxic or not) and ordinary requests to tools",
        ("engine", "level", "AUPRC", "AUROC", "toxic flagged", "ordinary requests flagged"),
        rows,
        "Test parts, never trained on by us. alt-profanity-check was trained on comments of the same Wikipedia set, "
        "perhaps on these.",
    )


def _ours() -> dict[str, Moderator]:
    return {
        "ours, with the encoder": EmbeddedModerator(Encoder()),
        "ours, by words alone": EmbeddedModerator(),
    }


def _judges(policies: Sequence[str]) -> Iterator[tuple[str, Judge, dict[str, float]]]:
    for name, moderator in _ours().items():
        yield name, judge_by(moderator, policies), dict(THRESHOLDS)
    for name, judge in rivals():
        yield name, judge, {"-": USUAL}


def rivals() -> Iterator[tuple[str, Judge]]:
    """Yield the name and the judge of each rival that is installed."""
    if importlib.util.find_spec("better_profanity"):
        yield "better-profanity", _better_profanity
    if importlib.util.find_spec("profanity_check"):
        yield "alt-profanity-check", _profanity_check


async def _better_profanity(texts: Sequence[str]) -> NDArray[np.float64]:
    from better_profanity import profanity

    return np.array([float(profanity.contains_profanity(text)) for text in texts])


async def _profanity_check(texts: Sequence[str]) -> NDArray[np.float64]:
    from profanity_check import predict_prob

    return np.asarray(predict_prob(list(texts)), dtype=np.float64)
