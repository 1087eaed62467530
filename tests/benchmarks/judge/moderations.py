"""Moderation: harm found and look-alikes flagged, in texts drawn by kind and in open sets, beside rivals."""

import asyncio
import gzip
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from app.core.contracts.moderation import POLICIES, THRESHOLDS
from app.engines.encoder import Encoder
from app.engines.moderation.embedded import EmbeddedModerator
from app.engines.moderation.training.evaluate import (
    TOXIC,
    Judge,
    area_under_roc,
    average_precision,
    judge_by,
    read_ordinary,
    read_wikipedia,
)
from app.engines.moderation.training.examples import read_pairs
from tests.benchmarks.judge.curves import Picture, found_and_flagged, picture
from tests.benchmarks.judge.frames import DrawnText, Frames
from tests.benchmarks.judge.intervals import of, share
from tests.benchmarks.judge.secrets import OPEN_DATA
from tests.benchmarks.quality.moderation import FOLDER, USUAL, rivals
from tests.benchmarks.speed.report import table

STANDARD: Final = THRESHOLDS["enterprise"]
_FRAMES: Final = Path(__file__).with_name("moderation_frames.txt")
_EACH: Final = 1_000
_SLOW: Final = ("better-profanity",)
"""Takes a minute for a hundred long comments."""
_Wanted = Callable[[Mapping[str, Any]], int | None]
_SETS: Final[tuple[tuple[str, str, _Wanted], ...]] = (
    ("answers to hate posts, test (CrowdCounter)", "crowdcounter/test", lambda _: 0),
    ("stories that name groups (BBQ), not learned from", "bbq_group_mentions/all", lambda _: 0),
    ("hate with emoji, test (HatemojiBuild)", "hatemoji_build/test", lambda row: int(row["hate"])),
    ("sentences of a forum of racists, test", "vicomtech_forum/test", lambda row: int(row["hate"])),
    ("harmful requests (SimpleSafetyTests)", "simple_safety_tests/all", lambda _: 1),
)


def drawn(each: int) -> list[DrawnText]:
    """Return the test part, at most ``each`` texts of a kind."""
    return list(Frames.read(_FRAMES).every(each))


def judges(policies: Sequence[str] = POLICIES, slow: Sequence[str] = ()) -> dict[str, tuple[Judge, float]]:
    """Return Sluice and the rivals that are installed but for ``slow``, each with the score from which it flags."""
    ours = judge_by(EmbeddedModerator(Encoder()), policies)
    quick = {name: (judge, USUAL) for name, judge in rivals() if name not in slow}
    return {"Sluice": (ours, STANDARD)} | quick


def tables(smoke: bool = False) -> Iterator[str | Picture]:
    """Yield the tables and the curve; where ``smoke``, of a few texts of each kind."""
    some = drawn(20 if smoke else _EACH)
    scores = {name: asyncio.run(judge([one.text for one in some])) for name, (judge, _) in judges().items()}
    rows: list[tuple[Any, ...]] = []
    kinds = [(one.bad, one.kind) for one in some]
    for bad, kind in [*dict.fromkeys(kinds), (False, "all kinds"), (True, "all kinds")]:
        mine = [number for number, each in enumerate(kinds) if (bad, kind) in {each, (each[0], "all kinds")}]
        for name, (_, mark) in judges().items():
            rows.append(
                ("harmful" if bad else "harmless", kind, name, len(mine), share(scores[name][mine] >= mark))
            )
    yield table(
        "Moderation: texts drawn by kind",
        ("", "kind", "engine", "texts", "flagged"),
        sorted(rows, key=lambda row: row[0], reverse=True),
        "Level enterprise. Of harmful texts, more is better; of harmless ones, less.",
    )
    bad_texts = np.array([one.bad for one in some])
    yield picture(
        "judgement-moderation.svg",
        "Moderation: harmful texts found over harmless ones flagged",
        ("Harmless flagged", "Harmful found"),
        {name: found_and_flagged(made[bad_texts], made[~bad_texts]) for name, made in scores.items()},
        "Each point is a threshold. All harmless texts are look-alikes; of ordinary requests fewer are flagged.",
    )
    folder, wikipedia = os.environ.get(OPEN_DATA), os.environ.get(FOLDER)
    if folder:
        yield _open(Path(folder) / "moderation", smoke)
    yield _pairs()
    if wikipedia:
        yield _wikipedia(Path(wikipedia), smoke)


def _open(folder: Path, smoke: bool) -> str:
    rows: list[tuple[Any, ...]] = []
    for title, file, wanted in _SETS:
        path = folder / f"{file}.jsonl.gz"
        if not path.exists():
            continue
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            some = [json.loads(line) for line in lines]
        # Every third of these was learned from.
        some = [row for number, row in enumerate(some) if "bbq" not in file or number % 3 == 1]
        some = some[:: 20 if smoke else 1]
        for name, (judge, mark) in judges(slow=_SLOW).items():
            flags = asyncio.run(judge([str(row["text"]) for row in some])) >= mark
            for label in (0, 1):
                mine = [number for number, row in enumerate(some) if wanted(row) == label]
                if mine:
                    said = "harmful" if label else "harmless"
                    rows.append((title, said, name, len(mine), share(flags[mine])))
    return table(
        "Moderation: open sets",
        ("set", "", "engine", "texts", "flagged"),
        rows,
        "Level enterprise. Other parts of CrowdCounter, BBQ and HatemojiBuild were learned from.",
    )


def _pairs() -> str:
    held_out = [pair for pair in read_pairs() if pair.held_out]
    rows: list[tuple[Any, ...]] = []
    for name, (judge, mark) in judges().items():
        safe, unsafe = (
            asyncio.run(judge(texts))
            for texts in ([pair.safe for pair in held_out], [pair.unsafe for pair in held_out])
        )
        rows.append((name, len(held_out), share(unsafe > safe), share(safe >= mark), share(unsafe >= mark)))
    return table(
        "Moderation: held-out pairs of a harmless and a harmful text that share words",
        ("engine", "pairs", "harmful one scores higher", "harmless flagged", "harmful flagged"),
        rows,
        "Level enterprise.",
    )


def _wikipedia(folder: Path, smoke: bool) -> str:
    comments, toxic = read_wikipedia(folder)
    ordinary = read_ordinary(folder)
    every = 20 if smoke else 1
    comments, labels, ordinary = comments[::every], np.array(toxic[::every]), ordinary[::every]
    rows: list[tuple[Any, ...]] = []
    for (name, (judge, mark)), (everything, _) in zip(
        judges(TOXIC, _SLOW).items(), judges(slow=_SLOW).values(), strict=True
    ):
        scores, asked = asyncio.run(judge(comments)), asyncio.run(everything(ordinary))
        rows.append(
            (
                name,
                len(comments),
                of(
                    len(labels),
                    lambda chosen, s=scores: average_precision(labels[chosen].tolist(), s[chosen]),
                ),
                of(len(labels), lambda chosen, s=scores: area_under_roc(labels[chosen].tolist(), s[chosen])),
                share(scores[labels] >= mark),
                len(ordinary),
                share(asked >= mark),
            )
        )
    return table(
        "Moderation: comments of Wikipedia, and ordinary requests",
        ("engine", "comments", "AUPRC", "AUROC", "toxic flagged", "requests", "requests flagged"),
        rows,
        "alt-profanity-check was trained on comments of the same Wikipedia set, perhaps on these.",
    )
