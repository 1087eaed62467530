"""Fit the curves that turn fused scores into likelihoods: ``python -m app.engines.ranking.training.calibrate FOLDER``.

Lists of 5 to 1,000 tools are drawn, a third of them of names alone and a third without the tool that is needed, and
a logistic curve is fitted to the best 30 tools of each. The same folder gives the same numbers.
"""

import argparse
import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.core.contracts.engines import Embedder, ToolCandidate
from app.engines.encoder import Encoder
from app.engines.ranking.fusion import Calibration, Scored, merged, scored
from app.engines.ranking.index import Query, ToolFeatures, ToolIndex
from app.engines.ranking.memory import embedded_text
from app.engines.ranking.steps import steps
from app.engines.ranking.training.sets import SEED, Asked, ToolSet, tool_sets

_SIZES: Final = (5, 8, 15, 30, 100, 1_000)
_PER_SET: Final = 500
_BEST: Final = 30
_THIRD: Final = 1 / 3
_ROUNDS: Final = 60
_RIDGE: Final = 1e-5

Rows = list[tuple[list[float], float, float]]
"""Features of one tool, whether it is needed, and its weight."""


async def rows_of(sets: Sequence[ToolSet], embedder: Embedder | None, per_set: int = _PER_SET) -> Rows:
    """Draw lists of tools and return what the curve is fitted to."""
    chance = random.Random(SEED)
    rows: Rows = []
    for one in sets:
        for asked in chance.sample(one.choosing, min(per_set, len(one.choosing))):
            size, bare, absent = chance.choice(_SIZES), chance.random() < _THIRD, chance.random() < _THIRD
            drawn = chance.sample(range(len(one.tools)), min(size, len(one.tools)))
            places = [place for place in drawn if place not in asked.gold]
            places += [] if absent else sorted(asked.gold)
            tools = [one.tools[place] for place in places]
            tools = [ToolCandidate(tool.name) for tool in tools] if bare else tools
            found = await _scored(asked, tools, embedder)
            best = np.argsort(-found.fused)[:_BEST]
            for place in best:
                needed = float(places[place] in asked.gold)
                features = [1.0, float(found.fused[place]), found.grams, found.meaning]
                rows.append((features, needed, 1 / len(best)))
    return rows


async def _scored(asked: Asked, tools: Sequence[ToolCandidate], embedder: Embedder | None) -> Scored:
    index = ToolIndex.build(ToolFeatures.of(tools))
    texts = [asked.text, *steps(asked.text)]
    likeness: NDArray[np.float32] | None = None
    if embedder is not None:
        of_tools, of_texts = [
            np.frombuffer(b"".join((await embedder.embed(some)).vectors), dtype="<f4").reshape(len(some), -1)
            for some in ([embedded_text(tool) for tool in tools], texts)
        ]
        likeness = of_tools @ of_texts.T
    each = [
        scored(index.evidence(Query.of(text)), None if likeness is None else likeness[:, column])
        for column, text in enumerate(texts)
    ]
    return merged(each[0], each[1:])


def fitted(rows: Rows) -> Calibration:
    """Fit a logistic curve by Newton's method; factors below zero would turn the order and are taken out."""
    features = np.array([row[0] for row in rows])
    needed = np.array([row[1] for row in rows])
    share = np.array([row[2] for row in rows])
    share /= share.sum()
    factors = np.zeros(features.shape[1])
    free = [column for column in range(len(factors)) if np.ptp(features[:, column]) > 0 or column == 0]
    while True:
        factors[:] = 0
        factors[free] = _newton(features[:, free], needed, share)
        below = [column for column in free if column > 1 and factors[column] < 0]
        if not below:
            bias, fused, grams, meaning = (round(float(factor), 2) for factor in factors)
            return Calibration(bias, fused, grams, meaning)
        free.remove(below[0])


def _newton(
    features: NDArray[np.float64], needed: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    factors = np.zeros(features.shape[1])
    for _ in range(_ROUNDS):
        likely = 1 / (1 + np.exp(-np.clip(features @ factors, -30, 30)))
        slope = features.T @ (share * (likely - needed)) + _RIDGE * factors
        curve = (features * (share * likely * (1 - likely))[:, None]).T @ features
        factors = factors - np.linalg.solve(curve + _RIDGE * np.eye(len(factors)), slope)
    return factors


def main() -> None:
    """Print the constants of ``app.engines.ranking.fusion``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    sets = list(tool_sets(parser.parse_args().folder))
    for name, embedder in (("HYBRID", Encoder(remembered=65_536)), ("LEXICAL", None)):
        print(name, fitted(asyncio.run(rows_of(sets, embedder))))


if __name__ == "__main__":
    main()
