"""Parse context items (MCP content blocks, messages, tool calls and results) into leaves."""

import base64
import binascii
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from app.core.content.json_text import JsonText, read_json_text
from app.core.content.leaves import ContextValue, Leaf, LeafPlace
from app.core.errors import InvalidArgumentsError, TooLargeError

MAX_BLOCKS = 4_096
MAX_DEPTH = 64

FIXED_FIELDS = frozenset(
    {
        *("type", "role", "mimeType", "id", "toolUseId", "tool_use_id", "tool_call_id"),
        *("signature", "isError", "is_error", "cache_control"),
    }
)
"""Fields of an item that only machines read: neither scanned nor changed, unless the value is an object or a list."""

BLOCK_TYPES = frozenset({"text", "image", "audio", "resource", "resource_link", "tool_use", "tool_result"})
_MIME_FIELDS = ("mimeType", "media_type")

REASONING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Reasoning blocks; a signed one is never touched, since changing a character voids the signature."""

_SEAL_FIELDS = ("signature", "encrypted_content", "data")

_TEXT_MIME = re.compile(
    r"text/|application/(?:[\w.+-]+\+)?(?:json|xml|yaml|x-yaml|x-ndjson)|application/toml"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_.\-]*[0-9]{0,4}")
_MIN_DIGITS = 7
"""Numbers with fewer digits identify nobody and are not scanned."""

Path = tuple[str | int, ...]


@dataclass(slots=True)
class ContextReading:
    """The result of parsing a context; see ``Context`` for the members."""

    leaves: list[Leaf] = field(default_factory=list)
    user_texts: list[ContextValue] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    unscanned: Counter[str] = field(default_factory=Counter)
    blocks: int = 0


def pointer_of(path: Path) -> str:
    """Return the JSON pointer (RFC 6901) of ``path``."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _type_name(block: dict[str, Any]) -> str | None:
    kind = block.get("type")
    return kind if isinstance(kind, str) else None


def _is_fixed(name: Any, value: Any) -> bool:
    return name in FIXED_FIELDS and not isinstance(value, dict | list)


