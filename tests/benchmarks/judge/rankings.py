"""Ranking: tools that a query needs among the best ten, and abstracts that a claim needs, beside rivals."""

import asyncio
import gzip
import hashlib
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from app.core.contracts.engines import ToolCandidate
from app.engines.encoder import Encoder
from app.engines.ranking.training.sets import Asked, tool_sets
from tests.benchmarks.judge.intervals import of, of_sets
from tests.benchmarks.judge.secrets import OPEN_DATA
from tests.benchmarks.quality import retrieval, tools
from tests.benchmarks.speed.report import table

_OPEN: Final = ("nestful", "bfcl_multi_turn")
"""Sets of which nothing was chosen, with more than a hundred tools."""
_RETRIEVED: Final[Mapping[str, Sequence[str]]] = {
    "xquad": ("en", "de", "es", "ro", "tr", "vi", "el", "ru", "ar", "hi", "th", "zh"),
    "jsquad_ja": ("ja",),
    "medquad": ("en",),
}
"""Sets of questions and documents, and the languages that are asked of each."""
_HELD: Final = 600
"""Most documents of an open set in one language."""
_ASKED: Final = 120
"""About how many questions of an open set are asked in one language."""
_MOST: Final = 300
_BEST: Final = 10
_HALVED: Final = frozenset({"xquad", "jsquad_ja"})
"""Sets of which one half of the questions served to choose how scripts are cut and how much the encoder counts."""
_HALF: Final = 128


class _Listed(NamedTuple):
    """A list of tools and what was asked of it."""

    name: str
    tools: tuple[ToolCandidate, ...]
    asked: Sequence[Asked]


def tables(smoke: bool = False) -> Iterator[str]:
    """Yield the tables, where environment variables name folders of open sets."""
    if os.environ.get(tools.FOLDER):
        yield asyncio.run(_tools(20 if smoke else _MOST))
    folder = os.environ.get(retrieval.FOLDER)
    if folder:
        yield from _retrieval(Path(folder), smoke)


async def _tools(most: int) -> str:
    encoder = Encoder(remembered=32_768)
    rows: list[tuple[Any, ...]] = []
    recalls: dict[str, list[list[float]]] = defaultdict(list)
    for listed in _lists():
        asked = listed.asked[:: max(1, len(listed.asked) // most)]
        for name, order in await tools.orders(listed.tools, encoder):
            hits = [len(each.gold & set((await order(each.text))[:_BEST])) / len(each.gold) for each in asked]
            recalls[name].append(hits)
            rows.append((listed.name, len(listed.tools), name, len(asked), _mean(hits)))
    for name, by_set in recalls.items():
        rows.append(("mean of the sets", "", name, sum(map(len, by_set)), of_sets(by_set)))
    return table(
        "Tool filter: needed tools among the best ten",
        ("set", "tools", "ranked by", "queries", "R@10"),
        rows,
        "Of BFCL, MetaTool and Seal-Tools, the half of the queries that no constant was chosen on; of the others all.",
    )


def _lists() -> Iterator[_Listed]:
    for one in tool_sets(Path(os.environ[tools.FOLDER])):
        yield _Listed(one.name, one.tools, one.reporting)
    folder = os.environ.get(OPEN_DATA)
    for name in _OPEN if folder else ():
        path = Path(str(folder)) / "tools" / name
        candidates = tuple(_candidate(row) for row in _rows(path / "tools.jsonl.gz"))
        places = {tool.name: place for place, tool in enumerate(candidates)}
        asked = [
            Asked(row["query"], frozenset(places[tool] for tool in row["gold"]))
            for row in _rows(path / "queries.jsonl.gz")
            if row["gold"] and set(row["gold"]) <= places.keys()
        ]
        yield _Listed(name, candidates, asked)


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _candidate(row: Mapping[str, Any]) -> ToolCandidate:
    parameters = tuple(
        f"{name} {(described or {}).get('description', '')}" for name, described in row["parameters"].items()
    )
    return ToolCandidate(row["name"], row["description"], parameters)


def _mean(values: Sequence[float]) -> str:
    scores = np.asarray(values)
    return of(len(scores), lambda chosen: float(scores[chosen].mean()))


def _retrieval(data: Path, smoke: bool) -> Iterator[str]:
    """Yield the table after each set, so that what was measured is kept if a later one takes too long."""
    rows: list[tuple[Any, ...]] = []
    encoder = Encoder(remembered=32_768)
    for name, some in _retrieval_sets(data, smoke):
        with tempfile.TemporaryDirectory() as folder:
            answers_by_rival = asyncio.run(retrieval.answers(some, Path(folder), encoder))
        for rival, given in answers_by_rival.items():
            gains = [retrieval.ndcg(answer.documents, answer.relevant) for answer in given]
            firsts = [
                float(bool(answer.documents) and answer.documents[0] in answer.relevant) for answer in given
            ]
            rows.append((name, len(some.documents), rival, len(given), _mean(gains), _mean(firsts)))
        yield table(
            "Document retrieval: relevant documents among the best ten",
            ("set", "documents", "ranked by", "questions", "nDCG@10", "relevant first"),
            rows,
            "Of XQuAD and JSQuAD, questions of the half that nothing was chosen on; on SciFact, fusions without "
            "constants were compared. Questions of XQuAD and JSQuAD were written beside their paragraph and share its "
            f"words. Of open sets {_HELD} documents at most, and about {_ASKED} questions of each language, evenly "
            "spaced. The encoder knows English only. rank-bm25 and bm25s are given our words and stems.",
        )


def _retrieval_sets(data: Path, smoke: bool) -> Iterator[tuple[str, retrieval.RetrievalSet]]:
    """Yield SciFact, and of the open sets each language by itself; of long ones a part."""
    yield "SciFact", retrieval.RetrievalSet.scifact(data, 30 if smoke else None)
    folder = os.environ.get(OPEN_DATA)
    for name, languages in _RETRIEVED.items() if folder else ():
        path = Path(str(folder)) / "retrieval" / name
        corpus, asked = _rows(path / "corpus.jsonl.gz"), _rows(path / "queries.jsonl.gz")
        for language in languages:
            documents = [one for one in corpus if one.get("lang", language) == language][
                : 30 if smoke else _HELD
            ]
            here = {one["_id"] for one in documents}
            questions = [
                one for one in asked if here & set(one["relevant"]) and not _was_chosen_on(name, one)
            ]
            questions = questions[:: max(1, len(questions) // (10 if smoke else _ASKED))]
            yield f"{name}, {language}", retrieval.RetrievalSet(documents, questions)


def _was_chosen_on(name: str, question: Mapping[str, Any]) -> bool:
    """Return whether a question is of the half that rules were chosen on; translations of it are, too."""
    if name not in _HALVED:
        return False
    key = str(question["id"]).removeprefix(f"{question['lang']}-")
    return hashlib.blake2b(key.encode(), digest_size=1).digest()[0] < _HALF
