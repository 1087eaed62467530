"""Numbers, amounts and dates of an answer that the sources neither have nor allow to be computed."""

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
    """The quantities of the sources by kind, sorted, so that one is looked up in the logarithm of their number."""

    def __init__(self, given: Sequence[tuple[Quantity, SourcePlace]]) -> None:
        self._by_kind: dict[str, list[float]] = defaultdict(list)
        self._by_noun: dict[str, SourcePlace] = {}
        for one, place in given:
            self._by_kind[one.kind] += one.values
            if one.kind and one.plain is not None:
                self._by_kind["plain"].append(one.plain)
            if one.kind == "date":
                continue
            name = stem(one.noun) if one.noun else one.kind
            if name:
                self._by_noun.setdefault(name, place)
        for values in self._by_kind.values():
            values.sort()
        self._computed = {
            kind: sorted(values) for kind, values in _results([one for one, _ in given]).items()
        }

    def has(self, one: Quantity) -> bool:
        """Tell whether the sources have this quantity, or one that rounds to it."""
        margin = 0.0 if one.kind == "date" or is_year(one) else one.step / 2
        kinds = [(one.kind, one.values, margin)]
        if one.kind and one.plain is not None:
            plain_margin = margin * abs(one.plain / one.values[0]) if one.values[0] else margin
            kinds.append(("", (one.plain,), plain_margin))
        if one.kind == "share":
            kinds.append(("", one.values, margin))
        if not one.kind:
            kinds.append(("plain", one.values, margin))
            kinds.append(("share", one.values, margin))
        return any(
            _within(self._by_kind.get(kind, ()), value, slack)
            for kind, values, slack in kinds
            for value in values
        )

    def computes(self, one: Quantity, derived: Sequence[Quantity]) -> bool:
        """Tell whether two quantities of the sources give this one, or one of them and one ``derived`` before."""
        value, margin = one.values[0], one.step / 2
        if one.kind == "date":
            return False
        known = self._by_kind.get(one.kind, ())
        return _within(self._computed.get(one.kind, ()), value, margin) or any(
            _within(known, wanted, margin)
            for other in derived[-_DERIVED:]
            if other.kind == one.kind
            for wanted in (value - other.values[0], other.values[0] - value, value + other.values[0])
        )

    def like(self, one: Quantity) -> SourcePlace | None:
        """Return where the sources count the same thing, or else measure in the same unit."""
        return self._by_noun.get(stem(one.noun) if one.noun else one.kind)


def _results(given: Sequence[Quantity]) -> dict[str, list[float]]:
    """Return what the four operations make of each two quantities, by kind: euros times a number are euros."""
    found: dict[str, list[float]] = defaultdict(list)
    some = [one for one in given if one.kind != "date" and not one.spelled][-_COMPUTED_FROM:]
    for index, one in enumerate(some):
        for other in some[:index]:
            mine, theirs = one.values[0], other.values[0]
            if one.kind == other.kind:
                found[one.kind] += (mine + theirs, abs(mine - theirs))
                ratios = [mine / theirs, theirs / mine] if mine and theirs else []
                found[""] += ratios
                found["share"] += ratios
            if not (one.kind and other.kind):
                found[one.kind or other.kind].append(mine * theirs)
    for kind in {one.kind for one in some}:
        found[kind].append(sum(one.values[0] for one in some if one.kind == kind))
    return found


def _within(values: Sequence[float], wanted: float, margin: float) -> bool:
    margin += abs(wanted) * _NEAR
    index = bisect_left(values, wanted - margin)
    return index < len(values) and values[index] <= wanted + margin


def check_numbers(prose: str, known: KnownQuantities) -> Iterator[AnswerFinding]:
    """Yield the quantities of ``prose`` that the sources neither have nor allow to be computed."""
    derived: list[Quantity] = []
    for one in sorted(quantities_in(prose), key=lambda found: found.start):
        if one.spelled or _is_mark(prose, one) or known.has(one):
            continue
        computed = known.computes(one, derived)
        if computed:
            derived.append(one)
        yield _finding(one, known, computed=computed)


def _is_mark(text: str, one: Quantity) -> bool:
    """Tell whether a number only counts the items of a list."""
    line = text[max(0, one.start - 24) : one.start].rpartition("\n")[2]
    behind = text[one.end : one.end + 1]
    return one.step == 1.0 and not one.kind and bool(_LIST_MARK.fullmatch(line)) and behind in ".):"


def _finding(one: Quantity, known: KnownQuantities, *, computed: bool) -> AnswerFinding:
    span = ("number", one.start, one.end)
    like = known.like(one)
    if computed:
        return AnswerFinding(
            *span, "low", 0.2, "This number is not in the context, but follows from others.", like
        )
    if like is not None and one.noun:
        return AnswerFinding(*span, "high", 0.75, "The context has another number for this.", like)
    if not one.kind and one.step == 1.0 and abs(one.values[0]) <= _SMALL:
        return AnswerFinding(*span, "low", 0.25, "This number is not in the context.")
    what = "date" if one.kind == "date" else "number"
    return AnswerFinding(*span, "medium", 0.6, f"This {what} is not in the context.", like)
