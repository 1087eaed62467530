"""Messages as completion interfaces write them, and the context items in which middlewares read them."""

from collections.abc import Sequence
from typing import Any, Final

from app.core.content.hook_items import free_items, free_value
from app.core.content.parsing import BLOCK_TYPES, REASONING_TYPES

_CALL: Final = "function_call"
_TEXTS: Final = frozenset({"input_text", "output_text"})
"""Text blocks under a name of their own."""

_READ_WHOLE: Final = frozenset({"document", "search_result", "refusal", "web_search_tool_result"})
"""Blocks that hold text which is not the speaker's: read at any depth, as the result of a tool is."""

Steps = list[str | int]


def as_item(native: Any) -> Any:
    """Return a message, or what stands in its place in a list of them, as a context item."""
    if not isinstance(native, dict):
        return native
    if _is_message(native):
        content = native.get("content")
        if isinstance(content, list) and any(_is_foreign(block) for block in content):
            return {**native, "content": [_shown(block) for block in content]}
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


def as_native(given: Any, item: Any) -> Any:
    """Return what a middleware made of the item of ``given`` in the form of ``given``."""
    shown = as_item(given)
    if shown is given:
        return item
    if _is_message(given):
        made = item.get("content")
        if isinstance(made, list) and len(made) == len(given["content"]):
            blocks = [_written(one, other) for one, other in zip(given["content"], made, strict=True)]
            return {**item, "content": blocks}
        return item
    if _is_call(given):
        return {**given, "arguments": item["input"]["arguments"]}
    return free_value([item])


def native_steps(given: Any, steps: Steps) -> Steps:
    """Return where in ``given`` stands what ``steps`` name in its item."""
    if as_item(given) is given:
        return steps
    if not _is_message(given):
        return steps[1:]
    foreign = len(steps) > 1 and steps[0] == "content" and isinstance(steps[1], int)
    if foreign and steps[2:3] == ["structuredContent"]:
        return [*steps[:2], *steps[3:]]
    return steps


def all_texts(value: Any) -> bool:
    """Return whether this is a list of strings, as some interfaces take prompts."""
    return isinstance(value, Sequence) and bool(value) and all(isinstance(one, str) for one in value)


def _is_message(native: dict[str, Any]) -> bool:
    return "role" in native and native.get("type", "message") == "message"


def _is_call(native: dict[str, Any]) -> bool:
    return native.get("type") == _CALL and "arguments" in native


def _is_foreign(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in _TEXTS:
        return isinstance(block.get("text"), str)
    return isinstance(kind, str) and kind in _READ_WHOLE and not _is_binary(block)


def _is_binary(block: dict[str, Any]) -> bool:
    source = block.get("source")
    return isinstance(source, dict) and source.get("type") in {"base64", "url", "file"}


def _shown(block: Any) -> Any:
    if not _is_foreign(block):
        return block
    return {**block, "type": "text"} if block["type"] in _TEXTS else free_items(block)[0]


def _written(given: Any, made: Any) -> Any:
    if not _is_foreign(given):
        return made
    return {**made, "type": given["type"]} if given["type"] in _TEXTS else free_value([made])
