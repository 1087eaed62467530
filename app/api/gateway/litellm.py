"""The door for LiteLLM's proxy: its Generic Guardrail API, in which it sends texts and takes changed ones.

Source: litellm 1.109.1 (MIT), types of `generic_guardrail_api`; `api_base` is `…/integrations/litellm`. LiteLLM says
what the route looks like and when that changes, so it is not in the OpenAPI document of this service.
"""

from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.auth import EdgeRoute, admitted, info_of, services_of
from app.api.credentials import own_key
from app.core.access import Role
from app.core.errors import BlockedByPolicyError, InvalidArgumentsError, ServiceError, UnscannableContentError
from app.core.strictjson import dumps, loads
from app.edge.facts import facts_of
from app.edge.limits import needs
from app.edge.surfaces import ForeignSurface
from app.services.gateway.guardrails import GuardrailCheck, GuardrailService, GuardrailTexts

PREFIX: Final = "/integrations/litellm"
_JSON: Final = "application/json"
_BESIDE_TEXTS: Final = frozenset({"tool_calls", "function_call", "name", "refusal", "reasoning_content"})
"""Members of messages whose text is not among `texts`."""

router = APIRouter(prefix=PREFIX, route_class=EdgeRoute)


@router.post(
    "/beta/litellm_basic_guardrail_api",
    include_in_schema=False,
)
@needs(Role.INVOKER, action="guardrail.check")
async def check_texts(request: Request) -> Response:
    """Hide personal data and secrets in a request's texts; restore a response's, with the role restorer.

    The key comes in `x-api-key`. Where the policy refuses, the action is BLOCKED.
    """
    services, info, facts = services_of(request), info_of(request), facts_of(request.scope)
    caller = facts.caller or await admitted(services, facts, own_key(request.headers.raw))
    call = _LitellmCall.read(facts.json)
    guardrail = GuardrailService(services.invoke, services.gateway.seen)
    try:
        if call.is_answer:
            answer = _restored(call.check, await guardrail.restored(caller, call.check, info))
        else:
            answer = _hidden(call.check, await guardrail.hidden(caller, call.check, info))
    except (BlockedByPolicyError, UnscannableContentError) as error:
        facts.error_code = error.code
        answer = {"action": "BLOCKED", "blocked_reason": f"sluice: {error.message}"}
    return Response(dumps(answer), media_type=_JSON)


@dataclass(frozen=True, slots=True)
class _LitellmCall:
    is_answer: bool
    check: GuardrailCheck

    @classmethod
    def read(cls, body: Any) -> "_LitellmCall":
        """Read the body; the conversation is the one that the proxy names, else the one call."""
        if not isinstance(body, dict) or body.get("input_type") not in {"request", "response"}:
            raise InvalidArgumentsError(
                "input_type must be request or response.", details={"pointer": "/input_type"}
            )
        texts = body.get("texts") or []
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise InvalidArgumentsError("texts must be a list of texts.", details={"pointer": "/texts"})
        data = body.get("request_data")
        data = data if isinstance(data, dict) else {}
        trace = body.get("litellm_trace_id") or body.get("litellm_call_id")
        if not isinstance(trace, str):
            raise InvalidArgumentsError(
                "litellm_trace_id or litellm_call_id must say which conversation this is.",
                details={"pointer": "/litellm_call_id"},
            )
        users = [str(data.get(f"user_api_key_{name}") or "") for name in ("hash", "user_id", "end_user_id")]
        is_answer = body["input_type"] == "response"
        rows, tools = body.get("structured_messages"), body.get("tools")
        return cls(
            is_answer,
            GuardrailCheck(
                conversation=("litellm", trace, *users),
                texts=texts,
                messages=None if is_answer else _messages(rows),
                tools=tools if isinstance(tools, list) and tools and not is_answer else None,
            ),
        )


def _messages(rows: Any) -> list[Any] | None:
    """Return the messages if one of them holds text that is not among `texts`."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    if not any(row.get(member) for row in rows for member in _BESIDE_TEXTS):
        return None
    return [_spelled_out(row) for row in rows]


def _spelled_out(row: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose arguments of tools hold characters, not escapes: one value, one handle."""
    calls = row.get("tool_calls")
    if not isinstance(calls, list):
        return row
    return {**row, "tool_calls": [_spelled_out_call(call) for call in calls]}


def _spelled_out_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(arguments, str) or "\\u" not in arguments:
        return call
    try:
        plain = dumps(loads(arguments.encode())).decode()
    except ServiceError:  # no JSON, or of a kind that cannot be written again as it was: scanned as it is
        return call
    return {**call, "function": {**function, "arguments": plain}}


def _hidden(check: GuardrailCheck, became: GuardrailTexts) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if became.texts != list(check.texts):
        changed["texts"] = became.texts
    if became.messages is not None and became.messages != list(check.messages or ()):
        changed |= {"texts": became.texts, "structured_messages": became.messages}
    if became.tools is not None and became.tools != list(check.tools or ()):
        changed["tools"] = became.tools
    return {"action": "GUARDRAIL_INTERVENED", **changed} if changed else {"action": "NONE"}


def _restored(check: GuardrailCheck, became: GuardrailTexts) -> dict[str, Any]:
    if became.texts == list(check.texts) and not any(became.held_back):
        return {"action": "NONE"}
    return {
        "action": "GUARDRAIL_INTERVENED",
        "texts": became.texts,
        "stream_holdback_chars": became.held_back,
    }


SURFACE: Final = ForeignSurface(f"{PREFIX}/", own_key)
