"""What a conversation asks of tools: its last request, what was said before, and the tools it used."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.content.context import Context
from app.core.content.handles import find_handles
from app.core.content.leaves import Leaf, LeafPlace

_CURRENT: Final = 2_000
_EARLIER: Final = 400
_TURN: Final = 200
_SAYS_LITTLE: Final = 4
_ALONE: Final = 0.25
_LEANS: Final = 0.75
_JOINTS: Final = frozenset({"then", "also", "plus", "afterwards", "afterward", "additionally", "furthermore"})
_WORD: Final = re.compile(r"[^\W_]+")
_TOOL_TEXT: Final = frozenset({LeafPlace.TOOL_RESULT, LeafPlace.STRUCTURED})
_READ: Final = frozenset({LeafPlace.TEXT, LeafPlace.RESOURCE, *_TOOL_TEXT})


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """What to rank tools on: ``texts`` with the weight of each, the request itself first; ``used`` are tools' names."""

    texts: tuple[str, ...]
    weights: tuple[float, ...]
    used: tuple[str, ...]


def request_of(context: Context) -> ToolRequest:
    """Read a conversation.

    The last user message counts in full. What came before, the latest first, counts a quarter, and more where the
    last message says little by itself ("yes, go ahead"). Handles such as ``[PERSON_1]`` are left out.
    """
    leaves = [leaf for leaf in context.leaves if leaf.place in _READ and leaf.text.strip()]
    last = _last_request(leaves)
    current = " \n".join(_plain(leaf.text) for leaf in leaves if _item(leaf) == last).strip()
    earlier = _earlier([leaf for leaf in leaves if _item(leaf) != last])
    used = tuple(dict.fromkeys(_used(context.items)))
    found = []
    if current:
        found.append((_ends_of(current, _CURRENT), 1.0))
    if earlier:
        weight = _LEANS if len(current.split()) < _SAYS_LITTLE else _ALONE
        found.append((earlier, weight if current else 1.0))
    return ToolRequest(tuple(text for text, _ in found), tuple(weight for _, weight in found), used)


def _item(leaf: Leaf) -> int:
    return int(leaf.value.path[0])


def _last_request(leaves: Sequence[Leaf]) -> int | None:
    """Return the item that asks: the last of the user's; in a context without messages the last text."""
    asks = [leaf for leaf in leaves if leaf.place not in _TOOL_TEXT]
    of_user = [leaf for leaf in asks if leaf.role == "user"]
    bare = [leaf for leaf in asks if leaf.role is None]
    chosen = of_user or bare
    return _item(chosen[-1]) if chosen else None


def _earlier(leaves: Sequence[Leaf]) -> str:
    """Return words from the beginning of each turn before, the latest first; of tool results half as many.

    Words, not sentences: what was said before says what the talk is about, but asks for nothing any more.
    """
    parts: list[str] = []
    room = _EARLIER
    for leaf in reversed(leaves):
        share = _TURN // 2 if leaf.place in _TOOL_TEXT else _TURN
        words = _WORD.findall(_plain(leaf.text[: share * 2]))
        part = " ".join(word for word in words if word.lower() not in _JOINTS)[: min(room, share)]
        if part:
            parts.append(part)
            room -= len(part)
        if room <= 0:
            break
    return " ".join(parts)


def _plain(text: str) -> str:
    """Return ``text`` with a space in place of each handle: what stands behind it is none of the ranker's business."""
    kept, end = [], 0
    for match in find_handles(text, exact=True):
        kept += [text[end : match.start], " "]
        end = match.end
    return "".join([*kept, text[end:]])


def _ends_of(text: str, size: int) -> str:
    """Return ``text``, or its beginning and its end: a request stands before or behind what it is about."""
    if len(text) <= size:
        return text
    return f"{text[: size // 2]}\n{text[-size // 2 :]}"


def _used(items: Sequence[Any]) -> Iterator[str]:
    for item in items:
        if not isinstance(item, Mapping):
            continue
        if item.get("type") == "tool_use" and isinstance(item.get("name"), str):
            yield item["name"]
        content = item.get("content")
        if "role" in item and isinstance(content, Mapping | list):
            blocks = [content] if isinstance(content, Mapping) else content
            yield from (
                block["name"]
                for block in blocks
                if isinstance(block, Mapping)
                and block.get("type") == "tool_use"
                and isinstance(block.get("name"), str)
            )
