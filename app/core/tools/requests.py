"""Read from a conversation what to rank tools on: its last request, earlier turns, and the tools it used."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.content.context import Context
from app.core.content.handles import find_handles
from app.core.content.leaves import Leaf, LeafPlace
from app.core.content.shapes.tables import called_tool

_MAX_CURRENT: Final = 2_000
_MAX_EARLIER: Final = 400
_MAX_PER_TURN: Final = 200
_FEW_WORDS: Final = 4
_EARLIER_WEIGHT: Final = 0.25
_EARLIER_WEIGHT_AFTER_FEW_WORDS: Final = 0.75
_CONNECTIVES: Final = frozenset(
    {"then", "also", "plus", "afterwards", "afterward", "additionally", "furthermore"}
)
_WORD: Final = re.compile(r"[^\W_]+")
_TOOL_PLACES: Final = frozenset({LeafPlace.TOOL_RESULT, LeafPlace.STRUCTURED})
_READ_PLACES: Final = frozenset({LeafPlace.TEXT, LeafPlace.RESOURCE, *_TOOL_PLACES})


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """What to rank tools on: ``texts`` and the weight of each, the request itself first; ``used`` are tool names."""

    texts: tuple[str, ...]
    weights: tuple[float, ...]
    used: tuple[str, ...]


def request_of(context: Context) -> ToolRequest:
    """Extract the request of a conversation.

    The last user message has the weight 1. Earlier turns, the latest first, have a quarter, and more if the last
    message has few words ("yes, go ahead"). Handles such as ``[PERSON_1]`` are left out.
    """
    leaves = [leaf for leaf in context.leaves if leaf.place in _READ_PLACES and leaf.text.strip()]
    last = _last_request(leaves)
    current = " \n".join(_without_handles(leaf.text) for leaf in leaves if _item_index(leaf) == last).strip()
    earlier = _earlier_words([leaf for leaf in leaves if _item_index(leaf) != last])
    used = tuple(dict.fromkeys(_used_tools(context.items)))
    weighted = []
    if current:
        weighted.append((_ends_of(current, _MAX_CURRENT), 1.0))
    if earlier:
        weight = _EARLIER_WEIGHT_AFTER_FEW_WORDS if len(current.split()) < _FEW_WORDS else _EARLIER_WEIGHT
        weighted.append((earlier, weight if current else 1.0))
    return ToolRequest(tuple(text for text, _ in weighted), tuple(weight for _, weight in weighted), used)


def _item_index(leaf: Leaf) -> int:
    return int(leaf.value.path[0])


def _last_request(leaves: Sequence[Leaf]) -> int | None:
    """Return the index of the item with the request: the user's last; without messages, the last text."""
    requests = [leaf for leaf in leaves if leaf.place not in _TOOL_PLACES]
    of_user = [leaf for leaf in requests if leaf.role == "user"]
    bare = [leaf for leaf in requests if leaf.role is None]
    chosen = of_user or bare
    return _item_index(chosen[-1]) if chosen else None


def _earlier_words(leaves: Sequence[Leaf]) -> str:
    """Return words from the beginning of each earlier turn, the latest first; of tool results half as many.

    Words, not sentences: earlier turns show the topic but request nothing any more.
    """
    parts: list[str] = []
    room = _MAX_EARLIER
    for leaf in reversed(leaves):
        share = _MAX_PER_TURN // 2 if leaf.place in _TOOL_PLACES else _MAX_PER_TURN
        words = _WORD.findall(_without_handles(leaf.text[: share * 2]))
        part = " ".join(word for word in words if word.lower() not in _CONNECTIVES)[: min(room, share)]
        if part:
            parts.append(part)
            room -= len(part)
        if room <= 0:
            break
    return " ".join(parts)


def _without_handles(text: str) -> str:
    """Return ``text`` with a space in place of each handle, since originals do not matter for ranking."""
    kept, end = [], 0
    for match in find_handles(text, exact=True):
        kept += [text[end : match.start], " "]
        end = match.end
    return "".join([*kept, text[end:]])


def _ends_of(text: str, size: int) -> str:
    """Return ``text``, or only its beginning and end, since a request comes before or after its material."""
    if len(text) <= size:
        return text
    return f"{text[: size // 2]}\n{text[-size // 2 :]}"


def _used_tools(items: Sequence[Any]) -> Iterator[str]:
    for item in items:
        if not isinstance(item, Mapping):
            continue
        if (tool := called_tool(item)) is not None:
            yield tool
        content = item.get("content")
        if "role" in item and isinstance(content, Mapping | list):
            blocks = [content] if isinstance(content, Mapping) else content
            yield from (
                name
                for block in blocks
                if isinstance(block, Mapping) and (name := called_tool(block)) is not None
            )
