"""What the accurate tagger learns from: the fast tagger's corpus, less of what is made up."""

import random
from dataclasses import dataclass
from pathlib import Path

from app.engines.pii.training.examples import Example
from app.engines.pii.training.filling import written
from app.engines.pii.training.gazetteer import build_gazetteer
from app.engines.pii.training.natural import natural, with_other_names
from app.engines.pii.training.negatives import library_code, library_prose, log_lines
from app.engines.pii.training.synthetic import synthetic

_SYNTHETIC = 5_000
_RENAMED = 4_000
_COPIES = 4
_PROSE = 1_500
_CODE_BLOCKS = 400
_LOG_LINES = 150


@dataclass(frozen=True, slots=True)
class Corpus:
    """Hold the training text, the texts to watch while training, and the word lists."""

    training: list[Example]
    development: dict[str, list[Example]]
    lists: dict[int, int]


def build(natural_file: Path, seed: int) -> Corpus:
    """Return the corpus; the same seed keeps the same natural texts for development as the fast tagger's."""
    chance = random.Random(seed)
    prose = library_prose()
    people_wrote = natural(natural_file, seed)
    renamed = with_other_names(people_wrote.training, seed + 1)
    training = [
        *synthetic(_SYNTHETIC, seed),
        *people_wrote.training,
        *written(_COPIES, seed),
        *chance.sample(renamed, _RENAMED),
        *chance.sample(prose, min(_PROSE, len(prose))),
        *library_code(_CODE_BLOCKS, seed),
        *(Example(line, (), "log") for line in log_lines(_LOG_LINES, seed)),
    ]
    development = {"synthetic": synthetic(1_000, seed + 3), "natural": people_wrote.development}
    return Corpus(training, development, dict(build_gazetteer(prose).bits))
