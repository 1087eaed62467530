"""Everything the network learns from, in its proportions."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.engines.pii.names.words import Gazetteer
from app.engines.pii.training.examples import Example
from app.engines.pii.training.filling import written, written_held_out
from app.engines.pii.training.gazetteer import build_gazetteer
from app.engines.pii.training.natural import Natural, in_other_cases, natural, with_other_names
from app.engines.pii.training.negatives import library_code, library_prose, log_lines
from app.engines.pii.training.synthetic import synthetic
from app.engines.pii.training.taught import Lesson

SEED = 1
"""Of every draw, so that training and judging make the same texts."""

_SYNTHETIC = 22_000
_CODE_BLOCKS = 2_500
_LOG_LINES = 600
_WRITTEN_DRAWS = 3
_SLOT_COPIES = 2
_LONGEST_LESSON = 800
"""Each text of `written/` is used as often as `_WRITTEN_DRAWS`, and as often again with other names in it."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Hold the training text, the texts to watch while training, and the word lists."""

    training: list[Example]
    development: dict[str, list[Example]]
    gazetteer: Gazetteer
    lessons: Mapping[str, Lesson]


def build_corpus(natural_file: Path, seed: int, lessons: Mapping[str, Lesson]) -> Corpus:
    """Return the corpus; `natural_file` is the labelled text that README.md describes, `lessons` the teacher's."""
    prose = library_prose()
    labelled = natural(natural_file, seed)
    watched = development(labelled, seed)
    training = [
        *synthetic(_SYNTHETIC, seed),
        *labelled.training,
        *with_other_names(labelled.training, seed + 1),
        *in_other_cases(labelled.training, 0.18, 0.04, seed + 2),
        *_written(seed + 4),
        *_taught(lessons, labelled, seed + 8),
        *prose,
        *library_code(_CODE_BLOCKS, seed),
        *(Example(line, (), "log") for line in log_lines(_LOG_LINES, seed)),
    ]
    return Corpus(training, watched, build_gazetteer(prose), lessons)


def development(labelled: Natural, seed: int) -> dict[str, list[Example]]:
    """Return the texts that choices are made on, which are never trained on."""
    held_out = written_held_out(seed)
    return {
        "synthetic": synthetic(1_000, seed + 3),
        "natural": labelled.development,
        "written": [example for example in held_out if " en " in example.source],
        "written, other languages": [example for example in held_out if " en " not in example.source],
    }


def _written(seed: int) -> list[Example]:
    examples: list[Example] = []
    for draw in range(_WRITTEN_DRAWS):
        drawn = written(_SLOT_COPIES, seed + draw)
        examples += [
            *drawn,
            *with_other_names(drawn, seed + draw),
            *in_other_cases(drawn, 0.15, 0.06, seed + draw),
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
    return [*examples, *with_other_names(examples, seed), *in_other_cases(examples, 0.1, 0.03, seed)]
