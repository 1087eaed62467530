"""Judge where originals may be restored in a whole context, over the borders of its texts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from app.core.content.active_calls import is_call
from app.core.content.begun_calls import begun_calls, is_inside
from app.core.content.handles import HandleMatch, find_handles
from app.core.content.json_text import json_objects
from app.core.content.leaves import REPORTED_PLACES, ContextValue, Leaf, LeafPlace
from app.core.content.positions import RIGHT_CONTEXT, PositionReader

_RUNNING_PLACES: Final = frozenset({LeafPlace.TEXT, LeafPlace.TOOL_RESULT, LeafPlace.RESOURCE})
"""Places of texts that a host may show one after the other; arguments and structured data have members apart."""


@dataclass(slots=True)
class _ValueHandles:
    """The handles in one value, in the order of its text."""

    value: ContextValue
    matches: list[tuple[Leaf, HandleMatch]]


def judged_handles(
    leaves: Sequence[Leaf], *, exact: bool, safe: bool
) -> Iterator[tuple[Leaf, HandleMatch, bool]]:
    """Yield the handles of ``leaves`` that may be changed, and if ``safe``, whether no original may stand there.

    A text is read by itself, and together with its neighbours of the same role, as a host shows them: a link may begin
    in one block and end in the next.
    """
    changeable = [leaf for leaf in leaves if leaf.place not in REPORTED_PLACES]
    if not safe:
        for leaf in changeable:
            yield from ((leaf, match, False) for match in find_handles(leaf.text, exact=exact))
        return
    running = [leaf for leaf in changeable if leaf.place in _RUNNING_PLACES]
    for _, of_role in groupby(running, key=lambda leaf: leaf.role):
        values = _by_value(of_role, exact=exact)
        if any(holder.matches for holder in values):
            yield from _judged(values)
    for holder in _by_value((leaf for leaf in changeable if leaf.place not in _RUNNING_PLACES), exact=exact):
        for (leaf, match), active in zip(holder.matches, _active_alone(holder), strict=True):
            yield leaf, match, active


def _by_value(leaves: Iterable[Leaf], *, exact: bool) -> list[_ValueHandles]:
    return [
        _ValueHandles(
            value, [(leaf, match) for leaf in of_value for match in find_handles(leaf.text, exact=exact)]
        )
        for value, of_value in groupby(leaves, key=lambda leaf: leaf.value)
    ]


def _judged(values: Sequence[_ValueHandles]) -> Iterator[tuple[Leaf, HandleMatch, bool]]:
    joined = "".join(holder.value.text for holder in values)
    begun = begun_calls(joined) if "{" in joined else []
    reader = PositionReader()
    begin = read = 0
    for holder in values:
        alone = (
            _active_alone(holder, _calls_of(holder))
            if len(values) > 1 or _is_json(holder)
            else [False] * len(holder.matches)
        )
        for (leaf, match), is_active in zip(holder.matches, alone, strict=True):
            start, end = (begin + offset for offset in leaf.raw_range(match.start, match.end))
            reader.add(joined[read:start])
            right = joined[end : end + RIGHT_CONTEXT]
            active = reader.is_active(right, ends=end + len(right) == len(joined))
            reader.pass_handle(match.handle.label)
            read = end
            yield leaf, match, is_active or active is not False or is_inside(begun, start)
        begin += len(holder.value.text)


def _is_json(holder: _ValueHandles) -> bool:
    return any(leaf.depth for leaf, _ in holder.matches)


def _active_alone(holder: _ValueHandles, calls: Sequence[tuple[int, int]] = ()) -> list[bool]:
    """Return for each handle of a value whether it is active in its own leaf, or inside of one of ``calls``."""
    judged: list[bool] = []
    for leaf, of_leaf in groupby(holder.matches, key=lambda pair: pair[0]):
        reader, read = PositionReader(), 0
        for _, match in of_leaf:
            reader.add(leaf.text[read : match.start])
            right = leaf.text[match.end : match.end + RIGHT_CONTEXT]
            active = reader.is_active(right, ends=match.end + len(right) == len(leaf.text))
            reader.pass_handle(match.handle.label)
            read = match.end
            place = leaf.raw_range(match.start, match.end)[0]
            judged.append(active is not False or is_inside(calls, place))
    return judged


def _calls_of(holder: _ValueHandles) -> list[tuple[int, int]]:
    """Return where the outermost objects of a JSON text are that are tool calls."""
    ranges: list[tuple[int, int]] = []
    objects = json_objects(holder.value.text) if _is_json(holder) else []
    for start, end, members in sorted(objects, key=lambda member: member[0]):
        if (not ranges or end > ranges[-1][1]) and is_call(members):
            ranges.append((start, end))
    return ranges
