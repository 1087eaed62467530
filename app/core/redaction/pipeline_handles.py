"""Handles that hold for the length of one call: what the steps of a pipeline see before the vault gives the real ones.

After a concealing step every handle in the text is ours, because text that looked like one before is itself concealed.
So a handle in the text of a later step can be told by its spelling alone, wherever that step has put it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.core.content.context import Context, Edit, PendingConceal
from app.core.content.handles import LITERAL, Handle, HandleMatch, Original, find_handles, json_escaped
from app.core.content.leaves import REPORTED_PLACES, Leaf, LeafPlace
from app.core.content.text_edits import RawEdit

_Path = tuple[str | int, ...]


class PipelineHandles:
    """The handles of one call in the order in which they were given; equal originals of a label share one."""

    def __init__(self) -> None:
        self.originals: dict[Handle, Original] = {}
        self._handles: dict[tuple[str, bytes], Handle] = {}
        self._last: Counter[str] = Counter()
        self._paths: set[_Path] = set()

    def conceal(
        self, context: Context, *, kept: Collection[Handle] = (), ours: Collection[Handle] | None = None
    ) -> Context:
        """Return ``context`` with its conceals settled by provisional handles.

        ``kept`` are handles of the vault that stay in the text as they are: numbers begin behind theirs. ``ours`` are
        the provisional handles that may stand in it (None: all so far): they stay, and an original that was found
        around one is what stood there before both.
        """
        # What this very text gets is not in it yet: there it would be somebody's text that looks the same.
        mine = frozenset(self.originals) if ours is None else ours
        for handle in kept:
            self._last[handle.label] = max(self._last[handle.label], handle.ordinal)
        settled: dict[PendingConceal, Handle | None] = {}
        for pending in context.conceals:
            if (pending.keep is not None and pending.keep in kept) or _is_one(pending, mine):
                settled[pending] = None
            else:
                settled[pending] = self._given(pending.label, self._expanded(pending.original, mine))
        reported = {id(leaf.value) for leaf in context.leaves if leaf.place in REPORTED_PLACES}
        self._paths |= {
            edit.value.path
            for edit in context.edits
            if isinstance(edit.replacement, PendingConceal) and id(edit.value) in reported
        }
        return context.resolved(settled, {})

    def moved(self, places: int) -> None:
        """Note that so many items were put in front of the context."""
        self._paths = {(int(path[0]) + places, *path[1:]) for path in self._paths}

    def present(self, context: Context) -> list[Handle]:
        """Return the handles that stand in ``context``, in the order in which they were given."""
        found = {match.handle for leaf in context.leaves for match in self._matches(leaf)}
        return [handle for handle in self.originals if handle in found]

    def settled(self, context: Context, handles: Mapping[Handle, Handle]) -> Context:
        """Return ``context`` with ``handles`` of the vault in place of the provisional ones."""
        return context.edited(
            Edit(leaf, match.start, match.end, str(handles[match.handle]))
            for leaf in context.leaves
            for match in self._matches(leaf)
            if match.handle in handles
        )

    def named(self, value: Any, handles: Mapping[Handle, Handle]) -> Any:
        """Return a JSON value of metadata with ``handles`` of the vault in place of the provisional ones."""
        if isinstance(value, str):
            return _replaced(value, {one: str(other) for one, other in handles.items()})
        if isinstance(value, Mapping):
            return {key: self.named(one, handles) for key, one in value.items()}
        if isinstance(value, Sequence):
            return [self.named(one, handles) for one in value]
        return value

    def _matches(self, leaf: Leaf) -> Iterable[HandleMatch]:
        if leaf.place is LeafPlace.KEY or (
            leaf.place in REPORTED_PLACES and leaf.value.path not in self._paths
        ):
            return []
        return [match for match in find_handles(leaf.text, exact=True) if match.handle in self.originals]

    def _given(self, label: str, original: Original) -> Handle:
        key = label, original.encode()
        handle = self._handles.get(key)
        if handle is None:
            self._last[label] += 1
            handle = self._handles[key] = Handle(label, self._last[label])
            self.originals[handle] = original
        return handle

    def _expanded(self, original: Original, ours: Collection[Handle]) -> Original:
        """Return an original with what stood behind the handles in it, as it was spelled there."""
        inner = [one.handle for one in find_handles(original.text, exact=True) if one.handle in ours]
        if not inner:
            return original
        behind = {handle: self.originals[handle] for handle in inner}
        text = _replaced(original.text, {handle: one.text for handle, one in behind.items()})
        spelled = [one.depth for one in (original, *behind.values()) if one.spelling is not None]
        if not spelled:
            return Original(text)
        depth = spelled[0]
        around = original.spelling or json_escaped(original.text, depth)
        spelling = _replaced(around, {handle: one.at(depth) for handle, one in behind.items()})
        return Original(text) if spelling == json_escaped(text, depth) else Original(text, spelling, depth)


class Additions:
    """What a step puts into a text that is not from there: strings of its edits and items of its own."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._numbers = [
            number
            for number, edit in enumerate(context.edits)
            if isinstance(edit.replacement, str) and edit.replacement.strip()
        ]
        texts = [{"type": "text", "text": context.edits[number].replacement} for number in self._numbers]
        self.items: list[Any] = [*texts, *context.added]

    @property
    def moved(self) -> frozenset[Handle]:
        """Return the handles that an edit repeats from the text that it replaces: that text was only moved."""
        repeated: set[Handle] = set()
        for number in self._numbers:
            edit = self.context.edits[number]
            before = {one.handle for one in find_handles(edit.value.text[edit.start : edit.end], exact=True)}
            repeated |= before & {one.handle for one in find_handles(str(edit.replacement), exact=True)}
        return frozenset(repeated)

    def replaced(self, items: Sequence[Any]) -> Context:
        """Return the step's context with ``items`` in place of those that it adds."""
        edits = list(self.context.edits)
        for number, item in zip(self._numbers, items[: len(self._numbers)], strict=True):
            edits[number] = _rewritten(edits[number], item["text"])
        added = tuple(items[len(self._numbers) :])
        return replace(self.context, edits=tuple(edits), added=added)


def _rewritten(edit: RawEdit, text: str) -> RawEdit:
    return replace(edit, replacement=text)


def _is_one(pending: PendingConceal, ours: Collection[Handle]) -> bool:
    handle = Handle.parse(pending.original.text) if pending.original.text.startswith("[") else None
    return pending.label == LITERAL and handle is not None and handle in ours


def _replaced(text: str, texts: Mapping[Handle, str]) -> str:
    pieces: list[str] = []
    position = 0
    for match in find_handles(text, exact=True):
        if match.handle in texts:
            pieces += [text[position : match.start], texts[match.handle]]
            position = match.end
    return "".join([*pieces, text[position:]])