def _is_binary(holder: dict[str, Any]) -> bool:
    """Return whether ``data`` in ``holder`` is encoded, judged by the members beside it."""
    if holder.get("type") == "base64":
        return True
    kinds = [holder[name] for name in _MIME_FIELDS if isinstance(holder.get(name), str)]
    return bool(kinds) and not any(_TEXT_MIME.match(kind) for kind in kinds)


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
        self.reading = ContextReading()
        self.openings: list[tuple[ContextValue, bool]] = []
        self.has_messages = False

    def item(self, path: Path, item: Any) -> None:
        """Parse one item of the list: a message, a block or a bare string."""
        if isinstance(item, dict) and "role" in item and item.get("type", "message") == "message":
            self._parse_message(path, item)
        elif isinstance(item, str):
            self._count_block(path)
            self._add_opening(self._add_text(path, item, LeafPlace.TEXT, None), is_message=False)
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
            value = self._add_text(path, content, place, role)
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
                    self._walk(step, block, place, role)
        elif content is not None:
            self._walk(path, content, place, role)

    def _parse_tool_calls(self, path: Path, calls: Any, role: str | None) -> None:
        """Parse the tool calls that an assistant message has beside its content."""
        if not isinstance(calls, list):
            self._walk(path, calls, LeafPlace.FIELD, role)
            return
        for index, call in enumerate(calls):
            step = (*path, index)
            if isinstance(call, dict):
                for name in ("function", "custom"):
                    self._parse_function((*step, name), call.get(name), role)
                self._fields(step, call, {"function", "custom"}, role)
            else:
                self._walk(step, call, LeafPlace.FIELD, role)

    def _parse_function(self, path: Path, function: Any, role: str | None) -> None:
        """Parse the arguments of a tool call: JSON text in ``arguments``, or free text in ``input``."""
        if not isinstance(function, dict):
            self._walk(path, function, LeafPlace.FIELD, role)
            return
        name = function.get("name")
        tool = name if isinstance(name, str) else None
        for member in ("arguments", "input"):
            self._walk((*path, member), function.get(member), LeafPlace.TOOL_INPUT, role, tool)
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
        kind = _type_name(block)
        match kind:
            case "text":
                if not isinstance(block.get("text"), str):
                    raise self._fault((*path, "text"), "A text block needs a string in text.")
                value = self._add_text((*path, "text"), block["text"], place, role)
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
                self._walk((*path, "input"), block.get("input"), LeafPlace.TOOL_INPUT, role, tool)
                self._fields(path, block, {"input"}, role)
            case "tool_result":
                self._parse_tool_result(path, block, role)
            case _ if kind in REASONING_TYPES:
                self._parse_reasoning(path, block, place, role)
            case None if isinstance(block.get("content"), list) or "structuredContent" in block:
                self._parse_tool_result(path, block, role)
            case _ if place is LeafPlace.TOOL_RESULT:
                self._walk(path, block, place, role)
            case _:
                self._skip_unknown(path, kind)

    def _parse_reasoning(self, path: Path, block: dict[str, Any], place: LeafPlace, role: str | None) -> None:
        if any(block.get(name) for name in _SEAL_FIELDS):
            self.reading.unscanned["reasoning"] += 1
            return
        for name, value in block.items():
            if not _is_fixed(name, value):
                self._walk((*path, name), value, place, role)

    def _skip_unknown(self, path: Path, kind: str | None) -> None:
        if self.strict:
            raise self._fault((*path, "type"), "Unknown type of context item; strict: true refuses it.")
        # A type that is not a plain name may be content, and metadata must not repeat content.
        name = kind if kind is not None and re.fullmatch(r"[a-z][a-z0-9_./-]{0,40}", kind) else "unknown"
        self.reading.skipped[name] += 1
        self.reading.unscanned["unknown"] += 1

    def _parse_tool_result(self, path: Path, block: dict[str, Any], role: str | None) -> None:
        self._parse_content((*path, "content"), block.get("content"), LeafPlace.TOOL_RESULT, role)
        self._walk((*path, "structuredContent"), block.get("structuredContent"), LeafPlace.STRUCTURED, role)
        self._fields(path, block, {"content", "structuredContent"}, role)

    def _parse_link(self, path: Path, block: dict[str, Any], place: LeafPlace, role: str | None) -> None:
        parsed = {name for name in ("title", "description", "uri") if isinstance(block.get(name), str)}
        for name in ("title", "description"):
            if name in parsed:
                self._add_text((*path, name), block[name], place, role)
        if "uri" in parsed:
            self._add_leaf((*path, "uri"), block["uri"], LeafPlace.URI, role)
        self._fields(path, block, parsed, role)

    def _parse_resource(self, path: Path, block: dict[str, Any], place: LeafPlace, role: str | None) -> None:
        inner = block.get("resource")
        if not isinstance(inner, dict):
            raise self._fault((*path, "resource"), "An embedded resource needs an object in resource.")
        step = (*path, "resource")
        place = place if place is LeafPlace.TOOL_RESULT else LeafPlace.RESOURCE
        parsed = {name for name in ("uri", "text", "blob") if isinstance(inner.get(name), str)}
        if "uri" in parsed:
            self._add_leaf((*step, "uri"), inner["uri"], LeafPlace.URI, role)
        if "text" in parsed:
            self._add_text((*step, "text"), inner["text"], place, role)
        if "blob" in parsed:
            self._parse_blob((*step, "blob"), inner, place, role)
        self._fields(step, inner, parsed, role)
        self._fields(path, block, {"resource"}, role)

    def _parse_blob(self, path: Path, inner: dict[str, Any], place: LeafPlace, role: str | None) -> None:
        mime = inner.get("mimeType")
        if isinstance(mime, str) and _TEXT_MIME.match(mime):
            try:
                text = base64.b64decode(inner["blob"], validate=True).decode()
            except (binascii.Error, UnicodeDecodeError, ValueError):
                pass
            else:
                self._add_text(path, text, place, role, encoding="base64")
                return
        self.reading.unscanned["blob"] += 1

    def _fields(self, path: Path, block: dict[str, Any], parsed: set[str], role: str | None) -> None:
        """Report, but never change, strings in fields that are not in ``parsed``."""
        for name, value in block.items():
            if name not in parsed and not _is_fixed(name, value):
                self._walk((*path, name), value, LeafPlace.FIELD, role)

    def _walk(
        self, path: Path, value: Any, place: LeafPlace, role: str | None, tool: str | None = None
    ) -> None:
        """Parse every string at any depth of a free JSON value."""
        if isinstance(value, str):
            self._add_text(path, value, place, role, tool)
        elif isinstance(value, bool) or value is None or isinstance(value, float):
            return
        elif isinstance(value, int):
            digits = str(value)
            if len(digits) >= _MIN_DIGITS:
                self._add_leaf(path, digits, LeafPlace.NUMBER, role, tool, encoding="number")
        elif len(path) > self.max_depth:
            raise TooLargeError(
                f"The context is nested deeper than {self.max_depth} levels.",
                details={"limit": "max_depth", "value": self.max_depth},
            )
        elif isinstance(value, dict):
            for key, child in value.items():
                if not _IDENTIFIER.fullmatch(key):
                    self._add_leaf((*path, key), key, LeafPlace.KEY, role, tool)
                self._parse_member((*path, key), value, child, place, role, tool)
        else:
            for index, child in enumerate(value):
                self._walk((*path, index), child, place, role, tool)

    def _parse_member(
        self,
        path: Path,
        parent: dict[str, Any],
        child: Any,
        place: LeafPlace,
        role: str | None,
        tool: str | None,
    ) -> None:
        """Parse a member of a free object; in a tool result it may be a block with fields that only machines read."""
        key = path[-1]
        if place is LeafPlace.TOOL_RESULT:
            if key == "data" and isinstance(child, str) and _is_binary(parent):
                self.reading.unscanned["blob"] += 1
                return
            if _type_name(parent) in BLOCK_TYPES and _is_fixed(key, child):
                return
            if key in _MIME_FIELDS or (key == "type" and "data" in parent):
                place = LeafPlace.FIELD  # the parsing depends on it, so it is reported and never changed
        self._walk(path, child, place, role, tool)

    def _add_text(
        self,
        path: Path,
        text: str,
        place: LeafPlace,
        role: str | None,
        tool: str | None = None,
        encoding: str = "text",
    ) -> ContextValue:
        value = ContextValue(path, text, encoding)
        pointer = pointer_of(path)
        parts = read_json_text(text)
        if parts is None:
            self.reading.leaves.append(Leaf(value, text, pointer, place, role, tool))
        else:
            self._add_json_parts(value, parts, place, role, tool)
        return value

    def _add_json_parts(
        self, value: ContextValue, parts: list[JsonText], place: LeafPlace, role: str | None, tool: str | None
    ) -> None:
        base = pointer_of(value.path) + "#"
        for part in parts:
            part_place = (
                place if part.kind == "string" else LeafPlace.KEY if part.kind == "key" else LeafPlace.NUMBER
            )
            if part.kind == "key" and _IDENTIFIER.fullmatch(part.text):
                continue
            if part.kind == "number" and len(part.text) < _MIN_DIGITS:
                continue
            if place is LeafPlace.FIELD:
                part_place = LeafPlace.FIELD
            pointer = base + part.pointer
            leaf = Leaf(value, part.text, pointer, part_place, role, tool, part.depth, part.offsets)
            self.reading.leaves.append(leaf)

    def _add_leaf(
        self,
        path: Path,
        text: str,
        place: LeafPlace,
        role: str | None,
        tool: str | None = None,
        encoding: str = "text",
    ) -> None:
        self.reading.leaves.append(
            Leaf(ContextValue(path, text, encoding), text, pointer_of(path), place, role, tool)
        )

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
