"""How well and how fast the two name taggers find: on open sets where their folder is given, and on code and logs."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from app.engines.pii.training.evaluate import Counts, code_and_logs, evaluate, false_names
from app.engines.pii.training.examples import Example, Span, read_examples
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import SMOKE, Sizes

FOLDER = "SLUICE_TEST_NER_DATA"

_THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_KB = 1_024
_MESSAGE = 4 * _KB
_PROSE = (
    "On Monday Priya Raghunathan called from Leeds to say that the shipment for Calder & Sons had left Rotterdam. "
    "The second pallet, the one with the broken seal, stays in the warehouse until somebody from customs has seen "
    "it. Could you ask Tom whether his team still needs the parts this week, or whether they can wait until the "
    "container from Valencia is unloaded? I would rather not pay for another night. Regards, Ines Falk\n"
)

Tagger = Callable[..., Sequence[Any]]


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the figures of both taggers: quality by label and threshold where there are texts, speed, false names."""
    taggers = _taggers()
    given = os.environ.get(FOLDER)
    if given:
        files = sorted(Path(given).glob("test_*.jsonl"))
        sets = {path.stem: read_examples(path)[: 20 if sizes is SMOKE else None] for path in files}
        yield _quality(taggers, sets)
        yield _curve(taggers, sets)
    yield _speed(taggers, sizes)


def _taggers() -> dict[str, Tagger]:
    from app.engines.pii.names.tagger import Tagger as Fast
    from app.engines.pii.transformer.model import TransformerTagger

    return {"fast": Fast.embedded(), "accurate": TransformerTagger.embedded()}


def _spans(tagger: Tagger, threshold: float) -> Callable[[str], list[Span]]:
    return lambda text: [(span.start, span.end, span.label) for span in tagger(text, threshold)]


def _quality(taggers: dict[str, Tagger], sets: dict[str, list[Example]]) -> str:
    rows = []
    for name, examples in sets.items():
        for kind, tagger in taggers.items():
            for label, counts in evaluate(examples, _spans(tagger, 0.5)).items():
                rows.append((name, kind, label, counts["strict"].there, *map(_figures, counts.values())))
    return table(
        "Name taggers on open test sets",
        ("set", "tagger", "label", "there", "strict P R F1", "partial P R F1", "character P R F1"),
        rows,
        "Precision, recall and F1 at threshold 0.5. Test parts, never trained on; tweets, which are harder than the "
        "mail and chat that the service sees.",
    )


def _figures(counts: Counts) -> str:
    return " ".join(f"{figure:.3f}" for figure in counts.figures())


def _curve(taggers: dict[str, Tagger], sets: dict[str, list[Example]]) -> str:
    rows = [
        (
            name,
            kind,
            *(_figures(evaluate(examples, _spans(tagger, one))["PERSON"]["partial"]) for one in _THRESHOLDS),
        )
        for name, examples in sets.items()
        for kind, tagger in taggers.items()
    ]
    return table(
        "People by threshold, partial matches",
        ("set", "tagger", *map(str, _THRESHOLDS)),
        rows,
        "Precision, recall and F1. standard asks for 0.5 or more, strict for less.",
    )


def _speed(taggers: dict[str, Tagger], sizes: Sizes) -> str:
    messages = [_message(number) for number in range(5 if sizes is SMOKE else 60)]
    negatives = code_and_logs()[:: 60 if sizes is SMOKE else 1]
    rows = []
    for kind, tagger in taggers.items():
        tagger(messages[0])
        walls, began = [], time.process_time()
        for message in messages:
            start = time.perf_counter()
            tagger(message)
            walls.append(1_000 * (time.perf_counter() - start))
        each = 1_000 * (time.process_time() - began) / sum(map(len, messages)) * _KB
        wrong = sum(false_names(_spans(tagger, 0.5), negatives).values())
        people = false_names(_spans(tagger, 0.5), negatives)["PERSON"]
        rows.append((kind, each, percentile(walls, 0.5), percentile(walls, 0.95), people, wrong))
    return table(
        "Name taggers: speed, and false names in code and logs",
        (
            "tagger",
            "CPU ms a KB",
            "p50 ms, 4 KB",
            "p95 ms, 4 KB",
            "false people a 1,000 words",
            "of any label",
        ),
        rows,
        "Prose, one thread; each message is new, its words mostly not. Code is of modules never trained on.",
    )


def _message(number: int) -> str:
    """Return 4 KB of prose that no other number gives."""
    return (f"No. {number}\n" + _PROSE * (_MESSAGE // len(_PROSE) + 1))[:_MESSAGE]
