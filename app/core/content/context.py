"""Parse context items into leaves, plan edits on them, and write them back in the same shape."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.core.content.handles import Handle, Original, json_escaped
from app.core.content.leaves import ContextValue, Leaf, LeafPlace
from app.core.content.parsing import MAX_BLOCKS, MAX_DEPTH, read_items
from app.core.content.text_edits import RawEdit, rendered, written
from app.core.content.walking import SIGNED_REASONING
from app.core.errors import UnscannableContentError


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
class Context:
    """A parsed context and the edits planned on it; immutable.

    ``skipped`` counts items by unknown type, ``unscanned`` counts what cannot be scanned or changed by kind, and
    ``unseen`` is the part of it that was not scanned. ``user_texts`` are
    the texts to which a middleware may add text, the last message first.
    """

    items: list[Any]
    leaves: tuple[Leaf, ...]
    user_texts: tuple[ContextValue, ...]
    skipped: Mapping[str, int]
    unscanned: Mapping[str, int]
    blocks: int
    edits: tuple[RawEdit, ...] = ()
    added: tuple[Any, ...] = field(default=())
    """Items to put in front because there was no text to add to."""

    @classmethod
    def parse(
        cls, items: Any, *, max_blocks: int = MAX_BLOCKS, max_depth: int = MAX_DEPTH, strict: bool = False
    ) -> "Context":
        """Parse a list of context items; count unknown types, or refuse them if ``strict``.

        Raise UnscannableContentError if ``strict`` and something cannot be scanned.
        """
        read = read_items(items, max_blocks=max_blocks, max_depth=max_depth, strict=strict)
        context = cls(
            items=items,
            leaves=tuple(read.leaves),
            user_texts=tuple(read.user_texts),
            skipped=dict(read.skipped),
            unscanned=dict(read.unscanned),
            blocks=read.blocks,
        )
        if strict and context.unseen:
            raise UnscannableContentError(
                "The context contains something that cannot be scanned, and strict: true refuses that.",
                details={"unscanned": context.unseen},
            )
        return context

    def edited(self, edits: Iterable[Edit]) -> "Context":
        """Return a context with ``edits`` added to the plan; spans must not overlap."""
        return replace(self, edits=self.edits + tuple(_raw_edit(edit) for edit in edits))

    def prefixed(self, text: str, *, after: bool = False) -> "Context":
        """Return a context with ``text`` before the user's text (or after it, if ``after``).

        The user's text is the first text of the last user message or, without messages, the first text item. Tool
        results and assistant turns are never touched. Without such a text, a new text item or user message goes in
        front of the context, without the line breaks that separate ``text`` from the user's.
        """
        if not self.user_texts:
            has_roles = any(isinstance(item, dict) and "role" in item for item in self.items)
            alone = text.strip("\n")
            item = {"role": "user", "content": alone} if has_roles else {"type": "text", "text": alone}
            return replace(self, added=(*self.added, item))
        value = self.user_texts[0]
        position = len(value.text) if after else 0
        return replace(self, edits=(*self.edits, RawEdit(value, position, position, text, 0)))

    @property
    def unseen(self) -> dict[str, int]:
        """Return by kind how much was not scanned; what is only sealed against changes was."""
        return {kind: count for kind, count in self.unscanned.items() if kind != SIGNED_REASONING}

    @property
    def characters(self) -> int:
        """Return the number of characters in all leaves."""
        return sum(len(leaf.text) for leaf in self.leaves)

    @property
    def conceals(self) -> list[PendingConceal]:
        """Return the originals that still need a handle, in the order of the text."""
        return [
            edit.replacement for edit in self._in_text_order() if isinstance(edit.replacement, PendingConceal)
        ]

    @property
    def reveals(self) -> list[Handle]:
        """Return the handles that still need their original, in the order of the text."""
        return [
            edit.replacement.handle for edit in self._in_text_order() if isinstance(edit.replacement, Reveal)
        ]

    @property
    def masks(self) -> list[PendingMask]:
        """Return the texts that still need an irreversible replacement."""
        return [edit.replacement for edit in self.edits if isinstance(edit.replacement, PendingMask)]

    def _in_text_order(self) -> list[RawEdit]:
        order: dict[int, int] = {}
        for number, leaf in enumerate(self.leaves):
            order.setdefault(id(leaf.value), number)
        return sorted(self.edits, key=lambda edit: (order.get(id(edit.value), 0), edit.start))

    def masked(self, texts: Mapping[PendingMask, str]) -> "Context":
        """Return a context with each pending mask replaced by its text."""
        resolved = (
            replace(edit, replacement=texts[edit.replacement])
            if isinstance(edit.replacement, PendingMask)
            else edit
            for edit in self.edits
        )
        return replace(self, edits=tuple(resolved))

    def resolved(
        self, handles: Mapping[PendingConceal, Handle | None], originals: Mapping[Handle, Original]
    ) -> "Context":
        """Return a context with handles for pending conceals and originals for reveals.

        A conceal mapped to None and a reveal without an original leave their text unchanged.
        """
        resolved = (_resolved_edit(edit, handles, originals) for edit in self.edits)
        return replace(self, edits=tuple(edit for edit in resolved if edit is not None))

    def to_json(self) -> list[Any]:
        """Return the items in their original shape with all edits applied; no edit may be pending."""
        by_value: dict[int, list[RawEdit]] = {}
        for edit in self.edits:
            by_value.setdefault(id(edit.value), []).append(edit)
        values: dict[tuple[str | int, ...], str] = {}
        names: dict[tuple[str | int, ...], str] = {}
        for edits in by_value.values():
            value = edits[0].value
            (names if value.encoding == "name" else values)[value.path] = rendered(value, edits)
        return [*self.added, *written(self.items, values, names)]


def _resolved_edit(
    edit: RawEdit, handles: Mapping[PendingConceal, Handle | None], originals: Mapping[Handle, Original]
) -> RawEdit | None:
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


def _raw_edit(edit: Edit) -> RawEdit:
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
