"""Add the names of values in structured data: the value of ``password`` is a secret, whatever it looks like."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from app.core.content.leaves import Leaf, LeafPlace
from app.core.content.shapes.heads import ABOUT_ROWS, COLUMNS, plain_pointer, tables
from app.core.content.telling_names import JOINED_NAMES, VALUE_NAMES, cue_of, names_words, telling
from app.core.contracts.engines import Span
from app.core.redaction.joined_values import joined_values

_NAME: Final = re.compile(r"[\w .\-]{1,100}", re.ASCII)
_LONGEST_VALUE: Final = 1_000
"""Longer values are documents, which are scanned without a name."""
_MIN_DIGITS: Final = 7
"""A number with fewer digits identifies nobody by itself."""
_QUOTES: Final = ('"', "'", "`")
_DIGIT: Final = re.compile(r"\d")
_ENTRY_NAMES: Final = ("name", "key", "Name", "Key")
_MORE_ENTRY_NAMES: Final = (
    *_ENTRY_NAMES,
    *("label", "Label", "field", "Field", "property", "question", "title", "Title", "type"),
)
Path = tuple[str | int, ...]
Frame = Callable[[Leaf, "MemberNames"], str]
"""From a leaf to the text before it, whose last character also follows it; empty where it has no usable name."""


class NamedTexts:
    """The texts of leaves in the form of source code: ``"password": "…"`` if a value has a name.

    So a detector that relies on names finds the same in structured data as in text; ``spans_in_values`` converts its
    findings back to offsets in the values. ``frame`` chooses the names.
    """

    def __init__(self, leaves: Sequence[Leaf], frame: Frame | None = None) -> None:
        self._leaves = leaves
        self._names = names = MemberNames(leaves)
        frame = frame or _any_name
        self._prefixes = [frame(leaf, names) for leaf in leaves]
        self._joined = joined_values(leaves, names.cue)

    @property
    def texts(self) -> list[str]:
        """Return one text per leaf, and then one per value that several leaves form."""
        alone = [
            prefix + leaf.scannable + prefix[-1:] if prefix or not _is_short_number(leaf) else ""
            for leaf, prefix in zip(self._leaves, self._prefixes, strict=True)
        ]
        return [*alone, *(joined.text for joined in self._joined)]

    def nameless(self, runs: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return ``runs`` of positions without the texts that have a name; a run has two texts or more."""
        shorter = ([place for place in run if not self._prefixes[place]] for run in runs)
        return [run for run in shorter if len(run) > 1]

    def spans_in_values(self, spans: Sequence[Sequence[Span]]) -> list[list[Span]]:
        """Convert ``spans`` of the texts to spans of the leaves; drop those that only touch a name."""
        of_leaves, of_joined = spans[: len(self._leaves)], spans[len(self._leaves) :]
        moved_spans = [
            list(text_spans)
            if not prefix
            else [moved for span in text_spans if (moved := self.span_in_value(place, span)) is not None]
            for place, (prefix, text_spans) in enumerate(zip(self._prefixes, of_leaves, strict=True))
        ]
        for joined, findings in zip(self._joined, of_joined, strict=True):
            for place, whole in joined.spans(findings, self._leaves):
                moved_spans[place] = moved_spans[place] or [whole]
        return moved_spans

    def alone(
        self, spans: Sequence[Sequence[Span]], joined: Collection[int]
    ) -> Iterator[tuple[Path, tuple[Span, ...]]]:
        """Yield the path of each text that is scanned as it stands, and is all of its item, and its ``spans``.

        ``joined`` are positions of texts that are scanned with others.
        """
        places = {place for value in self._joined for place in value.places}.union(joined)
        of_item = Counter(leaf.value.path[0] for leaf in self._leaves)
        for place, (leaf, prefix) in enumerate(zip(self._leaves, self._prefixes, strict=True)):
            stands = not prefix and not leaf.depth and place not in places and leaf.value.is_plain_text
            if stands and of_item[leaf.value.path[0]] == 1:
                yield leaf.value.path, tuple(spans[place])

    def own_name(self, place: int) -> str:
        """Return the name of the value of the leaf at ``place``."""
        return self._names.own(self._leaves[place].pointer)

    def joined_places(self, number: int) -> Sequence[int]:
        """Return the positions of the leaves that the text at ``number`` stands for."""
        return (number,) if number < len(self._leaves) else self._joined[number - len(self._leaves)].places

    def span_in_value(self, place: int, span: Span) -> Span | None:
        """Convert a span of the text at ``place`` to one of the leaf; None if it only touches the name."""
        begin, length = len(self._prefixes[place]), len(self._leaves[place].text)
        start, end = max(span.start - begin, 0), min(span.end - begin, length)
        return Span(start, end, span.label, span.score) if start < end else None


