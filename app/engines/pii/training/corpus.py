"""Everything the network learns from, in its proportions."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from app.engines.pii.names.words import Gazetteer
from app.engines.pii.training.examples import Example
from app.engines.pii.training.filling import frames, written, written_held_out
from app.engines.pii.training.gazetteer import build_gazetteer
from app.engines.pii.training.natural import Natural, in_other_cases, natural, with_other_names
from app.engines.pii.training.negatives import library_code, library_prose, log_lines
from app.engines.pii.training.open.interfaces import interface_texts
from app.engines.pii.training.open.names import single_words, world, world_names
from app.engines.pii.training.open.sets import open_examples
from app.engines.pii.training.synthetic import synthetic
from app.engines.pii.training.taught import Lesson

Text = TypeVar("Text")

SEED = 1
"""Of every draw, so that training and judging make the same texts."""

_SYNTHETIC = 22_000
_CODE_BLOCKS = 2_500
_LOG_LINES = 600
_WRITTEN_DRAWS = 4
_SLOT_COPIES = 2
_LONGEST_LESSON = 800
_OPEN_RENAMED = 0.4
_MESSAGES = 500
_FRAME_COPIES = 40
"""Each text of `written/` is used as often as `_WRITTEN_DRAWS`, and as often again with other names in it."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Hold the training text, the texts to watch while training, and the word lists."""

    training: list[Example]
    development: dict[str, list[Example]]
    gazetteer: Gazetteer
    lessons: Mapping[str, Lesson]


def build_corpus(
    natural_file: Path, open_folder: Path, seed: int, lessons: Mapping[str, Lesson], share: float = 1.0
) -> Corpus:
    """Return the corpus; `lessons` are the teacher's, README.md describes `natural_file` and `open_folder`.

    `share` of each part is taken, by chance, for a short training of weights that have learned from the whole.
    """
    prose = library_prose()
    labelled = natural(natural_file, seed)
    watched = development(labelled, seed)
    part = Part(random.Random(seed), share)
    open_texts = open_examples(open_folder, seed + 9)
    messages = interface_texts(_MESSAGES, seed + 9)
    some = part.of(labelled.training)
    training = [
        *synthetic(int(_SYNTHETIC * share), seed),
        *some,
        *with_other_names(some, seed + 1),
        *in_other_cases(some, 0.35, 0.12, seed + 2),
        *_written(seed + 4, max(1, round(_WRITTEN_DRAWS * share))),
        *_taught({text: lessons[text] for text in part.of(list(lessons))}, labelled, seed + 8),
        *_of_other_languages(part.of(open_texts), seed + 9),
        *_framed(open_folder, int(_FRAME_COPIES * share), seed + 10),
        *part.of(messages),
        *part.of(prose),
        *library_code(int(_CODE_BLOCKS * share), seed),
        *(Example(line, (), "log") for line in log_lines(int(_LOG_LINES * share), seed)),
    ]
    names = (*world_names(open_folder), single_words(world(open_folder).towns))
    lists = build_gazetteer(prose, names, [*open_texts, *messages])
    return Corpus(training, watched, lists, lessons)


@dataclass(frozen=True, slots=True)
class Part:
    """Take a share of texts by chance."""

    chance: random.Random
    share: float

    def of(self, texts: list[Text]) -> list[Text]:
        """Return the share, in any order; all of them, in their own, where it is 1."""
        return texts if self.share >= 1 else self.chance.sample(texts, int(len(texts) * self.share))


def _of_other_languages(examples: list[Example], seed: int) -> list[Example]:
    """Return labelled texts of many languages, a share of them also with other names."""
    renamed = random.Random(seed).sample(examples, int(len(examples) * _OPEN_RENAMED))
    return [
        *examples,
        *with_other_names(renamed, seed),
        *in_other_cases(examples, 0.04, 0.02, seed),
    ]


def _framed(open_folder: Path, copies: int, seed: int) -> list[Example]:
    """Return sentences of our own with names of the whole world, a few of them in other cases."""
    examples = frames(copies, world(open_folder), seed)
    return [*examples, *in_other_cases(examples, 0.06, 0.03, seed)]


def development(labelled: Natural, seed: int) -> dict[str, list[Example]]:
    """Return the texts that choices are made on, which are never trained on."""
    held_out = written_held_out(seed)
    return {
        "synthetic": synthetic(1_000, seed + 3),
        "natural": labelled.development,
        "written": [example for example in held_out if " en " in example.source],
        "written, other languages": [example for example in held_out if " en " not in example.source],
    }


def _written(seed: int, draws: int) -> list[Example]:
    examples: list[Example] = []
    for draw in range(draws):
        drawn = written(_SLOT_COPIES, seed + draw)
        examples += [
            *drawn,
            *with_other_names(drawn, seed + draw),
            *in_other_cases(drawn, 0.5, 0.25, seed + draw),
        ]
    return examples


def _taught(lessons: Mapping[str, Lesson], labelled: Natural, seed: int) -> list[Example]:
    """Return the texts whose labels are the teacher's alone; also with other names, and in other cases."""
    known = {example.text for part in (labelled.training, labelled.development) for example in part}
    examples = [
        lesson.example
        for text, lesson in lessons.items()
        if text not in known and len(text) <= _LONGEST_LESSON
    ]
    return [*examples, *with_other_names(examples, seed), *in_other_cases(examples, 0.25, 0.1, seed)]
