"""Parse context items (messages, content blocks of all interfaces, tool calls and results) into leaves."""

from functools import cached_property
from typing import Any

from app.core.content.leaves import LeafPlace
from app.core.content.shapes.blocks import BlockReader, fault
from app.core.content.walking import ContextReading, Path, ValueReader
from app.core.errors import InvalidArgumentsError

MAX_BLOCKS = 4_096
MAX_DEPTH = 64

_TOOL_ROLES = frozenset({"tool", "function"})
_PLAIN_MEMBERS = 2
"""Most messages have a role and a text, and nothing else to read."""
_READ_MEMBERS = frozenset({"role", "content", "parts", "tool_calls", "function_call"})


def read_items(items: Any, *, max_blocks: int, max_depth: int, strict: bool) -> ContextReading:
    """Parse a list of context items; raise InvalidArgumentsError or TooLargeError. See ``Context.parse``."""
    if not isinstance(items, list):
        raise InvalidArgumentsError(
            "The context must be a list of content items.", details={"pointer": "/context"}
        )
    reader = _Reader(max_blocks, max_depth, strict)
    for index, item in enumerate(items):
        reader.item((index,), item)
    reading = reader.values.reading
    # Text is added to the last user message that has text; without messages, to the first text item.
    messages = sorted({value.path[0] for value, is_message in reading.openings if is_message}, reverse=True)
    last_message = messages[0] if messages else None
    reading.user_texts = [
        value
        for value, is_message in reading.openings
        if (is_message and value.path[0] == last_message) or (not is_message and not reader.has_messages)
    ]
    return reading


class _Reader:
    def __init__(self, max_blocks: int, max_depth: int, strict: bool) -> None:
        self.values = ValueReader(max_depth, max_blocks)
        self.strict = strict
        self.has_messages = False

    @cached_property
    def blocks(self) -> BlockReader:
        """Return the reader of all that is no plain text, which most contexts do not need."""
        return BlockReader(self.values, strict=self.strict)

    def item(self, path: Path, item: Any) -> None:
        """Parse one item of the list: a message, a block or a bare string."""
        if isinstance(item, dict) and "role" in item and item.get("type", "message") == "message":
            self._parse_message(path, item)
        elif isinstance(item, str):
            self.values.count_block(path)
            self.values.read_text(path, item, LeafPlace.TEXT, None, opens=True)
        elif isinstance(item, dict):
            if not self.values.read_plain(path, item, LeafPlace.TEXT, None, opens=True):
                self.blocks.read(path, item, LeafPlace.TEXT, None, opens=True)
        else:
            raise fault(path, "A context item must be an object or a string.")

    def _parse_message(self, path: Path, item: dict[str, Any]) -> None:
        self.values.count_block(path)
        self.has_messages = True
        role = item["role"]
        if not isinstance(role, str):
            raise fault((*path, "role"), "A message's role must be a string.")
        place = LeafPlace.TOOL_RESULT if role in _TOOL_ROLES else LeafPlace.TEXT
        opens = role == "user" and place is LeafPlace.TEXT
        if not isinstance(item.get("content"), str | dict | list | None):
            raise fault(
                (*path, "content"), "A message's content must be a string, a block or a list of blocks."
            )
        if len(item) == _PLAIN_MEMBERS and isinstance(item.get("content"), str):
            content = item["content"]
            self.values.read_text((*path, "content"), content, place, role, opens=opens, in_message=True)
            return
        for member in ("content", "parts"):
            self.blocks.read_content((*path, member), item.get(member), place, role, opens=opens)
        self._parse_tool_calls((*path, "tool_calls"), item.get("tool_calls"), role)
        self.blocks.read_function((*path, "function_call"), item.get("function_call"), role)
        for name, value in item.items():
            if name == "name" and place is LeafPlace.TOOL_RESULT:
                self.blocks.read_name((*path, name), value, role)
            elif name not in _READ_MEMBERS:
                self.blocks.read_member((*path, name), value, item, place, role)

    def _parse_tool_calls(self, path: Path, calls: Any, role: str | None) -> None:
        """Parse the tool calls that an assistant message has beside its content."""
        if not isinstance(calls, list):
            self.values.walk(path, calls, LeafPlace.TOOL_INPUT, role)
            return
        for index, call in enumerate(calls):
            step = (*path, index)
            if not isinstance(call, dict):
                self.values.walk(step, call, LeafPlace.TOOL_INPUT, role)
                continue
            for name, value in call.items():
                if name in {"function", "custom"}:
                    self.blocks.read_function((*step, name), value, role)
                else:
                    self.blocks.read_member((*step, name), value, call, LeafPlace.TOOL_INPUT, role)
