"""Messages of Anthropic, and the counting of their tokens.

Source: the types of anthropic-sdk-python 2.12.0 (MIT); only the names of members are taken.
"""

from collections.abc import Mapping
from typing import Any, Final

from app.core.gateway.channels import ToolRunner
from app.core.gateway.member_table import LeafRole, MemberForm, MemberRule, definition, machine_members
from app.core.gateway.requests import Placement, RequestTable

MEMBERS: Final[Mapping[str, MemberRule]] = {
    **machine_members(
        *("model", "max_tokens", "service_tier", "speed", "stream", "temperature", "top_k", "top_p"),
        *("thinking", "cache_control", "inference_geo", "billing_policy", "betas", "fallback_credit_token"),
    ),
    "messages": MemberRule(MemberForm.MESSAGES, LeafRole.USER),
    "system": MemberRule(MemberForm.SPEECH, LeafRole.SYSTEM),
    "tools": definition(LeafRole.TOOLS),
    "tool_choice": definition(LeafRole.TOOLS),
    "mcp_servers": definition(LeafRole.TOOLS),
    "output_config": definition(LeafRole.FORMAT),
    "output_format": definition(LeafRole.FORMAT),
    "stop_sequences": definition(LeafRole.STOP),
    "metadata": definition(LeafRole.METADATA),
    "container": definition(LeafRole.METADATA),
    "diagnostics": definition(LeafRole.METADATA),
    "thread": definition(LeafRole.METADATA),
    "fallbacks": definition(LeafRole.METADATA),
    "context_management": definition(LeafRole.SYSTEM),
    "compaction": definition(LeafRole.SYSTEM),
}

SIGNED: Final = frozenset({"thinking", "redacted_thinking", "compaction"})

_PROVIDER_TOOLS: Final = ("web_search_", "web_fetch_", "code_execution_", "tool_search_", "advisor_", "mcp_")


def _noted(body: Mapping[str, Any], text: str) -> Placement:
    system = body.get("system")
    note = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
    if isinstance(system, list):
        return Placement(fronts={("system",): [note]})
    rest = [{"type": "text", "text": system}] if isinstance(system, str) and system else []
    return Placement(values={("system",): [note, *rest]})


def _added(_body: Mapping[str, Any], items: list[Any]) -> Placement:
    return Placement(fronts={("messages",): items})


def _runner(tool: Mapping[str, Any]) -> ToolRunner:
    kind = tool.get("type")
    of_provider = isinstance(kind, str) and kind.startswith(_PROVIDER_TOOLS)
    return ToolRunner.PROVIDER if of_provider else ToolRunner.CLIENT


REQUEST: Final = RequestTable(
    members=MEMBERS,
    messages=("messages",),
    signed=SIGNED,
    sessions=(("metadata", "user_id"),),
    note=_noted,
    added=_added,
    runner=_runner,
)
