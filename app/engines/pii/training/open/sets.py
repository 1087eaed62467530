"""The open sets of names whose licences allow training: which, how much of each, and what their labels leave out.

The folder holds one folder a set with `train.jsonl.gz` (and `dev.jsonl.gz`): one JSON object a line with its `text` and
`spans`.
Sets under share-alike licences judge only; none stands in the table below.
"""

import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.engines.pii.training.examples import UNKNOWN, Example, Span

_LONGEST: Final = 700
_PLAIN: Final = re.compile(r"(?<=\w )[^\W\d_A-Z]\w+")
_CAPITALIZED: Final = re.compile(r"(?<=\w[ ,])[ ]?([^\W\d_a-z]\w+)")


@dataclass(frozen=True, slots=True)
class OpenSet:
    """Name a set: its folder, the files that are learned from, and the most texts that are taken of it.

    ``people_alone``: only people are labelled, so other words with a capital teach nothing.
    ``offices``: titles and offices are labelled as people; words that the set also spells in small letters are taken
    off the labels.
    """

    folder: str
    files: tuple[str, ...]
    most: int
    people_alone: bool = False
    offices: bool = False


SETS: Final = (
    OpenSet("swedish_klintan", ("train",), 6_000),
    OpenSet("norne", ("train",), 9_000),
    OpenSet("ronec_ro", ("dev",), 1_400, offices=True),
    OpenSet("indonlu_nergrit", ("train",), 1_700),
    OpenSet("indonlu_nerp", ("train",), 3_000),
    OpenSet("estner_et", ("train",), 2_100),
    OpenSet("mobie_de", ("train",), 2_500),
    OpenSet("germeval14_de", ("dev",), 2_200),
    OpenSet("meddocan_es", ("train",), 2_000),
    OpenSet("galician_gl", ("train",), 4_000),
    OpenSet("legal_india_en", ("train",), 1_000),
    OpenSet("factrueval_ru", ("train",), 700),
    OpenSet("kaznerd_kk", ("train",), 2_000),
    OpenSet("restaurants8k_en", ("train",), 4_000, people_alone=True),
)
"""CC0: norne (its labels). CC BY 4.0: klintan, EstNER, MobIE, GermEval 2014, MEDDOCAN, SLI Galician, KazNERD,
restaurants8k. MIT: RONEC, factRuEval. Apache-2.0: IndoNLU, legal_NER."""


def open_examples(folder: Path, seed: int) -> list[Example]:
    """Return the texts of all sets below ``folder``; raise FileNotFoundError where one is missing."""
    chance = random.Random(seed)
    examples: list[Example] = []
    for chosen in SETS:
        paths = [folder / chosen.folder / f"{file}.jsonl.gz" for file in chosen.files]
        texts = [text for path in paths for text in read_open(path) if len(text.text) <= _LONGEST]
        texts = without_offices(texts) if chosen.offices else texts
        taken = chance.sample(texts, min(chosen.most, len(texts)))
        examples += [_without_others(text) for text in taken] if chosen.people_alone else taken
    return examples


def read_open(path: Path) -> list[Example]:
    """Return the examples of one compressed file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Example(row["text"], _spans(row["spans"]), f"open {row['lang']}") for row in rows]


def _spans(stored: Sequence[Sequence[int | str]]) -> tuple[Span, ...]:
    return tuple(sorted((int(start), int(end), str(label)) for start, end, label in stored))


def without_offices(examples: list[Example]) -> list[Example]:
    """Return the examples with people who begin with no word that other texts spell in small letters."""
    plain = {word for example in examples for word in _PLAIN.findall(example.text)}
    return [Example(example.text, tuple(_names_of(example, plain)), example.source) for example in examples]


def _names_of(example: Example, plain: set[str]) -> Iterator[Span]:
    for start, end, label in example.spans:
        words = [word.span() for word in re.finditer(r"\S+", example.text[start:end])]
        while label == "PERSON" and words and example.text[start:end][slice(*words[0])].lower() in plain:
            words.pop(0)
        if words:
            yield start + words[0][0] if label == "PERSON" else start, end, label


def _without_others(example: Example) -> Example:
    """Return the example with words that may be names of another kind marked as unknown."""
    others = [
        (match.start(1), match.end(1), UNKNOWN)
        for match in _CAPITALIZED.finditer(example.text)
        if not any(start < match.end(1) and match.start(1) < end for start, end, _ in example.spans)
    ]
    return Example(example.text, tuple(sorted((*example.spans, *others))), example.source)
