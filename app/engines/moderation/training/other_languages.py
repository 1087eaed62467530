"""What the classifier for other languages learns from: texts of our own templates, and open sets.

A file of ``languages`` has headings: ``[ask]`` before questions with a place for an act; ``[bad POLICY]`` and ``[ok]``
before acts; ``[bad POLICY says]`` and ``[ok says]`` before whole texts; ``[slot NAME]`` before values. In a line
``(a|b)`` stands for either and ``{NAME}`` for a value of a slot.
"""

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from app.core.contracts.moderation import POLICIES
from app.engines.moderation.training.examples import HERE, Labels, labelled
from app.engines.moderation.training.open_sets import multijail_policy

FOLDER: Final = HERE / "languages"
EACH: Final = (16, 36)
"""Texts that are made of a harmful line and of a harmless one, twins left out."""

_HEADING: Final = re.compile(r"\[(ask|bad|ok|slot)(?: (?!says\])(\w+))?( says)?\]")
_EITHER: Final = re.compile(r"\(([^()]*)\)")
_SLOT: Final = re.compile(r"\{(\w+)\}")
_SMALL: Final = 0.2
"""Share of texts that are typed without capitals and stops."""

_CATEGORIES: Final[Mapping[str, str]] = {
    "Illegal Activity": "illicit",
    "Child Abuse": "illicit",
    "Malware Viruses": "illicit",
    "Economic Harm": "illicit",
    "Fraud/Deception": "illicit",
    "Privacy Violation Activity": "illicit",
    "Hate/Harass/Violence": "harassment",
    "Physical Harm": "violence",
    "Adult Content": "sexual",
}


class Text(NamedTuple):
    """A text to learn from; those of one ``group`` are never divided between learning and judging."""

    text: str
    labels: Labels
    language: str
    source: str
    group: str


class _Line(NamedTuple):
    policy: str
    group: str
    text: str
    asked: bool
    source: str


class _Open(NamedTuple):
    """An open set: one row in ``every`` counts; ``policies`` are those of a row (none: harmless; None: left out)."""

    source: str
    file: str
    every: int
    policies: Callable[[Mapping[str, Any]], list[str] | None]
    text: str = "text"


def _tweet(row: Mapping[str, Any]) -> list[str] | None:
    kinds: Mapping[str, list[str]] = {"OTHER": [], "ABUSE": ["hate"], "INSULT": ["harassment"]}
    return kinds.get(str(row["kind"]))


def _question(row: Mapping[str, Any]) -> list[str] | None:
    policy = multijail_policy(row)
    return None if policy is None else [policy]


def _ours(policies: Callable[[Mapping[str, Any]], list[str] | None], *codes: str) -> Any:
    return lambda row: policies(row) if row["lang"] in codes else None


SETS: Final = (
    _Open("germeval18", "moderation/germeval18_de/train", 1, _tweet),
    _Open("cold", "moderation/cold_zh/train", 3, lambda row: ["hate"] if row["offensive"] else []),
    _Open("multijail", "moderation/multijail/all", 1, _ours(_question, "zh", "it")),
    _Open(
        "red_instruct",
        "moderation/red_instruct/all",
        1,
        _ours(lambda row: [_CATEGORIES[row["category"]]] if row["category"] in _CATEGORIES else None, "zh"),
    ),
    _Open("acebench", "tools/acebench/queries", 1, _ours(lambda _: [], "zh"), text="query"),
    _Open("mobie", "ner/mobie_de/train", 3, lambda _: []),
    _Open("meddocan", "ner/meddocan_es/train", 4, lambda _: []),
    _Open("europeana", "ner/europeana_hist/train", 8, lambda _: []),
)


def own_texts(language: str, seed: int, each: tuple[int, int] = EACH) -> Iterator[Text]:
    """Yield what is made of the file of ``language``; see ``EACH``."""
    asks, lines, slots = _read(FOLDER / f"{language}.txt")
    draw = random.Random(f"{seed} {language}")
    for line in lines:
        made: dict[str, None] = {}
        times = max(1, len(_SLOT.findall(line.text)))
        for _ in range(times * (each[0] if line.policy else each[1])):
            made.setdefault(_typed(_filled(line, asks, slots, draw), draw))
        labels = labelled([line.policy] if line.policy else [])
        group = f"{language} {line.group}"
        yield from (Text(text, labels, language, line.source, group) for text in made)


def open_texts(folder: Path) -> Iterator[Text]:
    """Yield what is learned from the open sets in ``folder``; a set that is missing raises OSError."""
    for one in SETS:
        with gzip.open(folder / f"{one.file}.jsonl.gz", "rt", encoding="utf-8") as rows:
            for number, line in enumerate(rows):
                row = json.loads(line)
                policies = one.policies(row) if number % one.every == 0 else None
                if policies is None or not row[one.text].strip():
                    continue
                group = f"{one.source} {row.get('group', number)}"
                yield Text(row[one.text], _labels(one.source, policies), row["lang"], one.source, group)


def _labels(source: str, policies: list[str]) -> Labels:
    """Return the labels; a comment that is not hateful may be anything else but that."""
    if policies or source != "cold":
        return labelled(policies)
    return {**dict.fromkeys(POLICIES), "hate": 0, "harassment": 0}


def _read(path: Path) -> tuple[list[str], list[_Line], Mapping[str, list[str]]]:
    asks: list[str] = []
    lines: list[_Line] = []
    slots: dict[str, list[str]] = {}
    numbers: Counter[str] = Counter()
    heading = ""
    kind, name, says = "", "", False
    for line in path.read_text(encoding="utf-8").splitlines():
        match = _HEADING.fullmatch(line)
        if match is not None:
            heading = line
            kind, name, says = match[1], match[2] or "", match[3] is not None
        elif kind == "ask":
            asks.append(line)
        elif kind == "slot":
            slots[name] = line.split("¦")
        elif line:
            numbers[heading] += 1
            lines.append(
                _Line(
                    name if kind == "bad" else "",
                    f"{heading} {numbers[heading]}",
                    line,
                    not says,
                    name if kind == "ok" and name else "own",
                )
            )
    return asks, lines, slots


def _filled(line: _Line, asks: list[str], slots: Mapping[str, list[str]], draw: random.Random) -> str:
    text = line.text
    while _EITHER.search(text):
        text = _EITHER.sub(lambda match: draw.choice(match[1].split("|")), text)
    text = _SLOT.sub(lambda match: draw.choice(slots[match[1]]), text)
    return draw.choice(asks).replace("{}", text) if line.asked else text


def _typed(text: str, draw: random.Random) -> str:
    """Return ``text`` as people type it: most of it with capitals and stops, some without."""
    text = " ".join(text.split())
    if draw.random() < _SMALL:
        return text.lower().strip("¿¡").rstrip("?.! \u3002\uff1f\uff01")
    return text[0].upper() + text[1:]
