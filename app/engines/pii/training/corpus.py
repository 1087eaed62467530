"""Everything the network learns from, in its proportions."""

from dataclasses import dataclass
from pathlib import Path

from app.engines.pii.training.examples import Example
from app.engines.pii.training.gazetteer import build_gazetteer
from app.engines.pii.training.natural import in_other_cases, natural, with_other_names
from app.engines.pii.training.negatives import library_code, library_prose, log_lines
from app.engines.pii.training.synthetic import synthetic
from app.engines.pii.words import Gazetteer

_SYNTHETIC = 40_000
_CODE_BLOCKS = 2_500
_LOG_LINES = 600


@dataclass(frozen=True, slots=True)
class Corpus:
    """Hold the training text, the texts to watch while training, and the word lists."""

    training: list[Example]
    development: dict[str, list[Example]]
    gazetteer: Gazetteer


def build_corpus(natural_file: Path, seed: int) -> Corpus:
    """Return the corpus; `natural_file` is the labelled text that README.md describes."""
    prose = library_prose()
    written = natural(natural_file, seed)
    training = [
        *synthetic(_SYNTHETIC, seed),
        *written.training,
        *with_other_names(written.training, seed + 1),
        *in_other_cases(written.training, 0.12, 0.03, seed + 2),
        *prose,
        *library_code(_CODE_BLOCKS, seed),
        *(Example(line, (), "log") for line in log_lines(_LOG_LINES, seed)),
    ]
    development = {"synthetic": synthetic(1_000, seed + 3), "natural": written.development}
    return Corpus(training, development, build_gazetteer(prose))
