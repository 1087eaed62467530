"""What goes back to the client while a server works: progress, logs and questions, on either revision."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, get_args

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    LOG_LEVEL_META_KEY,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    LoggingLevel,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from app.core.upstream import Hooks, UpstreamError
from app.protocol.wire.asking import ANSWER_S, CAPABILITY_OF, ask_over, missing_capability, notify_over
from app.protocol.wire.exchange import Context, exchange_of
from app.protocol.wire.parking import Parked, Parking, continues
from app.protocol.wire.sessions import LOG_LEVEL
from app.services.forward.client_connections import ClientConnections, callbacks_of

_LEVELS: Final[tuple[str, ...]] = get_args(LoggingLevel)
_ROUNDS: Final = 16
_INTERNAL: Final = -32603

Call = Callable[[Mapping[str, Any], Hooks], Awaitable[dict[str, Any]]]
"""One way of a request to its server: the params to send, and the hooks; returns the raw result."""


def hooks_of(context: Context) -> Hooks:
    """Return how the client behind a request hears of progress and logs and, in a session of its own, is asked."""
    exchange = exchange_of(context)
    process_session = exchange.process_session

    async def notify(method: str, params: Mapping[str, Any]) -> None:
        await notify_request(context, method, params)

    async def ask(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return await ask_over(context.session, capabilities_of(context), method, params, context.request_id)

    return Hooks(
        notify=notify,
        ask=ask if process_session is not None else None,
        capabilities=capabilities_of(context),
        progress_token=progress_token_of(context),
        log_level=log_level_of(context),
        links=process_session.links if process_session is not None else None,
        owner=(exchange.caller.tenant, exchange.caller.key_id),
    )


async def notify_request(context: Context, method: str, params: Mapping[str, Any]) -> None:
    """Pass on what a server says of a request: progress with the client's token, logs of the level it asked for."""
    if method == "notifications/progress":
        token = progress_token_of(context)
        if token is None:
            return
        params = {**params, "progressToken": token}
    elif method == "notifications/message" and not _wanted(context, params.get("level")):
        return
    await notify_over(context.session, method, params, context.request_id)


def capabilities_of(context: Context) -> Mapping[str, Any]:
    """Return what the client declared, unknown members included; nothing where it cannot be asked."""
    if is_modern(context):
        declared = _meta(context).get(CLIENT_CAPABILITIES_META_KEY)
        return declared if isinstance(declared, Mapping) else {}
    process_session = exchange_of(context).process_session
    return process_session.capabilities if process_session is not None else {}


def log_level_of(context: Context) -> str | None:
    """Return the least level of logs that the client asked for, or None where it did not."""
    if is_modern(context):
        level = _meta(context).get(LOG_LEVEL_META_KEY)
    else:
        session = exchange_of(context).session
        level = session.preferences.get(LOG_LEVEL) if session is not None else None
    return level if level in _LEVELS else None


