"""Ask a caller, in the middle of a call, to grant in a browser what a server needs."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from app.core.access import Caller
from app.core.errors import ConflictError, ServiceError
from app.core.upstream import Hooks
from app.services.servers.user_grants import UserGrants

_OPEN: Final = "dev.sluice/open"
_CODE: Final = "dev.sluice/code"
_ANSWERS: Final = "inputResponses"
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"code": {"type": "string", "title": "Code", "maxLength": 64}},
    "required": ["code"],
}


class AskedFirstError(Exception):
    """The call is answered by a question; ``result`` is the answer."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        super().__init__("the caller is asked first")
        self.result = dict(result)


async def confirm(grants: UserGrants, caller: Caller, params: Mapping[str, Any]) -> None:
    """Confirm what the caller granted, where the call brings the code of that."""
    answers = params.get(_ANSWERS)
    answer = answers.get(_CODE) if isinstance(answers, Mapping) else None
    content = answer.get("content") if isinstance(answer, Mapping) else None
    code = content.get("code") if isinstance(content, Mapping) else None
    if isinstance(code, str) and code.strip():
        await grants.confirm(caller, code.strip())


async def ask(grants: UserGrants, caller: Caller, server: str, hooks: Hooks) -> ServiceError:
    """Raise AskedFirstError with the questions, or return the error for a client that cannot be asked them."""
    start = await grants.begin(caller, server)
    modes = hooks.capabilities.get("elicitation")
    message = f"The server {server!r} is called with your own rights. Open this address and grant them."
    if not isinstance(modes, Mapping) or "url" not in modes or "form" not in modes:
        return ConflictError(
            f"{message} Then confirm the code that you are shown (POST /api/v1/server-grants/confirm).",
            details={"server": server, "authorize": start.url},
        )
    number = hashlib.sha256(start.url.encode()).hexdigest()[:32]
    opening = {"mode": "url", "message": message, "url": start.url, "elicitationId": number}
    asking = {
        "mode": "form",
        "message": "Which code did the page show in the end?",
        "requestedSchema": dict(_SCHEMA),
    }
    questions = {
        _OPEN: {"method": "elicitation/create", "params": opening},
        _CODE: {"method": "elicitation/create", "params": asking},
    }
    raise AskedFirstError({"resultType": "input_required", "inputRequests": questions})


def for_server(params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the params of a call without the answers to our own questions."""
    answers = params.get(_ANSWERS) if params is not None else None
    if params is None or not isinstance(answers, Mapping) or answers.keys().isdisjoint({_OPEN, _CODE}):
        return params
    others = {name: answer for name, answer in answers.items() if name not in {_OPEN, _CODE}}
    rest = {name: value for name, value in params.items() if name != _ANSWERS}
    return {**rest, _ANSWERS: others} if others else rest
