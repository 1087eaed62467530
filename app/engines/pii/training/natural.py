"""The labelled texts that people wrote: a part for development, copies with other names, copies in other cases.

What the accurate tagger says of a text goes with its copies: it reads the text as written better than the copy.
"""

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from app.engines.pii.training.examples import Example, Piece, Span, read_examples
from app.engines.pii.training.lists import happens
from app.engines.pii.training.synthetic import Generator

_DEVELOPMENT = 800
_KEPT = 0.25
_SHORTEST_CAPITALS = 5
_PUNCTUATION = frozenset(".,;:!?")


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
        keep = mention or generator.chance.random() < _KEPT
        new = old if keep else _replacement(old, label, generator)
        spans.append((len(text), len(text) + len(new), label))
        text += new
        position = end
    taught = None if example.taught is None else _moved(example.taught, sorted(example.spans), spans)
    return Example(text + example.text[position:], tuple(spans), f"{example.source} renamed", taught)


def _moved(pieces: Sequence[Piece], old: Sequence[Span], new: Sequence[Span]) -> tuple[Piece, ...]:
    """Return the pieces where they are in the copy; all of a new name is as the pieces of the old one on average."""
    moved: list[Piece] = []
    inside: list[list[tuple[float, ...]]] = [[] for _ in old]
    for start, end, chances in pieces:
        behind = bisect_right(old, start, key=itemgetter(0)) - 1
        if behind >= 0 and start < old[behind][1]:
            inside[behind].append(chances)
            continue
        shift = new[behind][1] - old[behind][1] if behind >= 0 else 0
        moved.append((start + shift, end + shift, chances))
    for (start, end, _), said in zip(new, inside, strict=True):
        if said:
            moved.append((start, end, tuple(sum(chance) / len(said) for chance in zip(*said, strict=True))))
    return tuple(sorted(moved))


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


def in_other_cases(
    examples: Sequence[Example], lower: float, upper: float, plain: float, seed: int
) -> list[Example]:
    """Return copies of a share of the texts in small letters, of another in capitals, of a third also unpunctuated."""
    chance = random.Random(seed)
    copies = []
    for example in examples:
        draw = chance.random()
        if draw < lower:
            copies.append(example.recased(str.lower))
        elif draw < lower + upper:
            copies.append(example.recased(str.upper))
        elif draw < lower + upper + plain:
            copies.append(example.recased(_hasty))
    return copies


def _hasty(character: str) -> str:
    """Return a character as people write in a hurry; a blank in place of punctuation, so that offsets hold."""
    return " " if character in _PUNCTUATION else character.lower()
