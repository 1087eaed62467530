"""Moderation: harm found and look-alikes flagged, in texts drawn by kind and in open sets, beside rivals."""

import asyncio
import gzip
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

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
from tests.benchmarks.judge.moderation_languages import languages_table
from tests.benchmarks.judge.secrets import OPEN_DATA
from tests.benchmarks.quality.moderation import FOLDER, USUAL, rivals
from tests.benchmarks.speed.report import table

STANDARD: Final = THRESHOLDS["enterprise"]
_FRAMES: Final = Path(__file__).with_name("moderation_frames.txt")
_EACH: Final = 1_000
_SLOW: Final = ("better-profanity",)
"""Takes a minute for a hundred long comments."""
_Wanted = Callable[[Mapping[str, Any]], int | None]


class _Set(NamedTuple):
    """An open set: its file, a row's label (None: not judged), whether it is in the mixed set, one text in how many."""

    title: str
    file: str
    wanted: _Wanted
    mixed: bool = False
    every: int = 1


def _third(row: Mapping[str, Any]) -> bool:
    """Return whether a question of MultiJail was kept for this test."""
    return int(row["group"]) % 3 == 0


def _voted(row: Mapping[str, Any]) -> int:
    """Return whether two of three readers saw more than obscene words in a Brazilian tweet."""
    return int(max(votes for kind, votes in row["votes"].items() if kind != "obscene") >= 2)


def _sexist(row: Mapping[str, Any]) -> int | None:
    # What is not sexist may be hateful otherwise.
    return 1 if str(row["category"]).startswith(("1", "2")) else None


_SETS: Final = (
    _Set(
        "answers to hate posts, test (CrowdCounter)", "moderation/crowdcounter/test", lambda _: 0, mixed=True
    ),
    _Set(
        "stories that name groups (BBQ), not learned from",
        "moderation/bbq_group_mentions/all",
        lambda _: 0,
        mixed=True,
    ),
    _Set(
        "hate with emoji, test (HatemojiBuild)",
        "moderation/hatemoji_build/test",
        lambda row: int(row["hate"]),
        mixed=True,
    ),
    _Set(
        "sentences of a forum of racists, test",
        "moderation/vicomtech_forum/test",
        lambda row: int(row["hate"]),
        mixed=True,
    ),
    _Set("sexist threats and insults, test (EDOS)", "moderation/edos_sexism/test", _sexist, mixed=True),
    _Set(
        "harmful requests (SimpleSafetyTests)", "moderation/simple_safety_tests/all", lambda _: 1, mixed=True
    ),
    _Set(
        "harmful questions in English, not learned from (MultiJail)",
        "moderation/multijail/all",
        lambda row: 1 if _third(row) and row["lang"] == "en" else None,
        mixed=True,
    ),
    _Set(
        "the same in nine other languages (MultiJail)",
        "moderation/multijail/all",
        lambda row: 1 if _third(row) and row["lang"] != "en" else None,
    ),
    _Set(
        "of these, in Italian and Chinese (MultiJail)",
        "moderation/multijail/all",
        lambda row: 1 if _third(row) and row["lang"] in {"it", "zh"} else None,
    ),
    _Set(
        "insults and hate in German tweets, test (GermEval 2018)",
        "moderation/germeval18_de/test",
        lambda row: int(row["offense"]),
        every=2,
    ),
    _Set(
        "Chinese comments, test (COLD)", "moderation/cold_zh/test", lambda row: int(row["offensive"]), every=5
    ),
    _Set(
        "insults and hate in Portuguese tweets, test (ToLD-Br)", "moderation/toldbr_pt/test", _voted, every=2
    ),
    _Set(
        "ordinary commands in 19 languages (xSID)",
        "injection/benign_assistant_requests/all",
        lambda row: 0 if row["src"] == "xsid" else None,
        every=3,
    ),
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
    yield from languages_table(judges(), smoke)
    folder, wikipedia = os.environ.get(OPEN_DATA), os.environ.get(FOLDER)
    if folder:
        yield from _open(Path(folder), smoke)
    yield _pairs()
    if wikipedia:
        yield _wikipedia(Path(wikipedia), smoke)


def _open(folder: Path, smoke: bool) -> Iterator[str]:
    rows: list[tuple[Any, ...]] = []
    mixed: dict[str, tuple[list[bool], list[float]]] = {}
    for one in _SETS:
        some = list(_rows(folder / f"{one.file}.jsonl.gz", one))[:: 20 if smoke else one.every]
        labels = np.array([label for _, label in some], dtype=bool)
        for name, (judge, mark) in judges(slow=_SLOW).items() if some else ():
            scores = asyncio.run(judge([text for text, _ in some]))
            for label in (False, True):
                if (labels == label).any():
                    flags = scores[labels == label] >= mark
                    said = "harmful" if label else "harmless"
                    rows.append((one.title, said, name, len(flags), share(flags)))
            if one.mixed:
                known, judged = mixed.setdefault(name, ([], []))
                known.extend(labels.tolist())
                judged.extend(scores.tolist())
    yield table(
        "Moderation: open sets",
        ("set", "", "engine", "texts", "flagged"),
        rows,
        "Level enterprise. Other parts of CrowdCounter, BBQ, HatemojiBuild, EDOS, GermEval, COLD and of "
        "MultiJail in English, Italian and Chinese were learned from.",
    )
    if mixed:
        yield _of_mixed(mixed)


def _of_mixed(mixed: Mapping[str, tuple[Sequence[bool], Sequence[float]]]) -> str:
    rows: list[tuple[Any, ...]] = []
    for name, (known, judged) in mixed.items():
        labels, scores = np.array(known), np.array(judged)
        rows.append(
            (
                name,
                int(labels.sum()),
                int((~labels).sum()),
                *(
                    of(
                        len(labels),
                        lambda chosen, m=measure, x=labels, s=scores: m(x[chosen].tolist(), s[chosen]),
                    )
                    for measure in (average_precision, area_under_roc)
                ),
            )
        )
    return table(
        "Moderation: the first seven open sets, mixed",
        ("engine", "harmful texts", "harmless texts", "AUPRC", "AUROC"),
        rows,
        "Each text counts alike. The mixture was chosen before it was measured.",
    )


def _rows(path: Path, one: _Set) -> Iterator[tuple[str, int]]:
    """Yield the texts of a set that are judged, and their labels; nothing where the set is not there."""
    if not path.exists():
        return
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            label = one.wanted(row)
            # Every third of the stories that name groups was learned from.
            if label is not None and ("bbq" not in one.file or number % 3 == 1):
                yield str(row["text"]), label


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
