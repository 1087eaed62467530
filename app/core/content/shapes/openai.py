"""Blocks and items of OpenAI: chat completions and responses.

Source: the types of openai-python 3.54.0 (Apache-2.0); only the names of members are taken.
"""

from collections.abc import Mapping
from typing import Final

from app.core.content.leaves import LeafPlace
from app.core.content.shapes.shape import REASONING, Shape, call, media, result

_TEXTS: Final = {
    "input_text": Shape(opens="text"),
    "output_text": Shape(opens="text"),
    "summary_text": Shape(),
    "reasoning_text": Shape(),
    "refusal": Shape(),
    "reasoning": REASONING,
    "compaction": Shape(reasons=True),
    "compaction_trigger": Shape(),
    "item_reference": Shape(),
    "configuration_update": Shape(place=LeafPlace.DEFINITION),
}

_MEDIA: Final = {
    "image_url": media("image"),
    "input_image": media("image"),
    "computer_screenshot": media("image"),
    "image_generation_call": media("image"),
    "input_audio": media("audio"),
    "output_audio": media("audio"),
    "input_video": media("video"),
    "video_url": media("video"),
    "audio_url": media("audio"),
    "file": media("file", unreadable=False),
    "input_file": media("file", unreadable=False),
}

_CALLS: Final = {
    "function_call": call("arguments"),
    "custom_tool_call": call("input"),
    "tool_search_call": call("arguments", tool=None),
    "computer_call": call("action", "actions", tool=None),
    "web_search_call": call("action", tool=None),
    "file_search_call": Shape(
        place=LeafPlace.TOOL_INPUT,
        places={"queries": LeafPlace.TOOL_INPUT, "results": LeafPlace.TOOL_RESULT},
    ),
    "local_shell_call": call("action", tool=None),
    "shell_call": call("action", tool=None),
    "apply_patch_call": call("operation", tool=None),
    "code_interpreter_call": Shape(place=LeafPlace.TOOL_INPUT, places={"outputs": LeafPlace.TOOL_RESULT}),
    "program": call("code", tool=None),
    "mcp_approval_request": call("arguments"),
    "mcp_call": Shape(
        places={
            "arguments": LeafPlace.TOOL_INPUT,
            "output": LeafPlace.TOOL_RESULT,
            "error": LeafPlace.TOOL_RESULT,
        },
        names=frozenset({"name", "server_label"}),
        tool="name",
    ),
}

_RESULTS: Final = {
    **{
        f"{kind}_output": result("output")
        for kind in (
            *("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call"),
            *("apply_patch_call", "mcp_call"),
        )
    },
    "program_output": result("result"),
    "mcp_approval_response": Shape(),
    "mcp_list_tools": Shape(place=LeafPlace.DEFINITION, names=frozenset({"server_label"})),
    "tool_search_output": Shape(place=LeafPlace.DEFINITION),
    "additional_tools": Shape(place=LeafPlace.DEFINITION),
}

TYPED: Final[Mapping[str, Shape]] = {**_TEXTS, **_MEDIA, **_CALLS, **_RESULTS}
