"""Moderation in other languages than English: harm found and look-alikes flagged, by language."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from app.engines.moderation.training.evaluate import Judge
from tests.benchmarks.judge.frames import DrawnText, Frames
from tests.benchmarks.judge.intervals import share
from tests.benchmarks.speed.report import table

_FRAMES: Final = Path(__file__).with_name("moderation_language_frames.txt")
_EACH: Final = 60


def drawn_by_language(each: int = _EACH) -> list[DrawnText]:
    """Return the test part, at most ``each`` texts of a kind; a kind begins with the code of its language."""
    return list(Frames.read(_FRAMES).every(each))


def languages_table(judges: Mapping[str, tuple[Judge, float]], smoke: bool) -> Iterator[str]:
    """Yield the table of each language and kind, and of all languages together, for each of ``judges``."""
    some = drawn_by_language(5 if smoke else _EACH)
    kinds = [(one.bad, *one.kind.split(" ", 1)) for one in some]
    wanted = dict.fromkeys([*kinds, *((bad, "all", kind) for bad, _, kind in kinds)])
    rows: list[tuple[Any, ...]] = []
    for name, (judge, mark) in judges.items():
        flags = asyncio.run(judge([one.text for one in some])) >= mark
        for bad, language, kind in wanted:
            mine = np.array(
                [own == (bad, language, kind) or (language == "all" and own[2] == kind) for own in kinds]
            )
            label = "harmful" if bad else "harmless"
            rows.append((language, label, kind, name, int(mine.sum()), share(flags[mine])))
    yield table(
        "Moderation: texts drawn by language",
        ("language", "", "kind", "engine", "texts", "flagged"),
        rows,
        "Level enterprise. Of harmful texts, more is better; of harmless ones, less.",
    )
