"""Fixtures of the conformance suite in which a server asks for input by its result (revision 2026-07-28)."""

import hashlib
import hmac
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from tests.protocol.conformance_contents import schema, text

STRING = {"type": "string"}
_SECRET = b"fixture"


def elicit(message: str, **properties: Any) -> dict[str, Any]:
    requested = schema(*properties, **properties)
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": requested}}


def sample(question: str, tokens: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": text(question)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS = {"method": "roots/list", "params": {}}
CONFIRM = elicit("Please confirm", ok={"type": "boolean"})
NAME = elicit("What is your name?", name=STRING)

SINGLE_ROUND: dict[str, dict[str, Any]] = {
    "test_input_required_result_elicitation": {"user_name": NAME},
    "test_input_required_result_sampling": {
        "capital_question": sample("What is the capital of France?", 100)
    },
    "test_input_required_result_list_roots": {"client_roots": ROOTS},
    "test_input_required_result_request_state": {"confirm": CONFIRM},
    "test_input_required_result_tampered_state": {"confirm": CONFIRM},
    "test_input_required_result_multiple_inputs": {
        "user_name": NAME,
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    },
}
WITH_STATE = {
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
}
STEPS = [
    {"step1": elicit("Step 1: What is your name?", name=STRING)},
    {"step2": elicit("Step 2: What is your favorite color?", color=STRING)},
]
INPUT_TOOLS = [
    *SINGLE_ROUND,
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
    "test_streaming_elicitation",
]


def sealed(state: str) -> str:
    return f"{state}.{hmac.new(_SECRET, state.encode(), hashlib.sha256).hexdigest()}"


def opened(value: str | None) -> str | None:
    if value is None:
        return None
    state = value.partition(".")[0]
    if not hmac.compare_digest(sealed(state), value):
        raise MCPError(INVALID_PARAMS, "The request state is not ours.")
    return state


def required(requests: dict[str, Any], state: str | None = None) -> dict[str, Any]:
    result: dict[str, Any] = {"resultType": "input_required", "inputRequests": requests}
    if state is not None:
        result["requestState"] = sealed(state)
    return result


def accepted(answer: Any) -> dict[str, Any] | None:
    """Return what a well-formed answer says, or None."""
    if not isinstance(answer, dict):
        return None
    if "action" in answer:
        content = answer.get("content")
        return content if answer["action"] == "accept" and isinstance(content, dict) else None
    return answer if "content" in answer or "roots" in answer else None


def answer(name: str, params: dict[str, Any], capabilities: dict[str, Any]) -> dict[str, Any]:
    """Return the next result of one of INPUT_TOOLS."""
    responses = params.get("inputResponses")
    responses = responses if isinstance(responses, dict) else {}
    state = opened(params.get("requestState"))
    if name == "test_input_required_result_multi_round":
        return _multi_round(responses, state)
    if name in {"test_input_required_result_capabilities", "test_streaming_elicitation"}:
        return _what_the_client_can(responses, capabilities)
    asked = SINGLE_ROUND[name]
    if any(accepted(responses.get(key)) is None for key in asked):
        return required(asked, "state" if name in WITH_STATE else None)
    said = " ".join(str(accepted(responses[key])) for key in asked)
    if name == "test_input_required_result_elicitation":
        said = f"Hello, {responses['user_name']['content'].get('name')}!"
    return {"content": [text(f"{said} {'state-ok' if state == 'state' else ''}".strip())]}


def _multi_round(responses: dict[str, Any], state: str | None) -> dict[str, Any]:
    done = 0 if state is None else int(state)
    if done and f"step{done}" in responses:
        done += 1
    if done > len(STEPS):
        return {"content": [text("All rounds are done.")]}
    step = max(done, 1)
    return required(STEPS[step - 1], str(step))


def _what_the_client_can(responses: dict[str, Any], capabilities: dict[str, Any]) -> dict[str, Any]:
    if responses:
        return {"content": [text("Thank you.")]}
    asked: dict[str, Any] = {}
    if "sampling" in capabilities:
        asked["question"] = sample("What is the capital of France?", 100)
    if "elicitation" in capabilities:
        asked["user_name"] = NAME
    if "roots" in capabilities:
        asked["client_roots"] = ROOTS
    return required(asked) if asked else {"content": [text("Nothing can be asked of this client.")]}


def prompt(params: dict[str, Any]) -> dict[str, Any]:
    responses = params.get("inputResponses") or {}
    if accepted(responses.get("user_context")) is None:
        return required({"user_context": elicit("What context should the prompt use?", context=STRING)})
    said = responses["user_context"]["content"].get("context")
    return {"messages": [{"role": "user", "content": text(f"Context: {said}")}]}
