"""The edits that are planned on the texts of a context, and what some of them are still pending for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.core.content.handles import Handle, Original, json_escaped
from app.core.content.leaves import ContextValue, Leaf, LeafPlace


@dataclass(frozen=True, slots=True)
class Conceal:
    """Replace the span by a handle for its original."""

    label: str
    keep: Handle | None = None
    """A handle that is already in the text and stays, if it exists in this scope."""


@dataclass(frozen=True, slots=True)
class Reveal:
    """Replace the span, which spells ``handle``, by the original, if the handle exists in this scope."""

    handle: Handle


@dataclass(frozen=True, slots=True)
class Mask:
    """Replace the span irreversibly: ``mode`` is ``mask``, ``hash``, ``remove`` or, for ids of users, ``digest``."""

    label: str
    mode: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``leaf.text[start:end]``."""

    leaf: Leaf
    start: int
    end: int
    replacement: str | Conceal | Reveal | Mask


@dataclass(frozen=True, slots=True, eq=False)
class PendingConceal:
    """An original that still needs a handle; compared by identity."""

    label: str
    original: Original
    keep: Handle | None
    pointer: str


@dataclass(frozen=True, slots=True, eq=False)
class PendingMask:
    """A text that still needs an irreversible replacement; compared by identity."""

    label: str
    mode: str
    text: str


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


def resolved_edit(
    edit: RawEdit, handles: Mapping[PendingConceal, Handle | None], originals: Mapping[Handle, Original]
) -> RawEdit | None:
    """Return ``edit`` with what it was pending for, None where its text stays as it is."""
    pending = edit.replacement
    if isinstance(pending, PendingConceal):
        handle = handles[pending]
        if handle is None:
            return None
        # This runs thousands of times while the vault's transaction is open; replace() takes three times as long.
        return RawEdit(edit.value, edit.start, edit.end, str(handle), edit.depth, edit.quoted)
    if isinstance(pending, Reveal):
        original = originals.get(pending.handle)
        # Original.at spells the text for this depth, so it must not be escaped a second time.
        return None if original is None else replace(edit, replacement=original.at(edit.depth), depth=0)
    return edit


def raw_edit(edit: Edit) -> RawEdit:
    """Return ``edit`` in the text of its leaf's value."""
    leaf = edit.leaf
    start, end = leaf.raw_range(edit.start, edit.end)
    replacement: Any = edit.replacement
    if isinstance(replacement, Conceal):
        text = leaf.text[edit.start : edit.end]
        spelling = leaf.value.text[start:end] if leaf.depth else None
        if spelling is not None and spelling == json_escaped(text, leaf.depth):
            spelling = None
        original = Original(text, spelling, leaf.depth if spelling is not None else 0)
        replacement = PendingConceal(replacement.label, original, replacement.keep, leaf.pointer)
    elif isinstance(replacement, Mask):
        replacement = PendingMask(replacement.label, replacement.mode, leaf.text[edit.start : edit.end])
    quoted = leaf.place is LeafPlace.NUMBER and leaf.value.encoding != "number"
    return RawEdit(leaf.value, start, end, replacement, leaf.depth, quoted)
