"""Temporary handles of one call, which the steps of a pipeline see before the vault assigns the real ones.

After a concealing step, every handle in the text is temporary, because text that looked like a handle before is itself
concealed. So the spelling alone identifies a handle in the text of a later step, wherever that step moved it.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from app.core.content.context import Context
from app.core.content.handles import LITERAL, Handle, HandleMatch, Original, find_handles, json_escaped
from app.core.content.leaves import REPORTED_PLACES, Leaf, LeafPlace
from app.core.content.text_edits import Edit, PendingConceal, RawEdit

_Path = tuple[str | int, ...]
_ORDINALS_OUT_OF_REACH: Final = 10**8
"""No call assigns so many handles: numbering need not continue after such a one, and could run out of digits."""


class PipelineHandles:
    """The temporary handles of one call, in the order of assignment; equal originals of a label share one."""

    def __init__(self) -> None:
        self.originals: dict[Handle, Original] = {}
        self._handles: dict[tuple[str, bytes], Handle] = {}
        self._last: Counter[str] = Counter()
        self._paths: set[_Path] = set()
        self._has_names = False
        """Whether names of members were changed; handles in them are then ours, all other text like one is escaped."""

    def reserve(self, context: Context, roles: Collection[str]) -> None:
        """Never assign the handles that messages of ``roles`` speak of: in these texts they are words and stay."""
        for leaf in context.leaves:
            if leaf.role in roles:
                for match in find_handles(leaf.text, exact=True):
                    if match.handle not in self.originals:
                        self._continue_after(match.handle)

    def conceal(
        self, context: Context, *, kept: Collection[Handle] = (), temporary: Collection[Handle] | None = None
    ) -> Context:
        """Return ``context`` with temporary handles for its pending conceals.

        ``kept`` are handles of the vault that stay in the text unchanged; numbering continues after theirs.
        ``temporary`` are the temporary handles that may be in the text (None: all so far). They stay, and an original
        that contains one is expanded to the text from before both.
        """
        # Handles assigned below are not in this text yet: there, the same spelling would be foreign text.
        temporary = frozenset(self.originals) if temporary is None else temporary
        for handle in kept:
            self._continue_after(handle)
        assigned: dict[PendingConceal, Handle | None] = {}
        for pending in context.conceals:
            if (pending.keep is not None and pending.keep in kept) or _is_temporary_handle(
                pending, temporary
            ):
                assigned[pending] = None
            else:
                assigned[pending] = self._handle_for(
                    pending.label, self._with_inner_originals(pending.original, temporary)
                )
        reported = {id(leaf.value) for leaf in context.leaves if leaf.place in REPORTED_PLACES}
        self._paths |= {
            edit.value.path
            for edit in context.edits
            if isinstance(edit.replacement, PendingConceal) and id(edit.value) in reported
        }
        self._has_names = self._has_names or _changes_names(context)
        return context.resolved(assigned, {})

    def moved(self, places: int) -> None:
        """Record that ``places`` items were put in front of the context."""
        self._paths = {(int(path[0]) + places, *path[1:]) for path in self._paths}

    def present(self, context: Context) -> list[Handle]:
        """Return the temporary handles in ``context``, in the order of assignment."""
        in_context = {match.handle for leaf in context.leaves for match in self._matches(leaf)}
        return [handle for handle in self.originals if handle in in_context]

    def with_vault_handles(self, context: Context, handles: Mapping[Handle, Handle]) -> Context:
        """Return ``context`` with temporary handles replaced by those of the vault, as ``handles`` maps them."""
        return context.edited(
            Edit(leaf, match.start, match.end, str(handles[match.handle]))
            for leaf in context.leaves
            for match in self._matches(leaf)
            if match.handle in handles
        )

    def metadata_with_vault_handles(self, value: Any, handles: Mapping[Handle, Handle]) -> Any:
        """Return a JSON value of metadata with temporary handles replaced, as ``handles`` maps them."""
        return _with_texts(value, {handle: str(final) for handle, final in handles.items()})

    def _matches(self, leaf: Leaf) -> Iterable[HandleMatch]:
        if leaf.place is LeafPlace.KEY:
            if not (self._has_names and leaf.is_member_name):
                return []
        elif leaf.place in REPORTED_PLACES and leaf.value.path not in self._paths:
            return []
        return [match for match in find_handles(leaf.text, exact=True) if match.handle in self.originals]

    def _continue_after(self, handle: Handle) -> None:
        if handle.ordinal < _ORDINALS_OUT_OF_REACH:
            self._last[handle.label] = max(self._last[handle.label], handle.ordinal)

    def _handle_for(self, label: str, original: Original) -> Handle:
        key = label, original.encode()
        handle = self._handles.get(key)
        if handle is None:
            self._last[label] += 1
            handle = self._handles[key] = Handle(label, self._last[label])
            self.originals[handle] = original
        return handle

    def _with_inner_originals(self, original: Original, temporary: Collection[Handle]) -> Original:
        """Return an original with the handles in it replaced by their originals, in their exact spelling."""
        inner = [
            match.handle for match in find_handles(original.text, exact=True) if match.handle in temporary
        ]
        if not inner:
            return original
        inner_originals = {handle: self.originals[handle] for handle in inner}
        texts = {handle: inner_original.text for handle, inner_original in inner_originals.items()}
        text = _replace_handles(original.text, texts)
        depths = [
            source.depth for source in (original, *inner_originals.values()) if source.spelling is not None
        ]
        if not depths:
            return Original(text)
        depth = depths[0]
        enclosing = original.spelling or json_escaped(original.text, depth)
        spellings = {handle: inner_original.at(depth) for handle, inner_original in inner_originals.items()}
        spelling = _replace_handles(enclosing, spellings)
        return Original(text) if spelling == json_escaped(text, depth) else Original(text, spelling, depth)


class Additions:
    """What a step adds to a context that did not come from it: text of its edits, and new items."""

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
        """Return the handles that an edit repeats from the text it replaces, since the edit only moved that text."""
        repeated: set[Handle] = set()
        for number in self._numbers:
            edit = self.context.edits[number]
            before = {
                match.handle for match in find_handles(edit.value.text[edit.start : edit.end], exact=True)
            }
            repeated |= before & {match.handle for match in find_handles(str(edit.replacement), exact=True)}
        return frozenset(repeated)

    def replaced(self, items: Sequence[Any]) -> Context:
        """Return the step's context with ``items`` in place of the items it adds."""
        edits = list(self.context.edits)
        for number, item in zip(self._numbers, items[: len(self._numbers)], strict=True):
            edits[number] = _with_replacement(edits[number], item["text"])
        added = tuple(items[len(self._numbers) :])
        return replace(self.context, edits=tuple(edits), added=added)


