"""How well the embedded judge tells answers that follow from their source, beside cheap measures, and how fast."""

import asyncio
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from app.core.content.context import Context
from app.core.contracts.engines import Claim
from app.engines.encoder import Encoder
from app.engines.grounding.checker import RuleChecker
from app.engines.grounding.judge import LexicalJudge
from app.middlewares.hallucination_detection.middleware import (
    HallucinationDetection,
    HallucinationDetectionArguments,
)
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import SMOKE, Sizes
from tests.fakes import engines

FOLDER = "SLUICE_TEST_GROUNDING_DATA"
KNOWN = (
    "The harbour of Lindau {0} was rebuilt in 18{0} by the engineer Karl Brandt, who had worked in Hamburg before. "
    "Its lighthouse is {0} metres high and cost 12{0},000 guilders. See https://harbour.example.org/lindau{0}/history. "
)
ANSWER = (
    "Karl Brandt rebuilt the harbour of Lindau {0} in 18{0}. Its lighthouse is {0}5 metres high. "
    "See https://harbour.example.org/lindau{0}/histroy for details. He had worked in Bremen {0} years before. "
)


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the speed, and where the open set lies in the given folder, the quality."""
    detection = HallucinationDetection(engines(grounding=LexicalJudge(), answers=RuleChecker()))
    yield _speed(detection, 5 if sizes is SMOKE else 200)
    given = os.environ.get(FOLDER)
    if given:
        path = Path(given) / "begin_test_wow.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        yield _quality(detection, rows[: 60 if sizes is SMOKE else None])


def _speed(detection: HallucinationDetection, rounds: int) -> str:
    rows = []
    for title, known, answer in (("1 KB", 800, 200), ("4 KB", 3_200, 800), ("16 KB", 14_400, 1_600)):
        items = [
            {"role": "user", "content": "".join(map(KNOWN.format, range(10, 90)))[:known]},
            {"role": "assistant", "content": "".join(map(ANSWER.format, range(10, 30)))[:answer]},
        ]
        took = []
        for _ in range(rounds + 1):
            begun = time.perf_counter()
            asyncio.run(_metadata(detection, items))
            took.append((time.perf_counter() - begun) * 1e3)
        rows.append((title, percentile(took[1:], 0.5), percentile(took[1:], 0.95)))
    return table(
        "Hallucination detection, all checks",
        ("context and answer", "p50 ms", "p95 ms"),
        rows,
        "Engine warm, in one process, without the service around it; a fifth of the text is the answer.",
    )


async def _metadata(detection: HallucinationDetection, items: list[dict[str, str]]) -> dict[str, object]:
    context = Context.parse(items)
    return (await detection.apply(context, HallucinationDetectionArguments(action="report"))).metadata


def _quality(detection: HallucinationDetection, rows: Sequence[dict[str, str]]) -> str:
    labels = np.array([int(row["unsupported"]) for row in rows])
    made = []
    for name, score in (
        ("this service, `score` of the middleware", lambda: asyncio.run(scores_of(detection, rows))),
        ("this service, judge alone", lambda: _by_judge(rows)),
        ("words found in the source", lambda: [1 - _precision(row) for row in rows]),
        ("ROUGE-L precision", lambda: [1 - _longest(row) for row in rows]),
        ("MiniLM cosine", lambda: _by_cosine(rows)),
    ):
        begun = time.perf_counter()
        scores = np.array(score())
        each = (time.perf_counter() - begun) / len(rows) * 1e3
        flagged = scores >= 0.5
        shares = (labels[flagged].mean() if flagged.any() else 0.0, flagged[labels == 1].mean())
        known = name.startswith("this service")
        made.append(
            (name, f"{auroc(labels, scores):.3f}", *((f"{one:.2f}" if known else "") for one in shares), each)
        )
    return table(
        f"Answers without support, BEGIN Wizard of Wikipedia test ({len(rows):,} answers)",
        ("measure", "AUROC", "precision at 0.5", "recall at 0.5", "ms an answer"),
        made,
        "Trained on BEGIN's development part and on summaries made by rule. Dialogue answers that restate their source "
        "or leave it; where an answer says all in words of its own, lexical measures are near chance.",
    )


async def scores_of(detection: HallucinationDetection, rows: Sequence[dict[str, str]]) -> list[float]:
    """Return the score of each answer (``response``), given its source (``context``)."""
    asked = (
        [{"type": "text", "text": row["context"]}, {"role": "assistant", "content": row["response"]}]
        for row in rows
    )
    return [float(str((await _metadata(detection, items))["score"])) for items in asked]


def _by_judge(rows: Sequence[dict[str, str]]) -> list[float]:
    claims = [Claim(row["response"], (row["context"],)) for row in rows]
    return asyncio.run(LexicalJudge().judge(claims)).scores


def _by_cosine(rows: Sequence[dict[str, str]]) -> list[float]:
    encoder = Encoder()

    async def vectors(name: str) -> np.ndarray:
        made = await encoder.embed([row[name] for row in rows])
        return np.array([np.frombuffer(one, dtype="<f4") for one in made.vectors])

    async def both() -> list[float]:
        response, context = await vectors("response"), await vectors("context")
        return [float(one) for one in 1 - (response * context).sum(axis=1)]

    return asyncio.run(both())


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _precision(row: dict[str, str]) -> float:
    words, known = _words(row["response"]), set(_words(row["context"]))
    return sum(word in known for word in words) / max(1, len(words))


def _longest(row: dict[str, str]) -> float:
    """Return the longest common subsequence's share of the response."""
    one, other = _words(row["response"]), _words(row["context"])
    last = [0] * (len(other) + 1)
    for word in one:
        now = [0]
        for index, known in enumerate(other):
            now.append(last[index] + 1 if word == known else max(last[index + 1], now[index]))
        last = now
    return last[-1] / max(1, len(one))


def auroc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return how often a positive scores above a negative, ties counting half."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positives = labels.sum()
    negatives = len(labels) - positives
    return float((ranks[labels == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives))
