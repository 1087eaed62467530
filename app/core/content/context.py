"""Context items: reading them into leaves, planning edits, and writing them back in the same shape."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.core.content.handles import Handle, Original, json_escaped
from app.core.content.leaves import ContextValue, Leaf, LeafPlace
from app.core.content.parsing import MAX_BLOCKS, MAX_DEPTH, read_items
from app.core.content.text_edits import RawEdit, rendered, written


@dataclass(frozen=True, slots=True)
class Conceal:
    """Replace the span by a handle for its original."""

    label: str
    keep: Handle | None = None
    """A handle that stands there already and stays, if this scope knows it."""


@dataclass(frozen=True, slots=True)
class Reveal:
    """Replace the span, which spells ``handle``, by the original, if this scope knows it."""

    handle: Handle


@dataclass(frozen=True, slots=True)
class Mask:
    """Replace the span irreversibly: ``mode`` is ``mask``, ``hash`` or ``remove``."""

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
    """An original that wants a handle; compared by identity."""

    label: str
    original: Original
    keep: Handle | None
    pointer: str


@dataclass(frozen=True, slots=True, eq=False)
class PendingMask:
    """A text that wants an irreversible replacement; compared by identity."""

    label: str
    mode: str
    text: str


@dataclass(frozen=True, slots=True)
class Context:
    """A parsed context and the edits planned on it; immutable.

    ``skipped`` counts items of unknown types, ``unscanned`` what cannot be scanned, by kind. ``user_texts`` are
    the texts in front of which a middleware may put something: the last message first.
    """

    items: list[Any]
    leaves: tuple[Leaf, ...]
    user_texts: tuple[ContextValue, ...]
    skipped: Mapping[str, int]
    unscanned: Mapping[str, int]
    blocks: int
    edits: tuple[RawEdit, ...] = ()
    added: tuple[Any, ...] = field(default=())
    """Items put in front because there was no text to add to."""

    @classmethod
    def parse(
        cls, items: Any, *, max_blocks: int = MAX_BLOCKS, max_depth: int = MAX_DEPTH, strict: bool = False
    ) -> "Context":
        """Read a list of context items; unknown types are kept and counted, or refused where ``strict``."""
        read = read_items(items, max_blocks=max_blocks, max_depth=max_depth, strict=strict)
        return cls(
            items=items,
            leaves=tuple(read.leaves),
            user_texts=tuple(read.user_texts),
            skipped=dict(read.skipped),
            unscanned=dict(read.unscanned),
            blocks=read.blocks,
        )

    def edited(self, edits: Iterable[Edit]) -> "Context":
        """Return a context with ``edits`` planned too; spans must not overlap."""
        return replace(self, edits=self.edits + tuple(_raw(edit) for edit in edits))

    def prefixed(self, text: str, *, after: bool = False) -> "Context":
        """Return a context with ``text`` in front of the user's text (or behind it, where ``after``).

        The place is the first text of the last user message; without messages, the first text item. Tool results
        and assistant turns are never touched; where there is no such text a new text item or user message is
        put in front of the context, without the line breaks that set ``text`` off from the user's.
        """
        if not self.user_texts:
            has_roles = any(isinstance(item, dict) and "role" in item for item in self.items)
            alone = text.strip("\n")
            item = {"role": "user", "content": alone} if has_roles else {"type": "text", "text": alone}
            return replace(self, added=(*self.added, item))
        slot = self.user_texts[0]
        position = len(slot.text) if after else 0
        return replace(self, edits=(*self.edits, RawEdit(slot, position, position, text, 0)))

    @property
    def characters(self) -> int:
        """Return how many characters the leaves have together."""
        return sum(len(leaf.text) for leaf in self.leaves)

    @property
    def conceals(self) -> list[PendingConceal]:
        """Return the originals that still want a handle, in the order of the text."""
        return [edit.replacement for edit in self._ordered() if isinstance(edit.replacement, PendingConceal)]

    @property
    def reveals(self) -> list[Handle]:
        """Return the handles that still want their original, in the order of the text."""
        return [edit.replacement.handle for edit in self._ordered() if isinstance(edit.replacement, Reveal)]

    @property
    def masks(self) -> list[PendingMask]:
        """Return the texts that still want an irreversible replacement."""
        return [edit.replacement for edit in self.edits if isinstance(edit.replacement, PendingMask)]

    def _ordered(self) -> list[RawEdit]:
        order: dict[int, int] = {}
        for number, leaf in enumerate(self.leaves):
            order.setdefault(id(leaf.slot), number)
        return sorted(self.edits, key=lambda edit: (order.get(id(edit.slot), 0), edit.start))

    def masked(self, texts: Mapping[PendingMask, str]) -> "Context":
        """Return a context whose masks are settled."""
        settled = (
            replace(edit, replacement=texts[edit.replacement])
            if isinstance(edit.replacement, PendingMask)
            else edit
            for edit in self.edits
        )
        return replace(self, edits=tuple(settled))

    def resolved(
        self, handles: Mapping[PendingConceal, Handle | None], originals: Mapping[Handle, Original]
    ) -> "Context":
        """Return a context whose conceals and reveals are settled.

        A conceal mapped to None and a reveal without an original leave their text as it stands.
        """
        settled = (_settled(edit, handles, originals) for edit in self.edits)
        return replace(self, edits=tuple(edit for edit in settled if edit is not None))

    def to_json(self) -> list[Any]:
        """Return the items in the shape they came in, with all edits applied; every edit must be settled."""
        by_slot: dict[int, list[RawEdit]] = {}
        for edit in self.edits:
            by_slot.setdefault(id(edit.slot), []).append(edit)
        values = {edits[0].slot.path: rendered(edits[0].slot, edits) for edits in by_slot.values()}
        return [*self.added, *written(self.items, values)]


def _settled(
    edit: RawEdit, handles: Mapping[PendingConceal, Handle | None], originals: Mapping[Handle, Original]
) -> RawEdit | None:
    wanted = edit.replacement
    if isinstance(wanted, PendingConceal):
        handle = handles[wanted]
        if handle is None:
            return None
        # Thousands of these run while the vault's transaction is open; replace() takes three times as long.
        return RawEdit(edit.slot, edit.start, edit.end, str(handle), edit.depth, edit.quoted)
    if isinstance(wanted, Reveal):
        original = originals.get(wanted.handle)
        # The original knows its own spelling at this depth, so nothing is escaped a second time.
        return None if original is None else replace(edit, replacement=original.at(edit.depth), depth=0)
    return edit


def _raw(edit: Edit) -> RawEdit:
    leaf = edit.leaf
    start, end = leaf.raw_range(edit.start, edit.end)
    replacement: Any = edit.replacement
    if isinstance(replacement, Conceal):
        text = leaf.text[edit.start : edit.end]
        spelling = leaf.slot.text[start:end] if leaf.depth else None
        if spelling is not None and spelling == json_escaped(text, leaf.depth):
            spelling = None
        original = Original(text, spelling, leaf.depth if spelling is not None else 0)
        replacement = PendingConceal(replacement.label, original, replacement.keep, leaf.pointer)
    elif isinstance(replacement, Mask):
        replacement = PendingMask(replacement.label, replacement.mode, leaf.text[edit.start : edit.end])
    quoted = leaf.place is LeafPlace.NUMBER and leaf.slot.encoding != "number"
    return RawEdit(leaf.slot, start, end, replacement, leaf.depth, quoted)
