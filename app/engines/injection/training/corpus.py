"""What the classifier learns from: open sets from a folder, and texts of our own that lie beside this file."""

import gzip
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from app.engines.injection.training.frames import made_up
from app.engines.injection.training.grammar import (
    BROAD,
    BROAD_COUNTS,
    CONTRAST_COUNTS,
    CONTRASTS,
    COUNTS,
    GRAMMAR,
    KEPT,
    KEPT_COUNTS,
    WIDER,
    WIDER_COUNTS,
    drawn,
)

TEXTS: Final = Path(__file__).parent / "texts"
OWN_ATTACKS: Final = "attacks.txt"
OWN_HARMLESS: Final = "harmless.txt"
ORDINARY: Final = frozenset({"bfcl", "metatool"})
INSTRUCTIONS: Final = (
    ("self-instruct", "injection/benign_self_instruct/all"),
    ("fastchat", "injection/benign_fastchat/all"),
)
"""People's own instructions to a model; every other row only judges."""
TOOL_REQUESTS: Final = (
    *("workbench", "tooltalk", "tau_retail", "toolalpaca_eval", "bfcl_multi_turn", "nestful", "restbench"),
    *("api_bank", "acebench"),
)
GRAMMARS: Final[Mapping[str, tuple[Path, Mapping[str, int]]]] = {
    "grammar": (GRAMMAR, COUNTS),
    "contrast": (CONTRASTS, CONTRAST_COUNTS),
    "wider": (WIDER, WIDER_COUNTS),
    "broad": (BROAD, BROAD_COUNTS),
}
_SEED: Final = 20261121
_SPLIT_SEED: Final = 7


@dataclass(frozen=True, slots=True)
class Example:
    """One text, whether it is an attack, the set it is from, and the frame, if it was drawn from one."""

    text: str
    attack: bool
    source: str
    frame: str = ""


def own(name: str) -> list[str]:
    r"""Return the texts of one file of ours: one a line, line breaks written as \n; ``# `` begins a comment."""
    lines = (TEXTS / name).read_text(encoding="utf-8").splitlines()
    return [line.replace("\\n", "\n") for line in lines if line and not line.startswith("# ")]


def halves(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the half that is learned from and the half that only judges, by a fixed draw."""
    order = list(texts)
    random.Random(_SPLIT_SEED).shuffle(order)
    middle = (len(order) + 1) // 2
    return order[:middle], order[middle:]


def read_jsonl(path: Path) -> list[dict[str, object]]:
    """Return the rows of a file with one JSON object a line."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def injections(folder: Path) -> Iterator[Example]:
    """Yield the open set of attacks and of what is none."""
    for row in read_jsonl(folder / "injection" / "train.jsonl"):
        yield Example(str(row["text"]), bool(row["injection"]), str(row["src"]))


def read_packed(path: Path) -> list[dict[str, object]]:
    """Return the rows of a packed file with one JSON object a line."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def instructions(folder: Path) -> Iterator[Example]:
    """Yield every other instruction of the open sets, and every other request to tools; none is an attack."""
    for source, name in INSTRUCTIONS:
        for row in read_packed(folder / f"{name}.jsonl.gz")[::2]:
            yield Example(str(row["text"]), attack=False, source=source)
    for name in TOOL_REQUESTS:
        for row in read_packed(folder / "tools" / name / "queries.jsonl.gz")[::2]:
            yield Example(str(row["query"]), attack=False, source="tools")


def requests(folder: Path, toxic: int = 600) -> Iterator[Example]:
    """Yield ordinary requests, and a sample of rude or harmful texts: harm is no injection."""
    rows = read_jsonl(folder / "moderation" / "train.jsonl")
    for row in rows:
        if row["src"] in ORDINARY:
            yield Example(str(row["text"]), attack=False, source=str(row["src"]))
    rest = [row for row in rows if row["src"] not in ORDINARY]
    for row in random.Random(_SEED).sample(rest, min(toxic, len(rest))):
        yield Example(str(row["text"]), attack=False, source="toxic")


def reference(pages: int = 400) -> Iterator[Example]:
    """Yield prose about code: the documentation of Python's standard library, which every Python has with it."""
    texts = []
    for module in sorted(sys.stdlib_module_names):
        if module.startswith("_") or module in {"antigravity", "this", "idlelib"}:
            continue
        spec = find_spec(module)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            continue
        texts.append(Path(spec.origin).read_text(encoding="utf-8", errors="replace")[:2000])
    for text in random.Random(_SEED).sample(texts, min(pages, len(texts))):
        yield Example(text, attack=False, source="reference")


def training_set(folder: Path) -> list[Example]:
    """Return everything that is learned from."""
    examples = [*injections(folder), *requests(folder), *reference(), *instructions(folder / "open")]
    examples += [Example(text, attack, "made up") for text, attack in made_up()]
    for source, (grammar, counts) in GRAMMARS.items():
        examples += [Example(one.text, one.attack, source, one.frame) for one in drawn(grammar, counts)]
    examples += [Example(text, attack=True, source="own") for text in halves(own(OWN_ATTACKS))[0]]
    examples += [Example(text, attack=False, source="own") for text in halves(own(OWN_HARMLESS))[0]]
    return examples


def kept_examples() -> list[Example]:
    """Return texts of frames and words that nothing is learned from: the threshold is chosen on them."""
    return [Example(one.text, one.attack, "kept", one.frame) for one in drawn(KEPT, KEPT_COUNTS)]
