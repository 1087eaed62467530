"""Texts drawn from three grammars: rules in a JSON file, each a symbol and what may stand for it."""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

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

CONTRASTS: Final = GRAMMAR.with_name("contrasts.json")
CONTRAST_COUNTS: Final[Mapping[str, int]] = {
    "harmless_order": 3000,
    "harmless_paste": 600,
    "harmless_code": 300,
    "harmless_order_abroad": 600,
    "attack_shape": 500,
    "attack_claim": 400,
    "attack_mode": 400,
    "attack_rank": 400,
    "attack_shots": 250,
    "attack_tail": 250,
    "attack_drop_abroad": 400,
}
"""The second grammar: orders that people give to each other, and attacks that look like something else."""

WIDER: Final = GRAMMAR.with_name("wider.json")
WIDER_COUNTS: Final[Mapping[str, int]] = {
    "harmless_motto": 1200,
    "harmless_chore": 1400,
    "harmless_trigger": 2000,
    "harmless_quote": 1200,
    "harmless_form": 350,
    "harmless_shots": 200,
    "harmless_wider_abroad": 1100,
    "attack_wider_shape": 1200,
    "attack_wider_shots": 600,
    "attack_wider_mode": 1100,
    "attack_wider_claim": 450,
    "attack_wider_rank": 500,
    "attack_wider_plain": 600,
    "attack_wider_quoted": 120,
    "attack_wider_abroad": 1500,
}
"""The third grammar: many short frames by another hand, harmless ones and attacks of the same kinds."""

BROAD: Final = GRAMMAR.with_name("broad.json")
BROAD_COUNTS: Final[Mapping[str, int]] = {
    "harmless_broad_shape": 900,
    "harmless_broad_shots": 600,
    "harmless_broad_tail": 300,
    "harmless_broad_plain": 900,
    "harmless_broad_talk": 900,
    "harmless_broad_mode": 900,
    "harmless_broad_quoted": 1000,
    "harmless_broad_trigger": 900,
    "harmless_broad_abroad": 1300,
    "attack_broad_shape": 1200,
    "attack_broad_shots": 700,
    "attack_broad_mode": 1000,
    "attack_broad_quoted": 600,
    "attack_broad_abroad": 1500,
}
"""The fourth grammar: what the third one taught too little of, in seven languages, by another hand."""

KEPT: Final = GRAMMAR.with_name("kept.json")
KEPT_COUNTS: Final[Mapping[str, int]] = {
    "harmless_kept_shape": 200,
    "harmless_kept_shots": 120,
    "harmless_kept_tail": 40,
    "harmless_kept_mode": 200,
    "harmless_kept_quoted": 200,
    "harmless_kept_people": 200,
    "harmless_kept_abroad": 82,
    "attack_kept_shape": 200,
    "attack_kept_shots": 200,
    "attack_kept_mode": 200,
    "attack_kept_quoted": 200,
    "attack_kept_abroad": 200,
}
"""The fifth grammar, with other frames and other words than the fourth: nothing is learned from it."""

_SEED: Final = 97
_SYMBOL: Final = re.compile(r"\{(\w+)\}")


class GrammarText(NamedTuple):
    """A text, whether it is an attack, and the frame it was drawn from."""

    text: str
    attack: bool
    frame: str


def drawn(grammar: Path = GRAMMAR, counts: Mapping[str, int] = COUNTS) -> Iterator[GrammarText]:
    """Yield texts of one grammar, each once; every draw is seeded."""
    draw = random.Random(_SEED)
    rules = _rules(grammar)
    for symbol, count in counts.items():
        texts: dict[str, int] = {}
        for number in range(count):
            frames = rules[symbol]
            text = _typed(_expanded(frames[number % len(frames)], rules, draw), draw)
            texts.setdefault(text, number % len(frames))
        for text, frame in texts.items():
            yield GrammarText(text, symbol.startswith("attack"), f"{symbol} {frame}")


def _expanded(text: str, rules: Mapping[str, Sequence[str]], draw: random.Random) -> str:
    while found := _SYMBOL.search(text):
        text = text[: found.start()] + draw.choice(rules[found[1]]) + text[found.end() :]
    return re.sub(r" +([.,;:?!])", r"\1", re.sub(r" {2,}", " ", text)).strip()


def _typed(text: str, draw: random.Random) -> str:
    """Return ``text`` as people type it: most begin with a capital, some write small and without a stop."""
    if draw.random() < 0.8:  # noqa: PLR2004 - a share
        return text[:1].upper() + text[1:]
    return text.lower().rstrip(".!?")


@lru_cache(maxsize=5)
def _rules(grammar: Path) -> dict[str, list[str]]:
    rules: dict[str, list[str]] = json.loads(grammar.read_text(encoding="utf-8"))
    return rules
