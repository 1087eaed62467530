"""Injection: attacks found and harmless requests flagged, in texts drawn by kind and in open sets."""

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from app.engines.injection.detector import judged
from app.engines.injection.training.corpus import read_jsonl
from tests.benchmarks.judge.curves import Picture, found_and_flagged, picture
from tests.benchmarks.judge.frames import DrawnText
from tests.benchmarks.judge.injection_texts import requests
from tests.benchmarks.judge.intervals import share
from tests.benchmarks.judge.secrets import OPEN_DATA
from tests.benchmarks.quality.injection import FOLDER, has_trigger_word
from tests.benchmarks.speed.report import table

STANDARD: Final = 0.5
_EACH: Final = 1_000
_SETS: Final = (
    ("self-instruct, the half that was not learned from", "benign_self_instruct/all", 2),
    ("MT-bench and Vicuna bench, the half that was not learned from", "benign_fastchat/all", 2),
    ("commands in 20 languages and mails to a bank, one in four", "benign_assistant_requests/all", 4),
    ("spikee, questions about money", "spikee/benign", 1),
    ("spikee, attacks and their frames", "spikee/attacks", 1),
    ("giskard, attacks", "giskard/all", 1),
)


def scores(texts: Sequence[str]) -> list[float]:
    """Return how likely each text is an attack by a user."""
    return [judged([text], documents=False).scores[0] for text in texts]


def flagged(some: Sequence[DrawnText]) -> dict[tuple[bool, str], list[bool]]:
    """Return by kind, harmless ones first, which requests are suspected at the level standard."""
    hits: dict[tuple[bool, str], list[bool]] = defaultdict(list)
    for one, score in zip(some, scores([one.text for one in some]), strict=True):
        hits[one.bad, one.kind].append(score >= STANDARD)
    return dict(sorted(hits.items()))


def tables(smoke: bool = False) -> Iterator[str | Picture]:
    """Yield the tables and the curve; where ``smoke``, of a few texts of each kind."""
    some = list(requests(20 if smoke else _EACH))
    found = scores([one.text for one in some])
    rows: list[tuple[Any, ...]] = []
    for kind in dict.fromkeys((one.bad, one.kind) for one in some):
        mine = [number for number, one in enumerate(some) if (one.bad, one.kind) == kind]
        ours = [found[number] >= STANDARD for number in mine]
        rivals = [has_trigger_word(some[number].text) for number in mine]
        label = "attack" if kind[0] else "harmless"
        rows.append((label, kind[1], len(mine), share(ours), share(rivals)))
    for attack, label in ((False, "harmless"), (True, "attack")):
        mine = [number for number, one in enumerate(some) if one.bad is attack]
        ours = [found[number] >= STANDARD for number in mine]
        rivals = [has_trigger_word(some[number].text) for number in mine]
        rows.append((label, "all kinds", len(mine), share(ours), share(rivals)))
    rows.sort(key=lambda row: row[0], reverse=True)
    yield table(
        "Injection: requests drawn by kind",
        ("", "kind", "texts", "Sluice, flagged", "a list of trigger words, flagged"),
        rows,
        "Level standard. Of attacks, more is better; of harmless texts, less.",
    )
    yield picture(
        "judgement-injection.svg",
        "Injection: attacks found over harmless requests flagged",
        ("Harmless flagged", "Attacks found"),
        {
            "Sluice, texts drawn by kind": found_and_flagged(
                [score for one, score in zip(some, found, strict=True) if one.bad],
                [score for one, score in zip(some, found, strict=True) if not one.bad],
            )
        },
        "Each point is a threshold; the table above is the point at 0.5.",
    )
    folder = os.environ.get(OPEN_DATA)
    if folder:
        yield _open(Path(folder) / "injection", smoke)


def _open(folder: Path, smoke: bool) -> str:
    rows: list[tuple[Any, ...]] = []
    for title, name, every in _SETS:
        path = folder / f"{name}.jsonl.gz"
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                some = [json.loads(line) for line in lines][every // 2 :: every * (20 if smoke else 1)]
            label = "attack" if some[0]["injection"] else "harmless"
            rows.append(_row(label, title, [row["text"] for row in some]))
    ours = os.environ.get(FOLDER)
    texts: dict[tuple[bool, str], list[str]] = defaultdict(list)
    for row in read_jsonl(Path(ours) / "test.jsonl") if ours else ():
        texts[bool(row["injection"]), str(row["src"])].append(str(row["text"]))
    for (attack, source), mine in sorted(texts.items()):
        rows.append(_row("attack" if attack else "harmless", f"{source}, test part", mine))
    return table(
        "Injection: open sets",
        ("", "set", "texts", "Sluice, flagged", "a list of trigger words, flagged"),
        rows,
        "Level standard. Many of spikee's attacks are orders whose harm lies in what they ask for, not in their "
        "wording.",
    )


def _row(label: str, title: str, texts: Sequence[str]) -> tuple[Any, ...]:
    ours = [score >= STANDARD for score in scores(texts)]
    return label, title, len(texts), share(ours), share([has_trigger_word(text) for text in texts])
