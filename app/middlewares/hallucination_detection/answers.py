"""Find the model's answer in a context, and the texts that it may rely on."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.content.context import Context
from app.core.content.leaves import REPORTED_PLACES, Leaf, LeafPlace

ANSWERING_ROLES: Final = frozenset({"assistant", "model", "ai"})

_IDENTIFIER: Final = re.compile(r"(?=[^\d]{0,40}\d)[A-Za-z0-9][A-Za-z0-9_.:#-]{5,63}")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ][\d:.+Z-]*)?|[\d.,:-]+")
_MAX_IDENTIFIERS: Final = 50


@dataclass(frozen=True, slots=True)
class Source:
    """A text that an answer may rely on; ``leaf`` None: values of structured data, written out with their names."""

    text: str
    item: int
    origin: str
    leaf: Leaf | None = None


@dataclass(frozen=True, slots=True)
class AnswerTexts:
    """The texts of an answer, its tool arguments, and the sources it may rely on."""

    item: int
    texts: tuple[Leaf, ...]
    tool_inputs: tuple[Leaf, ...]
    sources: tuple[Source, ...]


def answer_of(context: Context) -> AnswerTexts | None:
    """Return the last assistant message or, without messages, the last text item; None if there is none."""
    item = _last_answer(context.items)
    if item is None:
        return None
    own_leaves = [leaf for leaf in context.leaves if leaf.value.path[0] == item]
    earlier_leaves = [leaf for leaf in context.leaves if int(leaf.value.path[0]) < item]
    return AnswerTexts(
        item,
        tuple(leaf for leaf in own_leaves if leaf.place is LeafPlace.TEXT),
        tuple(leaf for leaf in own_leaves if leaf.place is LeafPlace.TOOL_INPUT),
        tuple(_sources(context.items[:item], earlier_leaves, "context")),
    )


def evidence_of(evidence: Context) -> tuple[Source, ...]:
    """Return the texts of context items that a caller sends as evidence."""
    return tuple(_sources(evidence.items, evidence.leaves, "evidence"))


def _last_answer(items: Sequence[Any]) -> int | None:
    numbers = range(len(items) - 1, -1, -1)
    if any(isinstance(item, dict) and "role" in item for item in items):
        roles = (item.get("role") if isinstance(item, dict) else None for item in reversed(items))
        return next(
            (number for number, role in zip(numbers, roles, strict=True) if role in ANSWERING_ROLES), None
        )
    return next((number for number in numbers if _is_text(items[number])), None)


def _is_text(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, dict) and item.get("type") == "text")


def _sources(items: Sequence[Any], leaves: Sequence[Leaf], origin: str) -> Iterator[Source]:
    for leaf in leaves:
        yield Source(leaf.text, int(leaf.value.path[0]), origin, leaf)
    # Leaves omit short numbers and the names of fields, which an answer may legitimately repeat.
    structured: dict[int, list[str]] = {}
    seen: set[int] = set()
    for leaf in leaves:
        if leaf.depth and id(leaf.value) not in seen:
            seen.add(id(leaf.value))
            structured.setdefault(int(leaf.value.path[0]), []).extend(_values_in_json(leaf.value.text))
    for number, item in enumerate(items):
        written = [*_data_of_item(item), *structured.get(number, ())]
        if written:
            yield Source("\n".join(written), number, origin)


def _values_in_json(text: str) -> Iterator[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    yield from _values(value, "")


def _data_of_item(item: Any) -> Iterator[str]:
    """Yield the structured data of an item: arguments and results of tools."""
    if not isinstance(item, dict):
        return
    for name in ("input", "structuredContent"):
        if name in item:
            yield from _values(item[name], "")
    content = item.get("content")
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, dict):
            yield from _data_of_item(block)


def _values(value: Any, name: str) -> Iterator[str]:
    """Yield `name: value` for every value inside; the context's depth limit bounds the recursion."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _values(child, _as_words(str(key)))
    elif isinstance(value, list):
        for child in value:
            yield from _values(child, name)
    elif isinstance(value, str):
        yield f"{name}: {value}." if name else value
    elif value is not None:
        yield f"{name}: {json.dumps(value)}."


def _as_words(name: str) -> str:
    """Return a field's name, such as unitPrice or unit_price, as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name)


def invented_identifiers(leaves: Sequence[Leaf], sources: Sequence[Source]) -> list[Leaf]:
    """Return the values among ``leaves`` that look like identifiers and do not occur in ``sources``."""
    candidates = [
        leaf
        for leaf in leaves
        if leaf.place not in REPORTED_PLACES
        and _IDENTIFIER.fullmatch(leaf.text)
        and not _DATE.fullmatch(leaf.text)
    ]
    texts = [source.text.lower() for source in sources]
    return [
        leaf for leaf in candidates[:_MAX_IDENTIFIERS] if not any(leaf.text.lower() in text for text in texts)
    ]
