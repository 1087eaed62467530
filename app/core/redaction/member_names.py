"""The names that values have in data: what ``password`` is called is a secret, whatever it looks like by itself."""

import re
from collections.abc import Sequence
from typing import Final

from app.core.content.leaves import Leaf
from app.core.contracts.engines import Span

_NAME: Final = re.compile(r"[\w .\-]{1,100}", re.ASCII)
_LONGEST: Final = 1_000
"""Longer values are documents, which are judged by themselves."""
_QUOTES: Final = ('"', "'", "`")
_ENTRY_NAMES: Final = ("name", "key", "Name", "Key")
_ENTRY_VALUES: Final = frozenset({"value", "Value"})


class NamedTexts:
    """The texts of leaves as a program would write them: ``"password": "…"`` where a value has a name.

    A detector that goes by names finds in structured data what it finds in text; ``own`` turns what it found back
    into offsets of the values.
    """

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves
        entries = {leaf.pointer: leaf.text for leaf in leaves if leaf.pointer.endswith(_ENTRY_NAMES)}
        self._heads = [_head(leaf, entries) for leaf in leaves]

    @property
    def texts(self) -> list[str]:
        """Return one text for each leaf."""
        return [
            head + leaf.scannable + head[-1:] for leaf, head in zip(self._leaves, self._heads, strict=True)
        ]

    def own(self, spans: Sequence[Sequence[Span]]) -> list[list[Span]]:
        """Return ``spans`` of the texts as those of the leaves; what touches only a name is left out."""
        return [
            list(found) if not head else list(_inside(found, len(head), len(leaf.text)))
            for leaf, head, found in zip(self._leaves, self._heads, spans, strict=True)
        ]


def _inside(found: Sequence[Span], begin: int, length: int) -> list[Span]:
    moved = [
        Span(max(one.start - begin, 0), min(one.end - begin, length), one.label, one.score) for one in found
    ]
    return [one for one in moved if one.start < one.end]


def _head(leaf: Leaf, entries: dict[str, str]) -> str:
    """Return what stands before the value, up to its opening quote; empty where it has no name to go by."""
    if len(leaf.text) > _LONGEST or "\n" in leaf.text:
        return ""
    name = _name(leaf.pointer, entries)
    quote = next((one for one in _QUOTES if one not in leaf.text), None)
    if quote is None or _NAME.fullmatch(name) is None:
        return ""
    return f'"{name}": {quote}'


def _name(pointer: str, entries: dict[str, str]) -> str:
    """Return the name of the value at ``pointer``; elements of a list have that of the list."""
    steps = pointer.replace("#", "").split("/")
    while steps and (not steps[-1] or steps[-1].isdigit()):
        steps.pop()
    if not steps:
        return ""
    if steps[-1] in _ENTRY_VALUES:
        parent = pointer[: -len(steps[-1])]
        for name in _ENTRY_NAMES:
            if parent + name in entries:
                return entries[parent + name]
    return steps[-1].replace("~1", "/").replace("~0", "~")
