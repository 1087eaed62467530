"""Responses of OpenAI, and the items of conversations.

Source: the types of openai-python 3.54.0 (Apache-2.0) and openai-openapi of 2026-08-21 (MIT); only names are taken.
"""

from collections.abc import Mapping
from typing import Any, Final

from app.core.gateway.channels import ToolRunner
from app.core.gateway.member_table import LeafRole, MemberForm, MemberRule, definition, machine_members
from app.core.gateway.requests import Placement, RequestTable

MEMBERS: Final[Mapping[str, MemberRule]] = {
    **machine_members(
        *("model", "background", "background_options", "include", "max_output_tokens", "max_tool_calls"),
        *("parallel_tool_calls", "prompt_cache_retention", "service_tier", "store", "stream", "temperature"),
        *("stream_options", "top_logprobs", "top_p", "truncation", "access_programs", "context_management"),
        *("image", "moderation", "prompt_cache_options", "reasoning", "personality"),
        *("previous_response_id", "conversation"),
    ),
    "input": MemberRule(MemberForm.MESSAGES, LeafRole.USER),
    "instructions": MemberRule(MemberForm.SPEECH, LeafRole.SYSTEM),
    "tools": definition(LeafRole.TOOLS),
    "tool_choice": definition(LeafRole.TOOLS),
    "text": definition(LeafRole.FORMAT),
    "prompt": MemberRule(MemberForm.VALUES, LeafRole.USER),
    "metadata": definition(LeafRole.METADATA),
    "user": definition(LeafRole.USER_ID),
    "safety_identifier": definition(LeafRole.USER_ID),
    "prompt_cache_key": definition(LeafRole.METADATA),
}

ITEM_MEMBERS: Final[Mapping[str, MemberRule]] = {
    **machine_members("include"),
    "items": MemberRule(MemberForm.MESSAGES, LeafRole.USER),
    "metadata": definition(LeafRole.METADATA),
}

SIGNED: Final = frozenset({"reasoning", "compaction"})

_CLIENT_TOOLS: Final = frozenset(
    {
        *(
            "function",
            "custom",
            "local_shell",
            "apply_patch",
            "computer",
            "computer_use_preview",
            "namespace",
        ),
        *("computer_use", "tool_search"),
    }
)


def _noted(body: Mapping[str, Any], text: str) -> Placement:
    instructions = body.get("instructions")
    rest = f"\n\n{instructions}" if isinstance(instructions, str) and instructions else ""
    return Placement(values={("instructions",): f"{text}{rest}"})


def _added(body: Mapping[str, Any], items: list[Any]) -> Placement:
    current = body.get("input")
    if isinstance(current, list):
        return Placement(fronts={("input",): items})
    rest = [{"role": "user", "content": current}] if isinstance(current, str) else []
    return Placement(values={("input",): [*items, *rest]})


def _runner(tool: Mapping[str, Any]) -> ToolRunner:
    kind, environment = tool.get("type"), tool.get("environment")
    if kind == "shell":
        is_local = isinstance(environment, dict) and environment.get("type") == "local"
        return ToolRunner.CLIENT if is_local else ToolRunner.PROVIDER
    return ToolRunner.CLIENT if kind in _CLIENT_TOOLS else ToolRunner.PROVIDER


REQUEST: Final = RequestTable(
    members=MEMBERS,
    messages=("input",),
    signed=SIGNED,
    sessions=(("prompt_cache_key",), ("user",), ("safety_identifier",), ("metadata", "user_id")),
    conversation=(("conversation",), ("conversation", "id")),
    previous=(("previous_response_id",),),
    note=_noted,
    added=_added,
    runner=_runner,
)
ITEMS_REQUEST: Final = RequestTable(members=ITEM_MEMBERS, messages=("items",), signed=SIGNED)
