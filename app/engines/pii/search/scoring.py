"""Score findings against labelled texts: precision, recall and F1, strict, partial and by character."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.core.contracts.engines import Span

ANY = "any"
"""Findings of any label: was the text hidden at all?"""

KINDS = ("strict", "partial", "character")
"""How findings are compared: same offsets, some overlap, characters in common."""


@dataclass(slots=True)
class Tally:
    """How much was found and how much of it was right; how much was expected and how much of it was found."""

    predicted: int = 0
    right: int = 0
    there: int = 0
    covered: int = 0

    @property
    def precision(self) -> float:
        """Return the share of findings that are right; 1 if nothing was found."""
        return self.right / self.predicted if self.predicted else 1.0

    @property
    def recall(self) -> float:
        """Return the share of the expected spans that was found; 1 if nothing was expected."""
        return self.covered / self.there if self.there else 1.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def add(self, predicted: int, right: int, there: int, covered: int) -> None:
        """Add the counts of one more text."""
        self.predicted += predicted
        self.right += right
        self.there += there
        self.covered += covered


@dataclass(frozen=True, slots=True)
class Confusion:
    """One disagreement: what was expected at a place and what was found there; None stands for nothing."""

    text: int
    expected: Span | None
    predicted: Span | None

    @property
    def kind(self) -> str:
        """Return ``missed``, ``false`` or ``label``."""
        if self.predicted is None:
            return "missed"
        return "false" if self.expected is None else "label"


@dataclass(slots=True)
class Scores:
    """The tallies by label and kind, and every disagreement."""

    tallies: dict[str, dict[str, Tally]] = field(default_factory=dict)
    confusions: list[Confusion] = field(default_factory=list)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each pair (expected label, found label) occurred; an empty label stands for nothing."""

    def labels(self) -> list[str]:
        """Return the labels, the most frequent first, `ANY` last."""
        labels = [label for label in self.tallies if label != ANY]
        return [*sorted(labels, key=lambda label: (-self.tallies[label]["strict"].there, label)), ANY]


def score(expected: Sequence[Sequence[Span]], predicted: Sequence[Sequence[Span]]) -> Scores:
    """Return how ``predicted`` agrees with ``expected``, text by text; spans are sorted and free of overlaps."""
    scores = Scores()
    labels = sorted({span.label for spans in (*expected, *predicted) for span in spans})
    for label in (*labels, ANY):
        scores.tallies[label] = {kind: Tally() for kind in KINDS}
    for number, (there, seen) in enumerate(zip(expected, predicted, strict=True)):
        for label in labels:
            _tally(
                scores.tallies[label],
                [span for span in there if span.label == label],
                [span for span in seen if span.label == label],
            )
        _tally(scores.tallies[ANY], there, seen)
        for confusion in _confusions(number, there, seen):
            scores.confusions.append(confusion)
            pair = tuple(span.label if span else "" for span in (confusion.expected, confusion.predicted))
            scores.pairs[pair[0], pair[1]] += 1
    return scores


def _tally(tallies: dict[str, Tally], there: Sequence[Span], seen: Sequence[Span]) -> None:
    exact = len(_places(there) & _places(seen))
    tallies["strict"].add(len(seen), exact, len(there), exact)
    right = sum(_meets(span, there) for span in seen)
    tallies["partial"].add(len(seen), right, len(there), sum(_meets(span, seen) for span in there))
    there_at, seen_at = _characters(there), _characters(seen)
    both = len(there_at & seen_at)
    tallies["character"].add(len(seen_at), both, len(there_at), both)


def _confusions(number: int, there: Sequence[Span], seen: Sequence[Span]) -> Iterable[Confusion]:
    """Yield what was missed, found under another label, or found where nothing was expected."""
    for span in there:
        overlapping = [prediction for prediction in seen if _overlap(span, prediction)]
        if not overlapping:
            yield Confusion(number, span, None)
        elif all(prediction.label != span.label for prediction in overlapping):
            yield Confusion(number, span, overlapping[0])
    for prediction in seen:
        if not _meets(prediction, there):
            yield Confusion(number, None, prediction)


def _places(spans: Iterable[Span]) -> set[tuple[int, int]]:
    return {(span.start, span.end) for span in spans}


def _characters(spans: Iterable[Span]) -> set[int]:
    return {place for span in spans for place in range(span.start, span.end)}


def _meets(span: Span, others: Iterable[Span]) -> bool:
    return any(_overlap(span, other) for other in others)


def _overlap(span: Span, other: Span) -> bool:
    return span.start < other.end and other.start < span.end
