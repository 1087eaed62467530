"""How well the name tagger finds, on open sets, where their folder is given."""

import os
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import SMOKE, Sizes

FOLDER = "SLUICE_TEST_NER_DATA"


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the table of precision, recall and F1, or nothing where there are no texts."""
    given = os.environ.get(FOLDER)
    if not given:
        return
    from app.engines.pii.tagger import Tagger
    from app.engines.pii.training.evaluate import evaluate
    from app.engines.pii.training.examples import read_examples

    tagger = Tagger.embedded()
    rows = []
    for path in sorted(Path(given).glob("test_*.jsonl")):
        examples = read_examples(path)[: 20 if sizes is SMOKE else None]
        counts = evaluate(examples, lambda text: [(s.start, s.end, s.label) for s in tagger(text, 0.5)])
        rows += [(path.stem, label, *kinds["strict"].figures()) for label, kinds in counts.items()]
    yield table(
        "Name tagger on open test sets, whole names exactly",
        ("set", "label", "precision", "recall", "F1"),
        rows,
        "Test parts, never trained on; tweets, which are harder than the mail and chat that the service sees.",
    )
