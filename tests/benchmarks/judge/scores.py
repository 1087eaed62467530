"""Grounding: whether the score of an answer tells supported ones from others, on open sets, beside cheap measures."""

import asyncio
import gzip
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from app.engines.grounding.checker import RuleChecker
from app.engines.grounding.judge import LexicalJudge
from app.middlewares.hallucination_detection.middleware import HallucinationDetection
from tests.benchmarks.judge.intervals import of
from tests.benchmarks.judge.secrets import OPEN_DATA
from tests.benchmarks.judge.summary_texts import Summary, articles, of_abstracts, of_articles, of_documents
from tests.benchmarks.quality.grounding import FOLDER, auroc, scores_of
from tests.benchmarks.quality.retrieval import FOLDER as RETRIEVAL_DATA
from tests.benchmarks.speed.report import table
from tests.fakes import engines

_SETS: Final = (
    ("SummEdits, test (sales, abstracts, meetings)", "summedits/test"),
    ("FEVER symmetric, test", "fever_symmetric/test"),
    ("Fool Me Twice, test", "fool_me_twice/test"),
)


def tables(smoke: bool = False) -> Iterator[str]:
    """Yield the table, where an environment variable names a folder of open sets."""
    rows: list[tuple[object, ...]] = []
    for title, some in _sets():
        chosen = some[:: max(1, len(some) // 60)] if smoke else some
        labels = np.array([int(row["unsupported"]) for row in chosen])
        detection = HallucinationDetection(engines(grounding=LexicalJudge(), answers=RuleChecker()))
        for measure, scores in (
            ("Sluice, `score`", asyncio.run(scores_of(detection, chosen))),
            ("runs of three words that the source lacks", [_novelty(row, 3) for row in chosen]),
            ("words that the source lacks", [_novelty(row, 1) for row in chosen]),
        ):
            rows.append((title, measure, len(chosen), _interval(labels, np.array(scores))))
    if rows:
        yield table(
            "AUROC of the score of answers",
            ("set", "measure", "answers", "AUROC"),
            rows,
            "Sources of SummEdits and Fool Me Twice are long and one changed word decides: wording tells little there. "
            "The three sets of summaries were made by rule and stand in for summaries of news with the labels of "
            "people, of which no open set is here: take differences from the other measures from them, not levels.",
        )


def _interval(labels: np.ndarray, scores: np.ndarray) -> str:
    return of(len(labels), lambda chosen: auroc(labels[chosen], scores[chosen]))


def _sets() -> Iterator[tuple[str, list[dict[str, str]]]]:
    begin = os.environ.get(FOLDER)
    if begin:
        lines = (Path(begin) / "begin_test_wow.jsonl").read_text(encoding="utf-8").splitlines()
        yield "BEGIN, Wizard of Wikipedia, test", [json.loads(line) for line in lines if line]
    folder = os.environ.get(OPEN_DATA)
    for title, name in _SETS if folder else ():
        path = Path(str(folder)) / "grounding" / f"{name}.jsonl.gz"
        if path.exists():
            yield title, [_row(row) for row in _read(path)]
    yield from _summaries(Path(str(folder)) if folder else None)


def _summaries(folder: Path | None) -> Iterator[tuple[str, list[dict[str, str]]]]:
    abstracts = Path(os.environ.get(RETRIEVAL_DATA, "")) / "scifact_corpus.jsonl"
    if abstracts.is_file():
        yield "Summaries: SciFact, own and other titles", _made(of_abstracts(abstracts))
    if folder is not None:
        if (folder / "retrieval" / "xquad").is_dir():
            yield "Summaries: articles of XQuAD, drawn", _made(of_articles(articles(folder)))
        edits = folder / "grounding" / "summedits" / "test.jsonl.gz"
        if edits.is_file():
            yield "Summaries: SummEdits, test, true and mixed", _made(of_documents(_read(edits)))


def _made(some: Iterator[Summary]) -> list[dict[str, str]]:
    return [
        {"context": one.context, "response": one.text, "unsupported": str(int(one.unsupported))}
        for one in some
    ]


def _read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        return [json.loads(row) for row in rows]


def _row(row: dict[str, str]) -> dict[str, str]:
    unsupported = "0" if row["label"] == "supports" else "1"
    return {"context": row["source"], "response": row["statement"], "unsupported": unsupported}


def _novelty(row: dict[str, str], size: int) -> float:
    """Return the share of the answer's runs of words that the source lacks."""
    said, source = (_runs(re.findall(r"\w+", row[name].lower()), size) for name in ("response", "context"))
    there = set(source)
    return sum(run not in there for run in said) / max(1, len(said))


def _runs(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + size]) for at in range(max(0, len(words) - size + 1))]
