"""Parts of a payload: some items, how to write them back, and the forms that a place takes additions in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.content.context import drop_logprobs

Items = list[Any]
WriteBack = Callable[[Items, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """Some items and how to write them back.

    ``path`` is the place of the items in the body; ``each``: it is a list with one entry per item. ``takes`` converts
    items that a middleware puts in front to entries of this place; None: it takes none.
    """

    path: tuple[str | int, ...]
    items: Items
    back: WriteBack
    each: bool = False
    takes: Callable[[Any], Any] | None = None
    skipped: int = 1
    """How many steps of a path in an item do not exist in the payload."""


def writes_member(name: str, value: Callable[[Any], Any] | None = None, *, each: bool = False) -> WriteBack:
    """Return a function that writes a member: the value of its item, or a list with all of them (``each``)."""

    def back(items: Items, body: dict[str, Any]) -> None:
        body[name] = list(items) if each or value is None else value(items[0])

    return back


def writes_entry(member: str, number: int, name: str, value: Callable[[Any], Any]) -> WriteBack:
    """Return a function that writes a member of an entry of a list."""

    def back(items: Items, body: dict[str, Any]) -> None:
        entries = list(body[member])
        made = value(items[0])
        is_changed = made != entries[number].get(name)
        entries[number] = {**entries[number], name: made}
        if is_changed:
            drop_logprobs(entries[number], name)
        body[member] = entries

    return back


def writes_inner(member: str, name: str, value: Callable[[Any], Any]) -> WriteBack:
    """Return a function that writes a member of an object."""

    def back(items: Items, body: dict[str, Any]) -> None:
        body[member] = {**body[member], name: value(items[0])}

    return back


def merges(value: Callable[[Items], Any]) -> WriteBack:
    """Return a function that writes the members of an object back."""

    def back(items: Items, body: dict[str, Any]) -> None:
        body.update(value(items))

    return back


def unchanged(item: Any) -> Any:
    """Return an item as it is."""
    return item


def as_block(item: Any) -> Any:
    """Return a message in the form of MCP sampling, in which content is a block."""
    content = item.get("content") if isinstance(item, dict) else None
    if isinstance(content, str):
        return {**item, "content": {"type": "text", "text": content}}
    return item if content is not None else {"role": "user", "content": item}


def as_message(item: Any) -> Any:
    """Return an item as a message."""
    if isinstance(item, dict) and "role" in item:
        return item
    return {"role": "user", "content": item["text"] if isinstance(item, dict) and "text" in item else item}


def is_list_of_texts(value: Any) -> bool:
    """Return whether this is a list of strings, the form in which some APIs take prompts."""
    return isinstance(value, Sequence) and bool(value) and all(isinstance(text, str) for text in value)


def as_text(item: Any) -> Any:
    """Return an item as a text, for a list of texts."""
    return item["text"] if isinstance(item, dict) and isinstance(item.get("text"), str) else item


def with_role(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message that has a role."""
    return message if isinstance(message.get("role"), str) else {**message, "role": "assistant"}


def without_added_role(message: Mapping[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """Return ``item`` without the role that ``with_role`` added to ``message``."""
    return {key: member for key, member in item.items() if key in message or key != "role"}
