"""Write tools after content from outside: what came into a session is remembered, and then people confirm writes."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from app.core.audit import OUTCOME_OK
from app.core.catalog.primitives import Primitive
from app.core.contracts.policy import Policy
from app.core.errors import BlockedByPolicyError, NotFoundError
from app.core.strictjson import dumps
from app.core.upstream import UpstreamError
from app.protocol.wire.exchange import Context, exchange_of
from app.protocol.wire.state import SESSION_META, SessionState, state_of
from app.services.audit.audit import AuditService
from app.services.forward.forward_record import PrimitiveRequest
from app.services.forward.request_states import RequestStates

CONFIRMED_META: Final = "dev.sluice/confirmed"
ENTERED: Final = "untrusted"
"""Where a session or a handle remembers that content from outside came into it."""

_CONFIRMATION: Final = "confirm"
"""The kind of session that a token is: it belongs to its caller, and ends when it is used."""

_TOKEN_S: Final = 600
_SHOWN: Final = 600
_YES: Final = "confirm"


async def arrived(context: Context, policy: Policy, server: str, *, suspected: bool) -> Mapping[str, Any]:
    """Remember that a result came in, if the policy does not trust it; return what to add to its ``_meta``."""
    if not policy.untrusted.distrusts(server, suspected=suspected):
        return {}
    state = await state_of(context)
    if ENTERED not in state.preferences and (state.session is not None or state.modern_revision is not None):
        await state.remember({ENTERED: True})
    return {SESSION_META: state.handle} if state.handle is not None else {}


async def permit(
    context: Context, audit: AuditService, policy: Policy, tool: Primitive, asked: PrimitiveRequest
) -> None:
    """Let a call pass, or refuse it: a write after content from outside needs what the policy says."""
    rules = policy.untrusted
    if rules.after == "allow" or not writes(tool):
        return
    # A call that goes on with the server's own state was permitted when it began; anybody can make up a state.
    about = ("tools/call", tool.server, tool.name)
    if RequestStates(audit.keys).continues(asked.caller, about, asked.params):
        return
    state = await state_of(context)
    if not _entered(state, trusts_without=rules.without_handle == "trusted"):
        return
    if rules.after == "refuse":
        raise BlockedByPolicyError(
            "Untrusted content came into this session, and the policy lets no tool that writes run after it; "
            "begin a new session for that.",
            details={"tool": tool.name, "after": "untrusted content"},
        )
    by = await _confirmed(context, audit, tool, asked)
    event = audit.new_event(
        asked.caller,
        "tool.confirm",
        OUTCOME_OK,
        asked.request,
        details={"server": tool.server, "tool": tool.name, "by": by},
    )
    await audit.record(event)


def writes(tool: Primitive) -> bool:
    """Tell whether a tool may change something: all do that do not say that they only read.

    The word of a server is enough for that, because its definitions were approved and are pinned.
    """
    annotations = tool.definition.get("annotations")
    return not (isinstance(annotations, Mapping) and annotations.get("readOnlyHint") is True)


def _entered(state: SessionState, *, trusts_without: bool) -> bool:
    if state.session is None:
        return not trusts_without
    return ENTERED in state.preferences


async def _confirmed(context: Context, audit: AuditService, tool: Primitive, asked: PrimitiveRequest) -> str:
    """Return by what a call was confirmed, or refuse it with a token that confirms this very call."""
    what = audit.digest(asked.caller.tenant, dumps([tool.name, asked.params.get("arguments") or {}]))
    token = (asked.params.get("_meta") or {}).get(CONFIRMED_META)
    if token is not None and await _used(context, token, what):
        return "token"
    if token is None and (answer := await _answer(tool, asked)) is not None:
        if answer:
            return "elicitation"
        raise BlockedByPolicyError(
            "The user did not confirm this call, which follows untrusted content.",
            details={"tool": tool.name},
        )
    sessions = exchange_of(context).sessions
    until = (datetime.now(UTC) + timedelta(seconds=_TOKEN_S)).isoformat()
    made = await sessions.start(asked.caller, _CONFIRMATION, {"what": what, "until": until})
    raise BlockedByPolicyError(
        "Untrusted content came into this session, so a person must confirm tools that write: show them this call, and "
        f'send it again with the token in _meta["{CONFIRMED_META}"].',
        details={"tool": tool.name, "confirmation": made.id, "expires_s": _TOKEN_S},
    )


async def _used(context: Context, token: Any, what: str) -> bool:
    """Use up a token; False where it is none of this caller's for this very call, or its time is over."""
    exchange = exchange_of(context)
    if not isinstance(token, str):
        return False
    try:
        session = await exchange.sessions.resume(exchange.caller, token)
        if session.revision != _CONFIRMATION or session.preferences.get("what") != what:
            return False
        await exchange.sessions.end(exchange.caller, token)
    except NotFoundError:
        return False
    return datetime.fromisoformat(str(session.preferences["until"])) > datetime.now(UTC)


async def _answer(tool: Primitive, asked: PrimitiveRequest) -> bool | None:
    """Ask the person behind the client; None where the client cannot be asked."""
    if asked.hooks.ask is None:
        return None
    arguments = json.dumps(asked.params.get("arguments") or {}, ensure_ascii=False)
    shown = arguments if len(arguments) <= _SHOWN else f"{arguments[:_SHOWN]} ..."
    message = (
        f"The assistant read content that is not trusted and now wants to run {tool.name} with {shown}. "
        "Did you ask for this?"
    )
    schema = {
        "type": "object",
        "properties": {_YES: {"type": "boolean", "title": "Run it"}},
        "required": [_YES],
    }
    try:
        said = await asked.hooks.ask("elicitation/create", {"message": message, "requestedSchema": schema})
    except UpstreamError:
        return None
    content = said.get("content")
    return said.get("action") == "accept" and isinstance(content, Mapping) and content.get(_YES) is True
