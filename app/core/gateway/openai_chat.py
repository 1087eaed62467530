"""Chat completions of OpenAI and of whatever is compatible with them, and legacy completions.

Source: the types of openai-python 3.54.0 (Apache-2.0) and openai-openapi of 2026-08-21 (MIT); only names are taken.
"""

from collections.abc import Mapping
from typing import Any, Final

from app.core.gateway.channels import ToolRunner
from app.core.gateway.member_table import LeafRole, MemberForm, MemberRule, definition, machine_members
from app.core.gateway.requests import Placement, RequestTable

_OPTIONS: Final = {
    **machine_members(
        *("model", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens"),
        *("modalities", "moderation", "n", "parallel_tool_calls", "presence_penalty", "prompt_cache_options"),
        *("prompt_cache_retention", "reasoning_effort", "seed", "service_tier", "store", "stream", "best_of"),
        *("stream_options", "temperature", "top_logprobs", "top_p", "verbosity", "audio", "echo"),
    ),
    "stop": definition(LeafRole.STOP),
    "metadata": definition(LeafRole.METADATA),
    "user": definition(LeafRole.USER_ID),
    "safety_identifier": definition(LeafRole.USER_ID),
    "prompt_cache_key": definition(LeafRole.METADATA),
}

MEMBERS: Final[Mapping[str, MemberRule]] = {
    **_OPTIONS,
    "messages": MemberRule(MemberForm.MESSAGES, LeafRole.USER),
    "tools": definition(LeafRole.TOOLS),
    "functions": definition(LeafRole.TOOLS),
    "tool_choice": definition(LeafRole.TOOLS),
    "function_call": definition(LeafRole.TOOLS),
    "response_format": definition(LeafRole.FORMAT),
    "prediction": definition(LeafRole.ASSISTANT),
    "web_search_options": definition(LeafRole.TOOLS),
}

LEGACY_MEMBERS: Final[Mapping[str, MemberRule]] = {
    **_OPTIONS,
    "prompt": MemberRule(MemberForm.TEXTS, LeafRole.USER),
    "suffix": MemberRule(MemberForm.SPEECH, LeafRole.USER),
}

_SESSIONS: Final = (("prompt_cache_key",), ("user",), ("safety_identifier",))


def _noted(_body: Mapping[str, Any], text: str) -> Placement:
    return Placement(fronts={("messages",): [{"role": "system", "content": text}]})


def _added(_body: Mapping[str, Any], items: list[Any]) -> Placement:
    return Placement(fronts={("messages",): items})


def _runner(_tool: Mapping[str, Any]) -> ToolRunner:
    return ToolRunner.CLIENT


REQUEST: Final = RequestTable(
    members=MEMBERS,
    messages=("messages",),
    sessions=(*_SESSIONS, ("metadata", "user_id")),
    note=_noted,
    added=_added,
    runner=_runner,
)
LEGACY_REQUEST: Final = RequestTable(members=LEGACY_MEMBERS, messages=("prompt",), sessions=_SESSIONS)