def _with_replacement(edit: RawEdit, text: str) -> RawEdit:
    return replace(edit, replacement=text)


def _is_temporary_handle(pending: PendingConceal, temporary: Collection[Handle]) -> bool:
    handle = Handle.parse(pending.original.text) if pending.original.text.startswith("[") else None
    return pending.label == LITERAL and handle is not None and handle in temporary


def _with_texts(value: Any, texts: Mapping[Handle, str]) -> Any:
    if isinstance(value, str):
        return _replace_handles(value, texts)
    if isinstance(value, Mapping):
        return {key: _with_texts(member, texts) for key, member in value.items()}
    if isinstance(value, Sequence):
        return [_with_texts(element, texts) for element in value]
    return value


def _replace_handles(text: str, texts: Mapping[Handle, str]) -> str:
    pieces: list[str] = []
    position = 0
    for match in find_handles(text, exact=True):
        if match.handle in texts:
            pieces += [text[position : match.start], texts[match.handle]]
            position = match.end
    return "".join([*pieces, text[position:]])


def _changes_names(context: Context) -> bool:
    """Return whether an edit of ``context`` begins in the name of a member."""
    begins: dict[int, list[int]] = {}
    for edit in sorted(context.edits, key=lambda edit: edit.start):
        begins.setdefault(id(edit.value), []).append(edit.start)
    for leaf in context.leaves:
        if leaf.is_member_name and id(leaf.value) in begins:
            start, end = leaf.raw_range(0, len(leaf.text))
            of_value = begins[id(leaf.value)]
            number = bisect_left(of_value, start)
            if number < len(of_value) and of_value[number] < end:
                return True
    return False
