"""Applying edits to the strings of a context, without touching anything around them."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.content.handles import json_escaped
from app.core.content.leaves import ContextValue


@dataclass(frozen=True, slots=True)
class RawEdit:
    """Replace ``slot.text[start:end]``; a replacement that is text is escaped for ``depth`` JSON literals.

    ``quoted`` marks a number inside JSON that becomes a string.
    """

    slot: ContextValue
    start: int
    end: int
    replacement: Any
    depth: int
    quoted: bool = False


def rendered(slot: ContextValue, edits: Sequence[RawEdit]) -> str:
    """Return the slot's text with ``edits`` applied, encoded as the slot wants it."""
    pieces = []
    position = 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if not isinstance(edit.replacement, str):
            raise TypeError("an edit is still pending")
        if edit.start < position:
            raise ValueError("edits overlap")
        text = f'"{edit.replacement}"' if edit.quoted else edit.replacement
        pieces += [slot.text[position : edit.start], json_escaped(text, edit.depth)]
        position = edit.end
    pieces.append(slot.text[position:])
    text = "".join(pieces)
    return base64.b64encode(text.encode()).decode() if slot.encoding == "base64" else text


def written(items: list[Any], values: Mapping[tuple[str | int, ...], str]) -> list[Any]:
    """Return ``items`` with the values at the given paths replaced; only containers on a path are copied."""
    copies: dict[tuple[str | int, ...], Any] = {(): items.copy()}

    def copied(path: tuple[str | int, ...]) -> Any:
        if path not in copies:
            parent = copied(path[:-1])
            copies[path] = parent[path[-1]] = parent[path[-1]].copy()
        return copies[path]

    for path, value in values.items():
        copied(path[:-1])[path[-1]] = value
    root: list[Any] = copies[()]
    return root
