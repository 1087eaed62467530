"""Parse context items (messages, content blocks of all interfaces, tool calls and results) into leaves."""

from typing import Any

from app.core.content.leaves import LeafPlace
from app.core.content.shapes.blocks import BlockReader, fault
from app.core.content.walking import Path, ValueReader

_TOOL_ROLES = frozenset({"tool", "function"})
_PLAIN_MEMBERS = 2
"""Most messages have a role and a text, and nothing else to read."""
_READ_MEMBERS = frozenset({"role", "content", "parts", "tool_calls", "function_call"})


class ItemReader:
    """Add the leaves of items that are more than a text to the reading of ``values``."""

    def __init__(self, values: ValueReader, *, strict: bool) -> None:
        self.values = values
        self.blocks = BlockReader(values, strict=strict)

    def read(self, path: Path, item: Any) -> None:
        """Read a message or a block."""
        if not isinstance(item, dict):
            raise fault(path, "A context item must be an object or a string.")
        if "role" in item and item.get("type", "message") == "message":
            self._parse_message(path, item)
        else:
            self.blocks.read(path, item, LeafPlace.TEXT, None, opens=True)

    def _parse_message(self, path: Path, item: dict[str, Any]) -> None:
        self.values.count_block(path)
        self.values.reading.has_messages = True
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
