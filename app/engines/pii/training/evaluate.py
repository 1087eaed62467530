"""Print precision, recall and F1 per label (strict, partial, character) of a tagger on labelled files.

python -m app.engines.pii.training.evaluate FILE.jsonl ... [--weights tagger.npz] [--threshold 0.5 | --curve]
python -m app.engines.pii.training.evaluate --development DATA_FOLDER [--weights tagger.npz] [--curve]

The second form takes the texts that choices were made on, made as the training makes them: it needs what that needs.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.engines.pii.names.tagger import LABELS, Tagger
from app.engines.pii.training.examples import Example, Span, read_examples
from app.engines.pii.training.negatives import code_and_logs

Tag = Callable[[str], list[Span]]

THRESHOLDS = tuple(step / 10 for step in range(1, 10))


@dataclass(slots=True)
class Counts:
    """Count what was found, what was right, what was there, and how much of that was found."""

    found: int = 0
    right: int = 0
    there: int = 0
    covered: int = 0

    def figures(self) -> tuple[float, float, float]:
        """Return precision, recall and F1."""
        precision = self.right / self.found if self.found else 0.0
        recall = self.covered / self.there if self.there else 0.0
        total = precision + recall
        return precision, recall, 2 * precision * recall / total if total else 0.0


def _overlap(span: Span, others: set[Span]) -> bool:
    return any(span[0] < other[1] and other[0] < span[1] for other in others)


def _measure(
    gold: Sequence[Sequence[Span]], found: Sequence[Sequence[Span]], label: str
) -> dict[str, Counts]:
    counts = {kind: Counts() for kind in ("strict", "partial", "character")}
    for expected, answered in zip(gold, found, strict=True):
        there = {span for span in expected if span[2] == label}
        seen = {span for span in answered if span[2] == label}
        exact = len(there & seen)
        there_at = {i for start, end, _ in there for i in range(start, end)}
        seen_at = {i for start, end, _ in seen for i in range(start, end)}
        both = len(there_at & seen_at)
        _add(counts["strict"], len(seen), exact, len(there), exact)
        right = sum(_overlap(span, there) for span in seen)
        covered = sum(_overlap(span, seen) for span in there)
        _add(counts["partial"], len(seen), right, len(there), covered)
        _add(counts["character"], len(seen_at), both, len(there_at), both)
    return counts


def _add(counts: Counts, found: int, right: int, there: int, covered: int) -> None:
    counts.found += found
    counts.right += right
    counts.there += there
    counts.covered += covered


def evaluate(examples: Sequence[Example], tag: Tag) -> dict[str, dict[str, Counts]]:
    """Return the counts by label and kind; where the gold text knows no addresses, an address counts as a location."""
    labels = [label for label in LABELS if any(span[2] == label for e in examples for span in e.spans)]
    found = [tag(example.text) for example in examples]
    if "ADDRESS" not in labels:
        found = [[(s, e, "LOCATION" if k == "ADDRESS" else k) for s, e, k in spans] for spans in found]
    gold = [example.spans for example in examples]
    return {label: _measure(gold, found, label) for label in labels}


def without_mentions(example: Example) -> Example:
    """Return the example without labels on `@name`, which the sources of tweets label differently."""
    kept = tuple(span for span in example.spans if not (span[0] and example.text[span[0] - 1] == "@"))
    return Example(example.text, kept, example.source)


def false_names(tag: Tag, texts: Sequence[str]) -> dict[str, float]:
    """Return findings per 1,000 words by label, for texts without any name."""
    words = sum(len(text.split()) for text in texts)
    spans = [span for text in texts for span in tag(text)]
    return {label: 1_000 * sum(span[2] == label for span in spans) / words for label in LABELS}


def _print(title: str, counts: dict[str, dict[str, Counts]]) -> None:
    for label, kinds in counts.items():
        figures = "   ".join(
            f"{kind} " + " ".join(f"{figure:.3f}" for figure in kinds[kind].figures()) for kind in kinds
        )
        print(f"{title:28s} {label:13s} {kinds['strict'].there:5d}   {figures}")


def _loaded(weights: Path | None) -> Tagger:
    if weights is None:
        return Tagger.embedded()
    with weights.open("rb") as stored:
        return Tagger(stored)


def _tag_at(tagger: Tagger, threshold: float) -> Tag:
    return lambda text: [(span.start, span.end, span.label) for span in tagger(text, threshold)]


def _print_curve(title: str, examples: Sequence[Example], tagger: Tagger) -> None:
    print(f"{title}: threshold; label precision recall F1 (partial)")
    for threshold in THRESHOLDS:
        counts = evaluate(examples, _tag_at(tagger, threshold))
        figures = "   ".join(
            f"{label} " + " ".join(f"{figure:.3f}" for figure in kinds["partial"].figures())
            for label, kinds in counts.items()
        )
        print(f"{threshold:.1f}   {figures}")


def _print_set(title: str, examples: Sequence[Example], tag: Tag) -> None:
    _print(title, evaluate(examples, tag))
    if any(without_mentions(example) != example for example in examples):
        plain = [without_mentions(example) for example in examples]
        _print(f"{title} (no @name)", evaluate(plain, _no_mentions(tag)))


def _development(folder: Path, *, together: bool) -> dict[str, list[Example]]:
    """Return the texts to choose by; those in other languages for each by itself, or English ones ``together``."""
    from app.engines.pii.training.corpus import SEED, development  # noqa: PLC0415 - Faker: only here
    from app.engines.pii.training.natural import natural  # noqa: PLC0415

    sets = development(natural(folder / "train.jsonl", SEED), SEED)
    others = sets.pop("written, other languages")
    if together:
        return {"synthetic": sets["synthetic"], "natural and written": [*sets["natural"], *sets["written"]]}
    for example in others:
        sets.setdefault(" ".join(example.source.split()[:2]), []).append(example)
    return sets


def main() -> None:
    """Measure the weights on the files given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--development", type=Path, metavar="DATA_FOLDER", help="the texts to choose by")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--threshold", type=float, default=0.5)
    parser.add_argument("--curve", action="store_true", help="figures for thresholds from 0.1 to 0.9")
    options = parser.parse_args()
    tagger = _loaded(options.weights)
    sets = {path.stem: read_examples(path) for path in options.files}
    if options.development:
        sets |= _development(options.development, together=options.curve)
    if options.curve:
        for title, examples in sets.items():
            _print_curve(title, examples, tagger)
    else:
        print("file, label, number there; precision, recall, F1")
        for title, examples in sets.items():
            _print_set(title, examples, _tag_at(tagger, options.threshold))
    for threshold in THRESHOLDS if options.curve else (options.threshold,):
        figures = false_names(_tag_at(tagger, threshold), code_and_logs())
        shown = {label: round(figure, 2) for label, figure in figures.items()}
        print(f"false per 1,000 words of code and logs at {threshold}: {shown}")


def _no_mentions(tag: Tag) -> Tag:
    def kept(text: str) -> list[Span]:
        return [span for span in tag(text) if not (span[0] and text[span[0] - 1] == "@")]

    return kept


if __name__ == "__main__":
    main()
