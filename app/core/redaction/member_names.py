"""Add the names of values in structured data: the value of ``password`` is a secret, whatever it looks like."""

import re
from collections.abc import Sequence
from typing import Final

from app.core.content.leaves import Leaf
from app.core.contracts.engines import Span

_NAME: Final = re.compile(r"[\w .\-]{1,100}", re.ASCII)
_LONGEST_VALUE: Final = 1_000
"""Longer values are documents, which are scanned without a name."""
_QUOTES: Final = ('"', "'", "`")
_ENTRY_NAMES: Final = ("name", "key", "Name", "Key")
_ENTRY_VALUES: Final = frozenset({"value", "Value"})


class NamedTexts:
    """The texts of leaves in the form of source code: ``"password": "…"`` if a value has a name.

    So a detector that relies on names finds the same in structured data as in text; ``spans_in_values`` converts its
    findings back to offsets in the values.
    """

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves
        entries = {leaf.pointer: leaf.text for leaf in leaves if leaf.pointer.endswith(_ENTRY_NAMES)}
        self._prefixes = [_prefix(leaf, entries) for leaf in leaves]

    @property
    def texts(self) -> list[str]:
        """Return one text per leaf."""
        return [
            prefix + leaf.scannable + prefix[-1:]
            for leaf, prefix in zip(self._leaves, self._prefixes, strict=True)
        ]

    def spans_in_values(self, spans: Sequence[Sequence[Span]]) -> list[list[Span]]:
        """Convert ``spans`` of the texts to spans of the leaves; drop those that only touch a name."""
        return [
            list(text_spans) if not prefix else list(_spans_in_value(text_spans, len(prefix), len(leaf.text)))
            for leaf, prefix, text_spans in zip(self._leaves, self._prefixes, spans, strict=True)
        ]


def _spans_in_value(spans: Sequence[Span], begin: int, length: int) -> list[Span]:
    shifted = [
        Span(max(span.start - begin, 0), min(span.end - begin, length), span.label, span.score)
        for span in spans
    ]
    return [span for span in shifted if span.start < span.end]


def _prefix(leaf: Leaf, entries: dict[str, str]) -> str:
    """Return the text before the value, up to its opening quote; empty if it has no usable name."""
    if len(leaf.text) > _LONGEST_VALUE or "\n" in leaf.text:
        return ""
    name = _name_of(leaf.pointer, entries)
    quote = next((quote_mark for quote_mark in _QUOTES if quote_mark not in leaf.text), None)
    if quote is None or _NAME.fullmatch(name) is None:
        return ""
    return f'"{name}": {quote}'


def _name_of(pointer: str, entries: dict[str, str]) -> str:
    """Return the name of the value at ``pointer``; elements of a list have the name of the list."""
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