def progress_token_of(context: Context) -> str | int | None:
    """Return the token under which the client wants to hear of progress."""
    token = _meta(context).get("progressToken")
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def is_modern(context: Context) -> bool:
    """Return whether the request is of a revision without sessions."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _wanted(context: Context, level: Any) -> bool:
    least = log_level_of(context)
    if least is None:
        # In the handshake revision a server decides where the client set nothing.
        return not is_modern(context)
    return level not in _LEVELS or _LEVELS.index(level) >= _LEVELS.index(least)


def _meta(context: Context) -> Mapping[str, Any]:
    meta = (context.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}


@dataclass(eq=False, slots=True)
class ClientCallbacks:
    """Carries questions between servers and clients of different revisions."""

    dedicated: ClientConnections | None = None
    parking: Parking = field(default_factory=Parking)

    async def carried(self, context: Context, params: Mapping[str, Any], call: Call) -> dict[str, Any]:
        """Do ``call`` with ``params`` and return its result, asking the client what the server asks.

        The client is asked in the way of its own revision: by requests in the handshake revision, by a result of
        type ``input_required`` in the modern one.
        """
        if callbacks_of(capabilities_of(context)):
            # The time that a person takes for an answer is not the time of the work.
            exchange = exchange_of(context)
            exchange.info = replace(exchange.info, deadline=exchange.info.deadline + ANSWER_S)
        if is_modern(context):
            return await self._modern(context, params, call)
        return await _handshake(context, params, call)

    async def _modern(self, context: Context, params: Mapping[str, Any], call: Call) -> dict[str, Any]:
        hooks = hooks_of(context)
        capabilities = callbacks_of(hooks.capabilities)
        call = _askable(call, hooks.capabilities)
        if not continues(params) and (self.dedicated is None or not capabilities):
            return await call(params, hooks)
        return await self.parking.run(context, params, lambda parked: self._parked(parked, params, call))

    async def _parked(self, parked: Parked, params: Mapping[str, Any], call: Call) -> dict[str, Any]:
        """Do a call whose client may change requests in the middle of it."""
        begun = parked.context
        capabilities = capabilities_of(begun)

        async def notify(method: str, params: Mapping[str, Any]) -> None:
            await notify_request(parked.context, method, params)

        async def ask(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
            if missing_capability(capabilities, method, params) is not None:
                raise UpstreamError(-32601, "The client cannot be asked this: it did not declare it.")
            return await parked.ask(method, params)

        links = None
        if self.dedicated is not None:
            caller = exchange_of(begun).caller
            links = self.dedicated.of_call(caller.tenant, caller.key_id, capabilities)
        hooks = Hooks(
            notify=notify,
            ask=ask,
            capabilities=capabilities,
            progress_token=progress_token_of(begun),
            log_level=log_level_of(begun),
            links=links,
            owner=(exchange_of(begun).caller.tenant, exchange_of(begun).caller.key_id),
        )
        return await call(params, hooks)

    async def close(self) -> None:
        """Give up what waits for clients."""
        await self.parking.close()
        if self.dedicated is not None:
            await self.dedicated.close()


async def _handshake(context: Context, params: Mapping[str, Any], call: Call) -> dict[str, Any]:
    hooks = hooks_of(context)
    result = await call(params, hooks)
    for _ in range(_ROUNDS):
        if result.get("resultType") != "input_required":
            return result
        answers = await _answers(hooks, result.get("inputRequests"))
        repeated = {**params, "inputResponses": answers}
        if "requestState" in result:
            repeated["requestState"] = result["requestState"]
        result = await call(repeated, hooks)
    raise UpstreamError(_INTERNAL, f"The server asked for input more than {_ROUNDS} times.")


async def _answers(hooks: Hooks, requests: Any) -> dict[str, Any]:
    """Ask a client of the handshake revision what a server of the modern one wants to know."""
    questions = _questions(hooks.capabilities if hooks.ask is not None else {}, requests)
    answers = {}
    for key, (method, params) in questions.items():
        if hooks.ask is not None:
            answers[key] = dict(await hooks.ask(method, params))
    return answers


def _askable(call: Call, capabilities: Mapping[str, Any]) -> Call:
    """Return ``call`` so that no result of it asks the client what it cannot be asked, or takes a state for ours."""

    async def checked(params: Mapping[str, Any], hooks: Hooks) -> dict[str, Any]:
        result = await call(params, hooks)
        if result.get("resultType") == "input_required":
            _questions(capabilities, result.get("inputRequests"))
            if continues(result):
                raise UpstreamError(_INTERNAL, "The server gave a requestState that is not its own.")
        return result

    return checked


def _questions(capabilities: Mapping[str, Any], requests: Any) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Return what a server asks, by its keys, or raise UpstreamError where the client did not declare that."""
    asked = requests if isinstance(requests, Mapping) else {}
    questions: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for key, question in asked.items():
        params = question.get("params") or {} if isinstance(question, Mapping) else None
        if not isinstance(params, Mapping):
            raise UpstreamError(_INTERNAL, "The server asks the client in a form that no client understands.")
        questions[key] = str(question.get("method")), params
    for method, params in questions.values():
        if method not in CAPABILITY_OF:
            raise UpstreamError(
                _INTERNAL, "The server asks the client for something that this revision lacks."
            )
        missing = missing_capability(capabilities, method, params)
        if missing is not None:
            raise UpstreamError(
                MISSING_REQUIRED_CLIENT_CAPABILITY,
                f"The server needs {method} of the client, which did not declare {' and '.join(missing)}.",
                {"requiredCapabilities": missing},
            )
    return questions
