"""Convert between messages of completion APIs and the context items that middlewares read."""

from collections.abc import Sequence
from typing import Any, Final

from app.core.content.hook_items import free_items, free_value
from app.core.content.parsing import REASONING_TYPES
from app.core.content.walking import BLOCK_TYPES

_CALL_TYPE: Final = "function_call"
_TEXT_TYPES: Final = frozenset({"input_text", "output_text"})
"""Types of text blocks that are not called ``text``."""

_FOREIGN_TYPES: Final = frozenset({"document", "search_result", "refusal", "web_search_tool_result"})
"""Types of blocks whose text is not the speaker's; they are read at any depth, like a tool's result."""

Steps = list[str | int]


def as_item(native: Any) -> Any:
    """Return a message, or any other entry of a list of messages, as a context item."""
    if not isinstance(native, dict):
        return native
    if _is_message(native):
        content = native.get("content")
        if isinstance(content, list) and any(_is_foreign(block) for block in content):
            return {**native, "content": [_block_as_item(block) for block in content]}
        return native
    if _is_call(native):
        arguments = {"arguments": native["arguments"]}
        return {
            "type": "tool_use",
            "id": native.get("call_id"),
            "name": native.get("name"),
            "input": arguments,
        }
    if native.get("type") in BLOCK_TYPES | REASONING_TYPES or "type" not in native:
        return native
    return free_items(native)[0]


def as_native(native: Any, item: Any) -> Any:
    """Return ``item``, which a middleware made from the item of ``native``, in the form of ``native``."""
    if as_item(native) is native:
        return item
    if _is_message(native):
        content = item.get("content")
        if isinstance(content, list) and len(content) == len(native["content"]):
            pairs = zip(native["content"], content, strict=True)
            return {**item, "content": [_block_as_native(block, changed) for block, changed in pairs]}
        return item
    if _is_call(native):
        return {**native, "arguments": item["input"]["arguments"]}
    return free_value([item])


def native_steps(native: Any, steps: Steps) -> Steps:
    """Return the path in ``native`` of what ``steps`` point to in its item."""
    if as_item(native) is native:
        return steps
    if not _is_message(native):
        return steps[1:]
    foreign = len(steps) > 1 and steps[0] == "content" and isinstance(steps[1], int)
    if foreign and steps[2:3] == ["structuredContent"]:
        return [*steps[:2], *steps[3:]]
    return steps


def is_list_of_texts(value: Any) -> bool:
    """Return whether this is a list of strings, the form in which some APIs take prompts."""
    return isinstance(value, Sequence) and bool(value) and all(isinstance(text, str) for text in value)


def _is_message(native: dict[str, Any]) -> bool:
    return "role" in native and native.get("type", "message") == "message"


def _is_call(native: dict[str, Any]) -> bool:
    return native.get("type") == _CALL_TYPE and "arguments" in native


def _is_foreign(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in _TEXT_TYPES:
        return isinstance(block.get("text"), str)
    return isinstance(kind, str) and kind in _FOREIGN_TYPES and not _is_binary(block)


def _is_binary(block: dict[str, Any]) -> bool:
    source = block.get("source")
    return isinstance(source, dict) and source.get("type") in {"base64", "url", "file"}


def _block_as_item(block: Any) -> Any:
    if not _is_foreign(block):
        return block
    return {**block, "type": "text"} if block["type"] in _TEXT_TYPES else free_items(block)[0]


def _block_as_native(block: Any, changed: Any) -> Any:
    if not _is_foreign(block):
        return changed
    return {**changed, "type": block["type"]} if block["type"] in _TEXT_TYPES else free_value([changed])
