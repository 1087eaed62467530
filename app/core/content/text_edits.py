"""Apply edits to the strings of a context without changing anything around them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.content.handles import json_escaped
from app.core.content.leaves import ContextValue

LOGPROBS: Final = frozenset({"logprobs", "logprobsResult", "logprobs_result"})
"""Members that say of each token of the text beside them how probable it was."""


@dataclass(frozen=True, slots=True)
class RawEdit:
    """Replace ``value.text[start:end]``; a text replacement is escaped for ``depth`` JSON string literals.

    ``quoted`` marks a number inside JSON that becomes a string.
    """

    value: ContextValue
    start: int
    end: int
    replacement: Any
    depth: int
    quoted: bool = False


def rendered(value: ContextValue, edits: Sequence[RawEdit]) -> str:
    """Return the value's text with ``edits`` applied, in the value's encoding.

    Raise TypeError for an edit that is still pending and ValueError for edits that overlap.
    """
    pieces = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if not isinstance(edit.replacement, str):
            raise TypeError("an edit is still pending")
        if edit.start < position:
            raise ValueError("edits overlap")
        text = f'"{edit.replacement}"' if edit.quoted else edit.replacement
        pieces += [value.text[position : edit.start], json_escaped(text, edit.depth) if edit.depth else text]
        position = edit.end
    pieces.append(value.text[position:])
    text = "".join(pieces)
    return text if value.codec is None else value.codec.encoded(text)


def written(
    items: list[Any],
    values: Mapping[tuple[str | int, ...], str],
    names: Mapping[tuple[str | int, ...], str],
) -> list[Any]:
    """Return ``items`` with the values at the paths of ``values`` replaced; copy only containers on a path.

    ``names`` are new names of the members at its paths.
    """
    copies: dict[tuple[str | int, ...], Any] = {(): items.copy()}
    changed: list[tuple[str | int, ...]] = []
    for path, value in values.items():
        holder = _copied(copies, path[:-1])
        if holder[path[-1]] != value:
            changed.append(path)
        holder[path[-1]] = value
    for path in changed:
        for depth in range(1, len(path)):
            drop_logprobs(_copied(copies, path[:depth]), path[depth])
    for path in sorted(
        names, key=len, reverse=True
    ):  # the paths to inner members have the old names of outer ones
        _rename(_copied(copies, path[:-1]), path[-1], names[path])
    root: list[Any] = copies[()]
    return root


def _copied(copies: dict[tuple[str | int, ...], Any], path: tuple[str | int, ...]) -> Any:
    """Return the copy of the container at ``path``; make it, and those around it, where there is none yet."""
    # Not inside ``written``: a function that calls itself from a closure keeps the whole context until the collector of
    # cycles comes by, and large texts are few objects, for which it does not.
    if path not in copies:
        parent = _copied(copies, path[:-1])
        copies[path] = parent[path[-1]] = parent[path[-1]].copy()
    return copies[path]


def drop_logprobs(holder: Any, member: str | int) -> None:
    """Empty the probabilities of a text's tokens, which repeat it in clear; ``member`` of their holder has changed."""
    if not isinstance(holder, dict) or member in LOGPROBS:
        return
    for name in LOGPROBS.intersection(holder):
        # In a request a number or true asks for them.
        if isinstance(holder[name], list | dict):
            holder[name] = [] if isinstance(holder[name], list) else None


def _rename(holder: dict[str | int, Any], old: str | int, new: str) -> None:
    """Rename a member in its place; a name that is taken gets a number, so that no member is lost."""
    number, free = 2, new
    while free in holder and free != old:
        number, free = number + 1, f"{new} ({number})"
    members = [(free if name == old else name, member) for name, member in holder.items()]
    holder.clear()
    holder.update(members)
