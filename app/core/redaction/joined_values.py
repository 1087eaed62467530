"""Texts of values that a detector would not know leaf by leaf: split over a list, or written in hexadecimal."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from app.core.content.leaves import Leaf, LeafPlace
from app.core.content.shapes.split_values import lists_of, split_value
from app.core.contracts.engines import Span

_HEXADECIMAL: Final = re.compile(r"0[xX][0-9A-Fa-f]{5,17}")
_DIGITS: Final = 9
"""Least digits of a number that is read from hexadecimal: zeros in front of it are not written there."""


@dataclass(frozen=True, slots=True)
class JoinedValue:
    """A text that stands for leaves: ``places`` are their positions, ``ends`` where the part of each ends in it.

    ``before`` is the number of characters in front of the value, as ``"ssn": "``.
    """

    text: str
    before: int
    places: Sequence[int]
    ends: Sequence[int]

    def spans(self, findings: Sequence[Span], leaves: Sequence[Leaf]) -> Iterator[tuple[int, Span]]:
        """Yield position and span of each leaf that findings of the text touch, as a whole."""
        begin = self.before
        for place, end in zip(self.places, self.ends, strict=True):
            touching = [span for span in findings if span.start < end and span.end > begin]
            if touching:
                best = max(touching, key=lambda span: (span.end - span.start, span.score))
                yield place, Span(0, len(leaves[place].text), best.label, best.score)
            begin = end


def joined_values(leaves: Sequence[Leaf], cue: Callable[[str], str]) -> list[JoinedValue]:
    """Return the joined values of ``leaves``; ``cue`` says by a pointer what is there, or nothing."""
    joined: list[JoinedValue] = []
    pointers = ["" if leaf.place is LeafPlace.KEY else leaf.pointer for leaf in leaves]
    for places in lists_of(pointers):
        elements = [leaves[place].text for place in places]
        named = cue(pointers[places[0]])
        if split_value(elements, named):
            joined.append(_behind(named, elements, places))
    for place, leaf in enumerate(leaves):
        if (
            leaf.text[:2] in ("0x", "0X")
            and _HEXADECIMAL.fullmatch(leaf.text)
            and (named := cue(leaf.pointer))
        ):
            joined.append(_behind(named, [f"{int(leaf.text, 16):0{_DIGITS}d}"], [place]))
    return joined


def _behind(cue: str, elements: Sequence[str], places: Sequence[int]) -> JoinedValue:
    prefix, suffix = (f'"{cue}": "', '"') if cue else ("", "")
    ends = list(accumulate(map(len, elements), initial=len(prefix)))[1:]
    return JoinedValue("".join((prefix, *elements, suffix)), len(prefix), places, ends)
