"""Find numbers, amounts and dates of an answer that the sources neither have nor imply."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from app.core.contracts.grounding import AnswerFinding, SourcePlace
from app.engines.grounding.quantities import Quantity, is_year, quantities_in
from app.engines.grounding.stemming import stem

_LIST_MARK: Final = re.compile(
    r"[ \t>*-]{0,12}(?:step|part|option|section|chapter|figure|table|no\.?)?\s?$", re.IGNORECASE
)
_SMALL: Final = 10
_COMPUTED_FROM: Final = 24
_DERIVED: Final = 10
_NEAR: Final = 1e-9


class KnownQuantities:
    """The quantities of the sources by kind, sorted, so that a look-up takes logarithmic time."""

    def __init__(self, placed: Sequence[tuple[Quantity, SourcePlace]]) -> None:
        self._by_kind: dict[str, list[float]] = defaultdict(list)
        self._by_noun: dict[str, SourcePlace] = {}
        for quantity, place in placed:
            self._by_kind[quantity.kind] += quantity.values
            if quantity.kind and quantity.plain is not None:
                self._by_kind["plain"].append(quantity.plain)
            if quantity.kind == "date":
                continue
            name = stem(quantity.noun) if quantity.noun else quantity.kind
            if name:
                self._by_noun.setdefault(name, place)
        for values in self._by_kind.values():
            values.sort()
        self._computed = {
            kind: sorted(values) for kind, values in _results([quantity for quantity, _ in placed]).items()
        }

    def has(self, quantity: Quantity) -> bool:
        """Return whether the sources have this quantity, or one that rounds to it."""
        margin = 0.0 if quantity.kind == "date" or is_year(quantity) else quantity.step / 2
        kinds = [(quantity.kind, quantity.values, margin)]
        if quantity.kind and quantity.plain is not None:
            plain_margin = margin * abs(quantity.plain / quantity.values[0]) if quantity.values[0] else margin
            kinds.append(("", (quantity.plain,), plain_margin))
        if quantity.kind == "share":
            kinds.append(("", quantity.values, margin))
        if not quantity.kind:
            kinds.append(("plain", quantity.values, margin))
            kinds.append(("share", quantity.values, margin))
        return any(
            _within(self._by_kind.get(kind, ()), value, slack)
            for kind, values, slack in kinds
            for value in values
        )

    def computes(self, quantity: Quantity, derived: Sequence[Quantity]) -> bool:
        """Return whether it follows from two quantities of the sources, or from one and one ``derived`` earlier."""
        value, margin = quantity.values[0], quantity.step / 2
        if quantity.kind == "date":
            return False
        same_kind = self._by_kind.get(quantity.kind, ())
        return _within(self._computed.get(quantity.kind, ()), value, margin) or any(
            _within(same_kind, wanted, margin)
            for other in derived[-_DERIVED:]
            if other.kind == quantity.kind
            for wanted in (value - other.values[0], other.values[0] - value, value + other.values[0])
        )

    def like(self, quantity: Quantity) -> SourcePlace | None:
        """Return the place where the sources count the same thing or, failing that, use the same unit."""
        return self._by_noun.get(stem(quantity.noun) if quantity.noun else quantity.kind)


def _results(quantities: Sequence[Quantity]) -> dict[str, list[float]]:
    """Return the results of the four operations on each pair, by kind: euros times a number are euros."""
    results: dict[str, list[float]] = defaultdict(list)
    some = [quantity for quantity in quantities if quantity.kind != "date" and not quantity.spelled][
        -_COMPUTED_FROM:
    ]
    for index, quantity in enumerate(some):
        for other in some[:index]:
            mine, theirs = quantity.values[0], other.values[0]
            if quantity.kind == other.kind:
                results[quantity.kind] += (mine + theirs, abs(mine - theirs))
                ratios = [mine / theirs, theirs / mine] if mine and theirs else []
                results[""] += ratios
                results["share"] += ratios
            if not (quantity.kind and other.kind):
                results[quantity.kind or other.kind].append(mine * theirs)
    for kind in {quantity.kind for quantity in some}:
        results[kind].append(sum(quantity.values[0] for quantity in some if quantity.kind == kind))
    return results


def _within(values: Sequence[float], wanted: float, margin: float) -> bool:
    margin += abs(wanted) * _NEAR
    index = bisect_left(values, wanted - margin)
    return index < len(values) and values[index] <= wanted + margin


def check_numbers(prose: str, source_quantities: KnownQuantities) -> Iterator[AnswerFinding]:
    """Yield a finding for each quantity that the sources do not have, even where it follows from others."""
    derived: list[Quantity] = []
    for quantity in sorted(quantities_in(prose), key=lambda quantity: quantity.start):
        if quantity.spelled or _is_mark(prose, quantity) or source_quantities.has(quantity):
            continue
        computed = source_quantities.computes(quantity, derived)
        if computed:
            derived.append(quantity)
        yield _finding(quantity, source_quantities, computed=computed)


def _is_mark(text: str, quantity: Quantity) -> bool:
    """Return whether a number only counts the items of a list."""
    line = text[max(0, quantity.start - 24) : quantity.start].rpartition("\n")[2]
    behind = text[quantity.end : quantity.end + 1]
    return quantity.step == 1.0 and not quantity.kind and bool(_LIST_MARK.fullmatch(line)) and behind in ".):"


def _finding(quantity: Quantity, source_quantities: KnownQuantities, *, computed: bool) -> AnswerFinding:
    span = ("number", quantity.start, quantity.end)
    like = source_quantities.like(quantity)
    if computed:
        return AnswerFinding(
            *span, "low", 0.2, "This number is not in the context, but follows from others.", like
        )
    if like is not None and quantity.noun:
        return AnswerFinding(*span, "high", 0.75, "The context has another number for this.", like)
    if not quantity.kind and quantity.step == 1.0 and abs(quantity.values[0]) <= _SMALL:
        return AnswerFinding(*span, "low", 0.25, "This number is not in the context.")
    what = "date" if quantity.kind == "date" else "number"
    return AnswerFinding(*span, "medium", 0.6, f"This {what} is not in the context.", like)
