"""Read the hand-written lists and templates beside this file, and draw by odds."""

import random
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "templates"


@cache
def entries(title: str) -> tuple[str, ...]:
    """Return the entries of one section of `lists.txt`."""
    return _sections()[title]


@cache
def _sections() -> dict[str, tuple[str, ...]]:
    sections: dict[str, tuple[str, ...]] = {}
    title = ""
    for line in (_FOLDER / "lists.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            title = line.strip("[]")
            sections[title] = ()
        elif line.strip():
            sections[title] += tuple(entry.strip() for entry in line.split(";") if entry.strip())
    return sections


@cache
def templates(name: str) -> tuple[str, ...]:
    r"""Return the templates of a file: one a line, `\n` and `\t` written out, `{slots}` to be filled."""
    lines = (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line.replace("\\n", "\n").replace("\\t", "\t") for line in lines if line.strip())


@cache
def weighted(title: str) -> dict[str, int]:
    """Return a section whose entries end in a weight."""
    return {entry.rsplit(" ", 1)[0]: int(entry.rsplit(" ", 1)[1]) for entry in entries(title)}


def happens(chance: random.Random, odds: float) -> bool:
    """Return True in `odds` of the cases."""
    return chance.random() < odds
