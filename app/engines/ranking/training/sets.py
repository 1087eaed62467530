"""The open sets: tools, queries with the tools they need, and the half of the queries that figures are about."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.core.contracts.engines import ToolCandidate

SEED: Final = 20261121


@dataclass(frozen=True, slots=True)
class Asked:
    """A query and the positions of the tools that it needs."""

    text: str
    gold: frozenset[int]


@dataclass(frozen=True, slots=True)
class ToolSet:
    """One set, split once and for all: ``choosing`` for constants, ``reporting`` for figures."""

    name: str
    tools: tuple[ToolCandidate, ...]
    choosing: tuple[Asked, ...]
    reporting: tuple[Asked, ...]


def tool_sets(folder: Path) -> Iterator[ToolSet]:
    """Yield the sets of ``folder``: ``NAME_tools.jsonl`` and ``NAME_queries.jsonl``."""
    for path in sorted(folder.glob("*_tools.jsonl")):
        name = path.name.removesuffix("_tools.jsonl")
        tools = tuple(_candidate(line) for line in _lines(path))
        places = {tool.name: place for place, tool in enumerate(tools)}
        asked = [
            Asked(line["query"], frozenset(places[one] for one in line["gold"]))
            for line in _lines(folder / f"{name}_queries.jsonl")
        ]
        order = list(range(len(asked)))
        random.Random(SEED).shuffle(order)
        half = len(order) // 2
        chosen, kept = sorted(order[:half]), sorted(order[half:])
        yield ToolSet(name, tools, tuple(asked[one] for one in chosen), tuple(asked[one] for one in kept))


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _candidate(line: dict[str, Any]) -> ToolCandidate:
    parameters = tuple(
        f"{name} {(described or {}).get('description', '')}" for name, described in line["parameters"].items()
    )
    return ToolCandidate(line["name"], line["description"], parameters)
