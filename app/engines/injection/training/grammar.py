"""Texts drawn from a grammar: rules in a JSON file, each a symbol and what may stand for it."""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

GRAMMAR: Final = Path(__file__).parent / "texts" / "grammar.json"
COUNTS: Final[Mapping[str, int]] = {
    "harmless": 2400,
    "harmless_abroad": 400,
    "harmless_task": 1600,
    "harmless_task_abroad": 300,
    "attack": 1100,
    "attack_abroad": 350,
}
"""How many texts are drawn from each symbol that stands for whole texts."""

_SEED: Final = 97
_SYMBOL: Final = re.compile(r"\{(\w+)\}")


def drawn() -> Iterator[tuple[str, bool]]:
    """Yield texts, each once, and whether they are attacks; every draw is seeded."""
    draw = random.Random(_SEED)
    rules = _rules()
    for symbol, count in COUNTS.items():
        texts: dict[str, None] = {}
        for number in range(count):
            frames = rules[symbol]
            texts.setdefault(_typed(_expanded(frames[number % len(frames)], rules, draw), draw))
        yield from ((text, symbol.startswith("attack")) for text in texts)


def _expanded(text: str, rules: Mapping[str, Sequence[str]], draw: random.Random) -> str:
    while found := _SYMBOL.search(text):
        text = text[: found.start()] + draw.choice(rules[found[1]]) + text[found.end() :]
    return re.sub(r" +([.,;:?!])", r"\1", re.sub(r" {2,}", " ", text)).strip()


def _typed(text: str, draw: random.Random) -> str:
    """Return ``text`` as people type it: most begin with a capital, some write small and without a stop."""
    if draw.random() < 0.8:  # noqa: PLR2004 - a share
        return text[:1].upper() + text[1:]
    return text.lower().rstrip(".!?")


@lru_cache(maxsize=1)
def _rules() -> dict[str, list[str]]:
    rules: dict[str, list[str]] = json.loads(GRAMMAR.read_text(encoding="utf-8"))
    return rules
