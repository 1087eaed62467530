"""Keep the roots of clients from servers that may not have them.

Roots name folders. A server that takes them as permission, as file servers do, would read whatever folder of *its* host
a client names, and a server that we start as a command runs on our host.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from mcp_types import METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY

from app.core.errors import InvalidArgumentsError
from app.core.upstream import Hooks, UpstreamError
from app.upstream.transport.options import LinkOptions

ROOTS_CHANGED: Final = "notifications/roots/list_changed"
_CAPABILITY: Final = "roots"
_LIST: Final = "roots/list"

_Sink = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


def options_without_roots(options: LinkOptions) -> LinkOptions:
    """Return options of a connection over which no roots are declared or told."""
    sink = options.on_request
    return replace(
        options,
        roots=False,
        capabilities=_without(options.capabilities),
        on_request=_refusing(sink) if sink is not None else None,
    )


def hooks_without_roots(hooks: Hooks) -> Hooks:
    """Return the hooks of a request whose client has no roots to tell."""
    if hooks.ask is None and _CAPABILITY not in hooks.capabilities:
        return hooks
    return replace(
        hooks,
        capabilities=_without(hooks.capabilities),
        ask=_refusing(hooks.ask) if hooks.ask is not None else None,
    )


def check_tells_no_roots(params: Mapping[str, Any]) -> None:
    """Raise InvalidArgumentsError where a client sends its roots along as if it had been asked for them."""
    answers = params.get("inputResponses")
    if not isinstance(answers, Mapping):
        return
    if any(isinstance(answer, Mapping) and _CAPABILITY in answer for answer in answers.values()):
        raise InvalidArgumentsError(
            "This server gets no roots of clients; an operator may allow it with the server's setting `roots`.",
            details={"pointer": "/inputResponses"},
        )


def check_asks_no_roots(result: Mapping[str, Any]) -> None:
    """Raise UpstreamError, as a server would that misses a capability, where a result asks for the client's roots."""
    questions = result.get("inputRequests")
    if not isinstance(questions, Mapping):
        return
    if any(
        isinstance(question, Mapping) and question.get("method") == _LIST for question in questions.values()
    ):
        raise UpstreamError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "The server wants the roots of the client, which it does not get here; an operator may allow it with "
            "the server's setting `roots`.",
            {"requiredCapabilities": {_CAPABILITY: {}}},
        )


def _without(capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in capabilities.items() if name != _CAPABILITY}


def _refusing(ask: _Sink) -> _Sink:
    async def ask_but_roots(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if method == _LIST:
            raise UpstreamError(METHOD_NOT_FOUND, "Roots of clients are not told to this server.")
        return await ask(method, params)

    return ask_but_roots
