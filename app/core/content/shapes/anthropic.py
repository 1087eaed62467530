"""Blocks of Anthropic's messages.

Source: the types of anthropic-sdk-python 2.12.0 (MIT); only the names of members are taken.
"""

from collections.abc import Mapping
from typing import Final

from app.core.content.shapes.shape import REASONING, Shape, call, document, media, result

_RESULTS: Final = (
    *("web_search", "web_fetch", "code_execution", "bash_code_execution"),
    *("text_editor_code_execution", "tool_search", "mcp", "advisor"),
)

TYPED: Final[Mapping[str, Shape]] = {
    "thinking": REASONING,
    "redacted_thinking": REASONING,
    "document": document(),
    "search_result": document(),
    "server_tool_use": call("input"),
    "mcp_tool_use": call("input", names=("server_name",)),
    **{f"{kind}_tool_result": result("content") for kind in _RESULTS},
    "tool_reference": Shape(names=frozenset({"tool_name"})),
    "browser_state": result("tabs", "state_changes"),
    "container_upload": media("file"),
}
