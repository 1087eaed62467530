"""Parse context items (MCP content blocks, messages, tool calls and results) into leaves."""

import base64
import binascii
import re
from typing import Any

from app.core.content.leaves import ContextValue, LeafPlace
from app.core.content.walking import (
    TEXT_MIME,
    ContextReading,
    Path,
    ValueReader,
    is_fixed,
    pointer_of,
    type_name,
)
from app.core.errors import InvalidArgumentsError, TooLargeError

MAX_BLOCKS = 4_096
MAX_DEPTH = 64

REASONING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Reasoning blocks; a signed one is never touched, since changing a character voids the signature."""

_SEAL_FIELDS = ("signature", "encrypted_content", "data")


def read_items(items: Any, *, max_blocks: int, max_depth: int, strict: bool) -> ContextReading:
    """Parse a list of context items; raise InvalidArgumentsError or TooLargeError. See ``Context.parse``."""
    if not isinstance(items, list):
        raise InvalidArgumentsError(
            "The context must be a list of content items.", details={"pointer": "/context"}
        )
    reader = _Reader(max_blocks, max_depth, strict)
    for index, item in enumerate(items):
        reader.item((index,), item)
    reading = reader.reading
    # Text is added to the last user message that has text; without messages, to the first text item.
    messages = sorted({value.path[0] for value, is_message in reader.openings if is_message}, reverse=True)
    last_message = messages[0] if messages else None
    reading.user_texts = [
        value
        for value, is_message in reader.openings
        if (is_message and value.path[0] == last_message) or (not is_message and not reader.has_messages)
    ]
    return reading


class _Reader:
    def __init__(self, max_blocks: int, max_depth: int, strict: bool) -> None:
        self.max_blocks = max_blocks
        self.max_depth = max_depth
        self.strict = strict
        self.values = ValueReader(max_depth)
        self.reading = self.values.reading
        self.openings: list[tuple[ContextValue, bool]] = []
        self.has_messages = False

    def item(self, path: Path, item: Any) -> None:
        """Parse one item of the list: a message, a block or a bare string."""
        if isinstance(item, dict) and "role" in item and item.get("type", "message") == "message":
            self._parse_message(path, item)
        elif isinstance(item, str):
            self._count_block(path)
            self._add_opening(self.values.add_text(path, item, LeafPlace.TEXT, None), is_message=False)
        elif isinstance(item, dict):
            self._parse_block(path, item, LeafPlace.TEXT, None, opens=True)
        else:
            raise self._fault(path, "A context item must be an object or a string.")

    def _parse_message(self, path: Path, item: dict[str, Any]) -> None:
        self._count_block(path)
        self.has_messages = True
        role = item["role"]
        if not isinstance(role, str):
            raise self._fault((*path, "role"), "A message's role must be a string.")
        place = LeafPlace.TOOL_RESULT if role == "tool" else LeafPlace.TEXT
        content = item.get("content")
        if not isinstance(content, str | dict | list | None):
            raise self._fault(
                (*path, "content"), "A message's content must be a string, a block or a list of blocks."
            )
        self._parse_content((*path, "content"), content, place, role)
        self._parse_tool_calls((*path, "tool_calls"), item.get("tool_calls"), role)
        self._parse_function((*path, "function_call"), item.get("function_call"), role)
        self._fields(path, item, {"content", "tool_calls", "function_call"}, role)

    def _parse_content(self, path: Path, content: Any, place: LeafPlace, role: str | None) -> None:
        opens = role == "user" and place is LeafPlace.TEXT
        if isinstance(content, str):
            value = self.values.add_text(path, content, place, role)
            if opens:
                self._add_opening(value, is_message=True)
        elif isinstance(content, dict):
            self._parse_block(path, content, place, role, opens=opens, in_message=True)
        elif isinstance(content, list):
            for index, block in enumerate(content):
                step = (*path, index)
                if isinstance(block, dict):
                    self._parse_block(step, block, place, role, opens=opens, in_message=True)
                else:
                    self._count_block(step)
                    self.values.walk(step, block, place, role)
        elif content is not None:
            self.values.walk(path, content, place, role)

    def _parse_tool_calls(self, path: Path, calls: Any, role: str | None) -> None:
        """Parse the tool calls that an assistant message has beside its content."""
        if not isinstance(calls, list):
            self.values.walk(path, calls, LeafPlace.FIELD, role)
            return
        for index, call in enumerate(calls):
            step = (*path, index)
            if isinstance(call, dict):
                for name in ("function", "custom"):
                    self._parse_function((*step, name), call.get(name), role)
                self._fields(step, call, {"function", "custom"}, role)
            else:
                self.values.walk(step, call, LeafPlace.FIELD, role)

    def _parse_function(self, path: Path, function: Any, role: str | None) -> None:
        """Parse the arguments of a tool call: JSON text in ``arguments``, or free text in ``input``."""
        if not isinstance(function, dict):
            self.values.walk(path, function, LeafPlace.FIELD, role)
            return
        name = function.get("name")
        tool = name if isinstance(name, str) else None
        for member in ("arguments", "input"):
            self.values.walk((*path, member), function.get(member), LeafPlace.TOOL_INPUT, role, tool)
        self._fields(path, function, {"arguments", "input"}, role)

    def _parse_block(
        self,
        path: Path,
        block: dict[str, Any],
        place: LeafPlace,
        role: str | None,
        *,
        opens: bool = False,
        in_message: bool = False,
    ) -> None:
        self._count_block(path)
        kind = type_name(block)
        match kind:
            case "text":
                if not isinstance(block.get("text"), str):
                    raise self._fault((*path, "text"), "A text block needs a string in text.")
                value = self.values.add_text((*path, "text"), block["text"], place, role)
                if opens:
                    self._add_opening(value, is_message=in_message)
                self._fields(path, block, {"text"}, role)
            case "image" | "audio":
                self.reading.unscanned[kind] += 1
                self._fields(path, block, {"source", "data"}, role)
            case "resource_link":
                self._parse_link(path, block, place, role)
            case "resource":
                self._parse_resource(path, block, place, role)
            case "tool_use":
                tool = block.get("name") if isinstance(block.get("name"), str) else None
                self.values.walk((*path, "input"), block.get("input"), LeafPlace.TOOL_INPUT, role, tool)
                self._fields(path, block, {"input"}, role)
            case "tool_result":
                self._parse_tool_result(path, block, role)
            case _ if kind in REASONING_TYPES:
                self._parse_reasoning(path, block, place, role)
            case None if isinstance(block.get("content"), list) or "structuredContent" in block:
                self._parse_tool_result(path, block, role)
            case _ if place is LeafPlace.TOOL_RESULT:
                self.values.walk(path, block, place, role)
            case _:
                self._skip_unknown(path, kind)

    def _parse_reasoning(self, path: Path, block: dict[str, Any], place: LeafPlace, role: str | None) -> None:
        if any(block.get(name) for name in _SEAL_FIELDS):
            self.reading.unscanned["reasoning"] += 1
            return
        for name, value in block.items():
            if not is_fixed(name, value):
                self.values.walk((*path, name), value, place, role)

    def _skip_unknown(self, path: Path, kind: str | None) -> None:
        if self.strict:
            raise self._fault((*path, "type"), "Unknown type of context item; strict: true refuses it.")
        # A type that is not a plain name may be content, and metadata must not repeat content.
        name = kind if kind is not None and re.fullmatch(r"[a-z][a-z0-9_./-]{0,40}", kind) else "unknown"
        self.reading.skipped[name] += 1
        self.reading.unscanned["unknown"] += 1

    def _parse_tool_result(self, path: Path, block: dict[str, Any], role: str | None) -> None:
        self._parse_content((*path, "content"), block.get("content"), LeafPlace.TOOL_RESULT, role)
        self.values.walk(
            (*path, "structuredContent"), block.get("structuredContent"), LeafPlace.STRUCTURED, role
        )
        self._fields(path, block, {"content", "structuredContent"}, role)

    def _parse_link(self, path: Path, block: dict[str, Any], place: LeafPlace, role: str | None) -> None:
        parsed = {name for name in ("title", "description", "uri") if isinstance(block.get(name), str)}
        for name in ("title", "description"):
            if name in parsed:
                self.values.add_text((*path, name), block[name], place, role)
        if "uri" in parsed:
            self.values.add_leaf((*path, "uri"), block["uri"], LeafPlace.URI, role)
        self._fields(path, block, parsed, role)

    def _parse_resource(self, path: Path, block: dict[str, Any], place: LeafPlace, role: str | None) -> None:
        inner = block.get("resource")
        if not isinstance(inner, dict):
            raise self._fault((*path, "resource"), "An embedded resource needs an object in resource.")
        step = (*path, "resource")
        place = place if place is LeafPlace.TOOL_RESULT else LeafPlace.RESOURCE
        parsed = {name for name in ("uri", "text", "blob") if isinstance(inner.get(name), str)}
        if "uri" in parsed:
            self.values.add_leaf((*step, "uri"), inner["uri"], LeafPlace.URI, role)
        if "text" in parsed:
            self.values.add_text((*step, "text"), inner["text"], place, role)
        if "blob" in parsed:
            self._parse_blob((*step, "blob"), inner, place, role)
        self._fields(step, inner, parsed, role)
        self._fields(path, block, {"resource"}, role)

    def _parse_blob(self, path: Path, inner: dict[str, Any], place: LeafPlace, role: str | None) -> None:
        mime = inner.get("mimeType")
        if isinstance(mime, str) and TEXT_MIME.match(mime):
            try:
                text = base64.b64decode(inner["blob"], validate=True).decode()
            except (binascii.Error, UnicodeDecodeError, ValueError):
                pass
            else:
                self.values.add_text(path, text, place, role, encoding="base64")
                return
        self.reading.unscanned["blob"] += 1

    def _fields(self, path: Path, block: dict[str, Any], parsed: set[str], role: str | None) -> None:
        """Report, but never change, strings in fields that are not in ``parsed``."""
        for name, value in block.items():
            if name not in parsed and not is_fixed(name, value):
                self.values.walk((*path, name), value, LeafPlace.FIELD, role)

    def _add_opening(self, value: ContextValue, *, is_message: bool) -> None:
        self.openings.append((value, is_message))

    def _count_block(self, path: Path) -> None:
        self.reading.blocks += 1
        if self.reading.blocks > self.max_blocks:
            raise TooLargeError(
                f"The context has more than {self.max_blocks} blocks.",
                details={"limit": "max_blocks", "value": self.max_blocks},
            )
        if len(path) > self.max_depth:
            raise TooLargeError(
                f"The context is nested deeper than {self.max_depth} levels.",
                details={"limit": "max_depth", "value": self.max_depth},
            )

    def _fault(self, path: Path, message: str) -> InvalidArgumentsError:
        return InvalidArgumentsError(message, details={"pointer": "/context" + pointer_of(path)})
