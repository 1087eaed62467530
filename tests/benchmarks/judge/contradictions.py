"""Grounding: contradictions found among those made by rule and those of people, and false alarms on paraphrases."""

import gzip
import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from app.engines.grounding.contradictions.finding import SourceSentences, check_contradictions
from app.engines.grounding.statements import statements_of
from tests.benchmarks.judge.contradiction_texts import Statement, statements
from tests.benchmarks.judge.intervals import share
from tests.benchmarks.judge.secrets import OPEN_DATA
from tests.benchmarks.speed.report import table

_SETS: Final = (
    ("FEVER symmetric, test", "fever_symmetric/test"),
    ("counterfactual SNLI, test", "cad_nli/test"),
    ("Fool Me Twice, test", "fool_me_twice/test"),
    ("SummEdits, test", "summedits/test"),
)
"""Open sets of which nothing was read to make a rule: their development parts were."""
_EACH: Final = 11


def is_contradicted(context: str, text: str) -> bool:
    """Return whether there is a finding in ``text``."""
    sentences = statements_of(text).sentences
    return next(check_contradictions(text, sentences, SourceSentences([context])), None) is not None


def share_found(some: Sequence[Statement]) -> tuple[float, float]:
    """Return the shares of corruptions and of paraphrases that have a finding."""
    hits = defaultdict(list)
    for one in some:
        hits[bool(one.kind)].append(is_contradicted(one.context, one.text))
    return sum(hits[True]) / len(hits[True]), sum(hits[False]) / len(hits[False])


def tables(smoke: bool = False) -> Iterator[str]:
    """Yield the tables; where ``smoke``, of one drawing of each statement."""
    hits = defaultdict(list)
    words = defaultdict(list)
    for one in statements(1 if smoke else _EACH):
        hits[one.kind].append(is_contradicted(one.context, one.text))
        words[one.kind].append(_has_new_word(one))
    corrupted = [hit for kind, found in hits.items() if kind for hit in found]
    copied = [hit for kind, found in words.items() if kind for hit in found]
    rows = [
        ("Sluice", "all kinds", len(corrupted), share(corrupted)),
        ("Sluice", "true paraphrases (false alarms)", len(hits[""]), share(hits[""])),
        ("a word that the sentence lacks", "all kinds", len(copied), share(copied)),
        (
            "a word that the sentence lacks",
            "true paraphrases (false alarms)",
            len(words[""]),
            share(words[""]),
        ),
        *(("Sluice", kind, len(found), share(found)) for kind, found in sorted(hits.items()) if kind),
    ]
    yield table("Contradictions found, made by rule", ("judge", "kind", "statements", "found"), rows)
    folder = os.environ.get(OPEN_DATA)
    if folder:
        yield _open(Path(folder) / "grounding", smoke)


def _has_new_word(one: Statement) -> bool:
    """Return whether the statement has a word that its sentence lacks, the cheapest of all rivals."""
    return not set(one.text.lower().strip(".").split()) <= set(one.source.lower().strip(".").split())


def _open(folder: Path, smoke: bool) -> str:
    rows: list[tuple[Any, ...]] = []
    for title, name in _SETS:
        path = folder / f"{name}.jsonl.gz"
        if not path.exists():
            continue
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            some = [json.loads(line) for line in lines]
        if smoke:
            some = random.Random(1).sample(some, 100)
        hits = defaultdict(list)
        for row in some:
            hits[row["label"]].append(is_contradicted(row["source"], row["statement"]))
        rows += [(title, label, len(found), share(found)) for label, found in sorted(hits.items())]
    return table(
        "Contradictions found in pairs that people wrote",
        ("set", "label", "pairs", "with a finding"),
        rows,
        "Findings on `supports` are false alarms. Most contradictions that people write share few words with "
        "their source and are out of reach of rules.",
    )
