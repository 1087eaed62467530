"""The labelled texts that people wrote: a part for development, copies with other names, copies in other cases."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.engines.pii.training.examples import UNKNOWN, Example, Span, read_examples
from app.engines.pii.training.lists import happens
from app.engines.pii.training.synthetic import Generator

_DEVELOPMENT = 800
_KEPT = 0.25
_SHORTEST_CAPITALS = 5


@dataclass(frozen=True, slots=True)
class Natural:
    """Hold the two parts of the natural texts."""

    training: list[Example]
    development: list[Example]


def natural(path: Path, seed: int) -> Natural:
    """Return the texts of the file, split by chance."""
    examples = read_examples(path)
    random.Random(seed).shuffle(examples)
    return Natural(examples[_DEVELOPMENT:], examples[:_DEVELOPMENT])


def with_other_names(examples: Sequence[Example], seed: int) -> list[Example]:
    """Return the texts that name anything, most names replaced by made-up ones of the same kind and case."""
    generator = Generator(random.Random(seed))
    return [_renamed(example, generator) for example in examples if example.spans]


def _renamed(example: Example, generator: Generator) -> Example:
    text = ""
    spans: list[Span] = []
    position = 0
    for start, end, label in sorted(example.spans):
        text += example.text[position:start]
        old = example.text[start:end]
        mention = start > 0 and example.text[start - 1] == "@"
        keep = mention or label == UNKNOWN or generator.chance.random() < _KEPT
        new = old if keep else _replacement(old, label, generator)
        spans.append((len(text), len(text) + len(new), label))
        text += new
        position = end
    return Example(text + example.text[position:], tuple(spans), f"{example.source} renamed")


def _replacement(old: str, label: str, generator: Generator) -> str:
    if label == "PERSON":
        people = generator.people
        single = people.first if happens(generator.chance, 0.6) else people.last
        new = people.full() if " " in old else single()
    elif label == "LOCATION":
        new = generator.places.place()
    else:
        new = generator.organizations.any()
    if old.islower():
        return new.lower()
    return new.upper() if old.isupper() and len(old) >= _SHORTEST_CAPITALS else new


def in_other_cases(examples: Sequence[Example], lower: float, upper: float, seed: int) -> list[Example]:
    """Return copies of a share of the texts in small letters, and of another in capitals."""
    chance = random.Random(seed)
    copies = []
    for example in examples:
        draw = chance.random()
        if draw < lower:
            copies.append(example.recased(str.lower))
        elif draw < lower + upper:
            copies.append(example.recased(str.upper))
    return copies