class MemberNames:
    """The names of the values of one context, also those in the heads of tables and beside a ``value``."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._entries = {
            leaf.pointer: leaf.text for leaf in leaves if leaf.pointer.endswith(_MORE_ENTRY_NAMES)
        }
        self._columns, self._first_rows = tables(
            (leaf.pointer, leaf.text) for leaf in leaves if leaf.place is not LeafPlace.NUMBER
        )

    def own(self, pointer: str) -> str:
        """Return the name of the value at ``pointer``; elements of a list have the name of the list."""
        steps = _steps(pointer)
        named = self._in_table(steps) or self._in_entry(pointer, steps[-1], _ENTRY_NAMES)
        if named:
            return named
        while steps and (not steps[-1] or steps[-1].isdecimal()):
            steps.pop()
        return _unescaped(steps[-1]) if steps else ""

    def cue(self, pointer: str) -> str:
        """Return the words that say what the value at ``pointer`` is; empty if nothing does."""
        last = pointer[pointer.rfind("/") + 1 :]
        tabled = self._columns or self._first_rows
        if last.lower() not in JOINED_NAMES and not last[-1:].isdecimal() and not tabled:
            return telling(_unescaped(last).rstrip("#"))
        steps = _steps(pointer)
        named = self._in_table(steps) or self._in_entry(*_without_positions(pointer), _MORE_ENTRY_NAMES)
        return telling(named) if named else cue_of([_unescaped(step) for step in steps if step])

    def _in_entry(self, pointer: str, own: str, names: Sequence[str]) -> str:
        """Return the name beside a value: ``{"name": "dob", "value": ...}``; the first of ``names`` wins."""
        if own.lower() not in VALUE_NAMES:
            return ""
        parent = pointer[: -len(own)]
        return next((self._entries[parent + name] for name in names if parent + name in self._entries), "")

    def _in_table(self, steps: Sequence[str]) -> str:
        """Return the head of the column of a cell."""
        if not (self._columns or self._first_rows):
            return ""
        end = len(steps)
        if end and steps[end - 1].lower() in VALUE_NAMES:
            end -= 1
        if not end or not steps[end - 1].isdecimal():
            return ""
        column = steps[end - 1]
        if end > 1 and steps[end - 2].isdecimal():
            heads = self._first_rows.get("/".join(steps[: end - 2]))
            if heads is not None:
                return heads.get(column, "") if steps[end - 2] != "0" else ""
        for depth in range(end - 1, -1, -1) if self._columns else ():
            heads = self._columns.get("/".join(steps[:depth]))
            if heads is not None:
                return heads.get(column, "") if steps[depth] not in COLUMNS | ABOUT_ROWS else ""
        return ""


def personal_frame(leaf: Leaf, names: MemberNames) -> str:
    """Return the text before a value whose name says which personal data it is."""
    cue = "" if leaf.place is LeafPlace.KEY else names.cue(leaf.pointer)
    if not cue or not (_DIGIT.search(leaf.text) or not leaf.text.isascii() or names_words(cue)):
        return ""
    quote = next((quote_mark for quote_mark in _QUOTES if quote_mark not in leaf.text), " ")
    return f'"{cue}": {quote}'


def _is_short_number(leaf: Leaf) -> bool:
    """Return whether this is a number that only its name can make personal."""
    return leaf.place is LeafPlace.NUMBER and (
        len(leaf.text) < _MIN_DIGITS or not leaf.text.lstrip("-").isdigit()
    )


def _any_name(leaf: Leaf, names: MemberNames) -> str:
    """Return the text before any value with a name, up to its opening quote."""
    if len(leaf.text) > _LONGEST_VALUE or "\n" in leaf.text:
        return ""
    name = names.own(leaf.pointer)
    quote = next((quote_mark for quote_mark in _QUOTES if quote_mark not in leaf.text), None)
    if quote is None or _NAME.fullmatch(name) is None:
        return ""
    return f'"{name}": {quote}'


def _without_positions(pointer: str) -> tuple[str, str]:
    """Return the pointer of the outermost list around a value, or its own, and the last step of it."""
    around, _, own = pointer.rpartition("/")
    while own.isdecimal() and around:
        pointer = around
        around, _, own = pointer.rpartition("/")
    return pointer, own


def _steps(pointer: str) -> list[str]:
    return plain_pointer(pointer).split("/")


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")
