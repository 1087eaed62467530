"""Messages from a server to the client, raw: what the models of the SDK do not know must survive."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, Notification, Request, RequestId
from pydantic import RootModel, ValidationError

from app.core.upstream import UpstreamError

CAPABILITY_OF: Final[Mapping[str, str]] = MappingProxyType(
    {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
)
"""The capability that a client declares where it may be asked this."""

ANSWER_S: Final = 600.0
"""How long a client, and the person before it, may take for an answer."""

_Raw = RootModel[dict[str, Any]]


def missing_capability(
    capabilities: Mapping[str, Any], method: Any, params: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the capability that the client would need and did not declare, in the form of a declaration."""
    name = CAPABILITY_OF.get(method)
    if name is None:
        return {}
    declared = capabilities.get(name)
    if not isinstance(declared, Mapping):
        return {name: {}}
    if name == "elicitation":
        mode = params.get("mode", "form")
        modes = declared or {"form": {}}  # an empty declaration means forms
        return None if mode in modes else {name: {mode: {}}}
    if name == "sampling" and ("tools" in params or "toolChoice" in params):
        return None if "tools" in declared else {name: {"tools": {}}}
    return None


async def ask_over(
    session: ServerSession,
    capabilities: Mapping[str, Any],
    method: str,
    params: Mapping[str, Any],
    related: RequestId | None,
) -> Mapping[str, Any]:
    """Return the client's raw answer, asked on the stream of the request ``related`` or on its standing one.

    Raises UpstreamError, the form in which the server that asks gets it: what the client answers, or that it did not
    declare what would be needed.
    """
    if missing_capability(capabilities, method, params) is not None:
        raise UpstreamError(METHOD_NOT_FOUND, "The client cannot be asked this: it did not declare it.")
    # The SDK writes a mapping as it stands, and a generic request is no model that would drop members.
    request = Request[dict[str, Any] | None, str](method=method, params=dict(params) or None)
    try:
        answer = await session.send_request(
            request,  # type: ignore[arg-type]
            _Raw,
            request_read_timeout_seconds=ANSWER_S,
            metadata=ServerMessageMetadata(related_request_id=related),
        )
    except MCPError as error:
        raise UpstreamError(error.code, error.message, error.data) from None
    except ValidationError:
        raise UpstreamError(
            INVALID_PARAMS, "The client's answer is not of the form it should have."
        ) from None
    return answer.root


async def notify_over(
    session: ServerSession, method: str, params: Mapping[str, Any], related: RequestId | None
) -> None:
    """Tell the client, on the stream of the request ``related`` or on its standing one."""
    notification = Notification[dict[str, Any] | None, str](method=method, params=dict(params) or None)
    await session.send_notification(notification, related)  # type: ignore[arg-type]
