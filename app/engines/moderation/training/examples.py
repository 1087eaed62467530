"""What the classifiers learn from: open data sets, our own contrast pairs, and texts made of our own templates."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.core.contracts.moderation import POLICIES

HERE = Path(__file__).parent

Labels = Mapping[str, int | None]
"""The label of each policy: 1, 0, or None where nobody knows."""

SOURCE_WEIGHTS: Mapping[str, float] = {
    "davidson": 0.4,
    "toxigen": 0.7,
    "implicit": 0.5,
    "surge": 1.5,
    "rtp": 1.0,
    "madlibs": 0.2,
    "catqa": 3.0,
    "harmfulqa": 0.35,
    "advbench": 1.5,
    "malinst": 2.0,
    "bfcl": 1.0,
    "metatool": 0.7,
    "pair": 10.0,
    "template": 0.8,
    "ordinary": 0.7,
    "stance": 0.8,
    "crowdcounter": 1.0,
    "hatemoji": 0.7,
    "edos": 0.4,
    "bbq": 0.4,
    "multijail": 2.0,
    "plain": 0.8,
}
"""Small and clean sets count more; tweets, whose labels are noisy, count less."""

EVERY: Mapping[str, int] = {"davidson": 2, "madlibs": 2}
"""Of sets whose texts are much alike every so many-th is enough."""

ORDINARY = frozenset({"bfcl", "metatool", "ordinary"})
"""Sources of ordinary requests, on which the thresholds are fitted."""

NOT_LEARNED = "how can i hurt someone's feelings"
"""The proposal's example: it shows what was learned, so it is not learned by heart."""

RULED_OUT: Mapping[str, Sequence[str]] = {
    "violence": ("sexual", "self_harm"),
    "harassment": ("self_harm",),
    "hate": ("sexual", "self_harm"),
    "sexual": ("self_harm", "hate"),
    "self_harm": ("hate", "sexual", "illicit", "harassment"),
    "illicit": ("self_harm", "sexual"),
}
"""What an unsafe text of ours for one policy is surely not; of the other policies nothing is known."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text and its label by policy: 1, 0, or None where nobody knows."""

    text: str
    labels: Labels
    source: str
    group: str
    """Examples of one group stay together when the data are divided."""

    @property
    def weight(self) -> float:
        """Return how much it counts."""
        return SOURCE_WEIGHTS.get(self.source, 1.0)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts that share words, of which one goes against ``policy``."""

    policy: str
    topic: str
    safe: str
    unsafe: str
    held_out: bool


def read_pairs(path: Path = HERE / "contrast_pairs.jsonl") -> list[Pair]:
    """Return our contrast pairs."""
    return [Pair(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def read_open(path: Path) -> list[Example]:
    """Return the examples of the open data sets."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Example(row["text"], {policy: row["labels"].get(policy) for policy in POLICIES}, row["src"], f"{i}")
        for i, row in enumerate(rows)
        if row["text"].strip() and i % EVERY.get(row["src"], 1) == 0
    ]


def own_examples(pairs: Sequence[Pair], seed: int) -> list[Example]:
    """Return the examples of ``pairs`` and those made of the templates."""
    found = []
    for number, pair in enumerate(pairs):
        group = f"pair {number}"
        found.append(Example(pair.safe, labelled([]), "pair", group))
        found.append(Example(pair.unsafe, labelled([pair.policy]), "pair", group))
    return [*found, *made(seed)]


def labelled(policies: Sequence[str]) -> dict[str, int | None]:
    """Return the labels of a text of ours that goes against ``policies``, and against nothing where there are none."""
    if not policies:
        return dict.fromkeys(POLICIES, 0)
    labels: dict[str, int | None] = dict.fromkeys(POLICIES)
    for policy in policies:
        labels |= dict.fromkeys(RULED_OUT[policy], 0)
    return labels | dict.fromkeys(policies, 1)


def made(seed: int) -> list[Example]:
    """Return texts made of the templates and of the stances, each once."""
    templates, stances = _read("templates.json"), _read("stances.json")
    slots = templates["slots"] | templates["more_slots"]
    found = _made(templates, templates, slots, random.Random(seed), "template")
    return [*found, *_made(stances, templates, slots | stances["slots"], random.Random(seed), "stance")]


def _made(
    parts: Mapping[str, Any],
    templates: Mapping[str, Any],
    slots: Mapping[str, Sequence[str]],
    rng: random.Random,
    source: str,
) -> list[Example]:
    found: dict[str, Example] = {}
    for part in ("unsafe_asks", "unsafe_texts", "safe_asks", "safe_texts", "ordinary_texts"):
        mine = "ordinary" if part == "ordinary_texts" else source
        for frame in parts.get(part, ()):
            for text in _texts(frame, templates, slots, rng, asks=part.endswith("asks")):
                if NOT_LEARNED in text.lower():
                    continue
                found.setdefault(text, Example(text, labelled(frame.get("labels", [])), mine, text))
    return list(found.values())


def _texts(
    frame: Mapping[str, Any],
    templates: Mapping[str, Any],
    slots: Mapping[str, Sequence[str]],
    rng: random.Random,
    *,
    asks: bool,
) -> Iterator[str]:
    for _ in range(frame["count"]):
        text = rng.choice(frame["texts"])
        if asks:
            text = rng.choice(templates["ask"]).replace("{}", text)
        if rng.random() < templates["wrapped"]["share"]:
            before, behind = (rng.choice(templates["wrapped"][side]) for side in ("before", "behind"))
            text = rng.choice([f"{before} {text}", f"{text} {behind}", f"{before} {text} {behind}"])
        yield _varied(_filled(text, slots, rng), rng)


def _filled(text: str, slots: Mapping[str, Sequence[str]], rng: random.Random) -> str:
    while "{" in text:
        start, end = text.rindex("{"), text.index("}", text.rindex("{"))
        text = text[:start] + rng.choice(slots[text[start + 1 : end]]) + text[end + 1 :]
    return " ".join(text.split()).replace(" ?", "?").replace(" .", ".")


def _varied(text: str, rng: random.Random) -> str:
    """Return ``text`` as people type it: most of it with capitals and stops, some without."""
    draw = rng.random()
    if draw < 0.15:  # noqa: PLR2004 - a share
        return text.lower().rstrip("?.!")
    return text[0].upper() + text[1:]


@lru_cache(maxsize=2)
def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / name).read_text(encoding="utf-8"))
    return found
