"""Parse context items into leaves, plan edits on them, and write them back in the same shape."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from app.core.content.handles import Handle, Original, json_escaped
from app.core.content.leaves import ContextValue, Leaf, LeafPlace
from app.core.content.parsing import ItemReader
from app.core.content.text_edits import (
    Edit,
    PendingConceal,
    PendingMask,
    RawEdit,
    Reveal,
    raw_edit,
    resolved_edit,
)
from app.core.content.walking import SIGNED_REASONING, ContextReading, ValueReader
from app.core.errors import InvalidArgumentsError, UnscannableContentError

MAX_BLOCKS: Final = 4_096
MAX_DEPTH: Final = 64
LOGPROBS: Final = frozenset({"logprobs", "logprobsResult", "logprobs_result"})
"""Members that say of each token of the text beside them how probable it was."""


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

        Raise InvalidArgumentsError or TooLargeError for what is no context within the limits, and
        UnscannableContentError if ``strict`` and something cannot be scanned.
        """
        read = _read(items, ValueReader(max_depth, max_blocks), strict=strict)
        context = cls(
            items=items,
            leaves=tuple(read.leaves),
            user_texts=read.user_texts,
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
        return self._planned(self.edits + tuple(raw_edit(edit) for edit in edits))

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
        return self._planned((*self.edits, RawEdit(value, position, position, text, 0)))

    def _planned(self, edits: tuple[RawEdit, ...]) -> "Context":
        """Return a context with these edits and no others; ``dataclasses.replace`` takes three times as long."""
        return Context(
            items=self.items,
            leaves=self.leaves,
            user_texts=self.user_texts,
            skipped=self.skipped,
            unscanned=self.unscanned,
            blocks=self.blocks,
            edits=edits,
            added=self.added,
        )

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
        return self._planned(tuple(resolved))

    def resolved(
        self, handles: Mapping[PendingConceal, Handle | None], originals: Mapping[Handle, Original]
    ) -> "Context":
        """Return a context with handles for pending conceals and originals for reveals.

        A conceal mapped to None and a reveal without an original leave their text unchanged.
        """
        resolved = (resolved_edit(edit, handles, originals) for edit in self.edits)
        return self._planned(tuple(edit for edit in resolved if edit is not None))

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


def _read(items: Any, values: ValueReader, *, strict: bool) -> ContextReading:
    """Read plain texts at once, and all else with a reader that knows messages and the shapes of blocks."""
    if not isinstance(items, list):
        raise InvalidArgumentsError(
            "The context must be a list of content items.", details={"pointer": "/context"}
        )
    reader: ItemReader | None = None
    for index, item in enumerate(items):
        if not values.read_plain((index,), item, LeafPlace.TEXT, None, opens=True):
            reader = reader or ItemReader(values, strict=strict)
            reader.read((index,), item)
    return values.reading


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
