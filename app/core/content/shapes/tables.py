"""Look up the shape of a block in the tables of all interfaces."""

from collections.abc import Mapping
from typing import Any, Final

from app.core.content.leaves import LeafPlace
from app.core.content.shapes import anthropic, bedrock, gemini, mcp, openai
from app.core.content.shapes.shape import Shape, call

TYPED: Final[Mapping[str, Shape]] = {**openai.TYPED, **anthropic.TYPED, **mcp.TYPED}
UNTYPED: Final[Mapping[str, Shape]] = {**bedrock.UNTYPED, **gemini.UNTYPED}
FUNCTION: Final = call("arguments", "input")
"""What a call has in ``function`` or ``custom``."""

_PLAIN_MEMBERS: Final = frozenset({"text", "content", "parts", "structuredContent"})
"""Members of blocks without a type that hold a text, or blocks."""

_CALL_ENDINGS: Final = ("_call", "_use", "Call", "Use")
_RESULT_ENDINGS: Final = ("_output", "_result", "Output", "Result", "_response")


def is_untyped_block(block: Mapping[str, Any]) -> bool:
    """Return whether a block without a type has a member that says what it is."""
    return any(name in UNTYPED or name in _PLAIN_MEMBERS for name in block)


def is_one_part(block: Mapping[str, Any]) -> bool:
    """Return whether an object in a tool's result is a block without a type, and not a row of data."""
    return len(block) == 1 and all(name in UNTYPED or name in _PLAIN_MEMBERS for name in block)


def guessed_shape(kind: str | None) -> Shape:
    """Return the shape of a block that no table knows; calls and results are told by the end of their type."""
    if kind is not None and kind.endswith(_CALL_ENDINGS):
        return Shape(place=LeafPlace.TOOL_INPUT, tool="name", names=frozenset({"name"}))
    if kind is not None and kind.endswith(_RESULT_ENDINGS):
        return Shape(place=LeafPlace.TOOL_RESULT)
    return Shape()


def called_tool(block: Mapping[str, Any]) -> str | None:
    """Return the name of the tool that a block calls, or None."""
    kind = block.get("type")
    shape = TYPED.get(kind) if isinstance(kind, str) else None
    if shape is not None:
        name = block.get(shape.tool) if shape.tool else None
        return name if isinstance(name, str) else None
    for member, inner in block.items():
        shape = UNTYPED.get(member)
        if shape is not None and shape.tool and isinstance(inner, Mapping):
            name = inner.get(shape.tool)
            return name if isinstance(name, str) else None
    return None
