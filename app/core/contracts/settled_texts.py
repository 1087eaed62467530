"""Texts of a conversation whose redacted forms stand already: only read beside new ones, since names carry over."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.core.content.leaves import Leaf
from app.core.contracts.engines import Span

Findings = tuple[Span, ...]


class SettledTextsChangedError(Exception):
    """What is found in settled texts is not what it was when they were; ``numbers`` are theirs."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__("findings in settled texts have changed")
        self.numbers = numbers


@dataclass(slots=True)
class SettledTexts:
    """Settled texts with what was found in each, beside a context of new items.

    ``gaps`` are the numbers of items of the context that follow a settled one. A middleware notes in ``of_new`` what it
    found in new texts that stand alone, by path in the context, and in ``counts`` its findings by item and label.
    """

    texts: Sequence[str] = ()
    findings: Sequence[Findings] = ()
    gaps: frozenset[int] = frozenset()
    of_new: dict[tuple[str | int, ...], Findings] = field(default_factory=dict)
    counts: dict[int, Counter[str]] = field(default_factory=dict)

    def beside(self, runs: Iterable[Sequence[int]], leaves: Sequence[Leaf]) -> list[list[int]]:
        """Return runs of positions of ``leaves``, parted where settled texts stand, as positions behind these."""
        begin = len(self.texts)
        parted: list[list[int]] = []
        for run in runs:
            open_run: list[int] = []
            for place in run:
                if open_run and self._is_gap(leaves[open_run[-1] - begin], leaves[place]):
                    parted.append(open_run)
                    open_run = []
                open_run.append(begin + place)
            parted.append(open_run)
        return [run for run in parted if len(run) > 1]

    def new(self, spans: Sequence[list[Span]]) -> Sequence[list[Span]]:
        """Return the findings behind those of the settled texts; raise SettledTextsChangedError if these differ."""
        pairs = zip(self.findings, spans, strict=False)
        changed = [number for number, (before, now) in enumerate(pairs) if before != tuple(now)]
        if changed:
            raise SettledTextsChangedError(changed)
        return spans[len(self.texts) :]

    def count(self, counts: Mapping[tuple[int, str], int]) -> None:
        """Add findings by item and label."""
        for (item, label), number in counts.items():
            self.counts.setdefault(item, Counter())[label] += number

    def _is_gap(self, left: Leaf, right: Leaf) -> bool:
        first, last = int(left.value.path[0]), int(right.value.path[0])
        return any(number in self.gaps for number in range(first + 1, last + 1))
