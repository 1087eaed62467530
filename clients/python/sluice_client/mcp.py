"""The MCP dialects: JSON-RPC over streamable HTTP, with a handshake (2025-11-25) or without (2026-07-28)."""

import itertools
from collections.abc import Mapping
from typing import Literal

from sluice_client.errors import ProtocolError, SluiceError, error_of
from sluice_client.rest import FIRST_ERROR_STATUS, content_of, problem
from sluice_client.results import Json, MiddlewareInfo
from sluice_client.wire import (
    EVENTS_TYPE,
    JSON_TYPE,
    Progress,
    Steps,
    WireAnswer,
    WireCall,
    encoded,
    seconds,
    short,
)

Revision = Literal["2025-11-25", "2026-07-28"]
HANDSHAKE: Revision = "2025-11-25"
MODERN: Revision = "2026-07-28"
PATH = "/mcp"
SESSION_HEADER = "mcp-session-id"
SESSION_GONE_STATUS = 404
MOST_PAGES = 100
CLIENT_INFO = {"name": "sluice-client", "version": "0.2.0"}
_STANDARD_CODES = {
    -32700: "invalid_request",
    -32600: "invalid_request",
    -32601: "not_found",
    -32602: "invalid_arguments",
    -32603: "internal_error",
    -32020: "invalid_request",
}


class SessionLostError(SluiceError):
    """The service no longer knows the session; nothing was done, and a new handshake fixes it."""

    default_code = "session_lost"


def rpc_failure(answer: WireAnswer) -> SluiceError | None:
    """Return the error of a JSON-RPC answer, None for a success."""
    if not answer.body:
        return problem(answer)
    try:
        body = answer.json()
    except ProtocolError:
        return problem(answer) or ProtocolError("The answer is no JSON: does Sluice listen at this address?")
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        if answer.status >= FIRST_ERROR_STATUS:
            return problem(answer)
        if isinstance(body, Mapping) and "result" in body:
            return None
        return ProtocolError("The response is not JSON-RPC: does Sluice listen at this address?")
    data = error.get("data")
    if not isinstance(data, Mapping):
        data = {}
    details = data.get("details")
    standard_members = {"code", "requestId", "request_id", "retryAfter", "retry_after"}
    return error_of(
        str(data.get("code") or _STANDARD_CODES.get(error.get("code", 0), "unknown")),
        short(error.get("message"), "The call failed without an explanation."),
        request_id=data.get("requestId") or data.get("request_id") or answer.headers.get("x-request-id"),
        retry_after=seconds(data.get("retryAfter", answer.headers.get("retry-after"))),
        details=details
        if isinstance(details, Mapping)
        else {k: v for k, v in data.items() if k not in standard_members},
        status=answer.status,
    )


class ModernDialect:
    """Revision 2026-07-28: every request is self-contained."""

    revision: Revision = MODERN
    session: str | None = None

    def __init__(self) -> None:
        self._ids = itertools.count(1)

    def opening(self, lost: str | None = None) -> Steps[None]:  # noqa: ARG002 -- there is no session to lose
        """Do nothing: every request is self-contained."""
        yield from ()

    def closing(self) -> Steps[None]:
        """Do nothing."""
        yield from ()

    def list_middleware(self) -> Steps[list[MiddlewareInfo]]:
        """Call ``middleware/list``, page by page."""
        listed: list[MiddlewareInfo] = []
        cursor: Json = None
        for _ in range(MOST_PAGES):
            result = yield from self._request(
                "middleware/list", {} if cursor is None else {"cursor": cursor}, repeatable=True
            )
            listed += [MiddlewareInfo.from_wire(entry) for entry in result.get("middleware", [])]
            cursor = result.get("nextCursor")
            if cursor is None:
                return listed
        raise ProtocolError("The list of middlewares does not end.")

    def invoke(
        self,
        name: str,
        items: list[Json],
        arguments: Mapping[str, Json],
        *,
        repeatable: bool,
        progress: Progress | None,
    ) -> Steps[tuple[list[Json], Mapping[str, Json]]]:
        """Call ``middleware/invoke``; with ``progress`` the service responds with an event stream."""
        params = {"name": name, "arguments": arguments, "context": items}
        result = yield from self._request(
            "middleware/invoke", params, repeatable=repeatable, progress=progress
        )
        return content_of(result)

    def _request(
        self,
        method: str,
        params: Mapping[str, Json],
        *,
        repeatable: bool = False,
        progress: Progress | None = None,
    ) -> Steps[Mapping[str, Json]]:
        number = next(self._ids)
        meta = self._meta()
        if progress is not None:
            meta["progressToken"] = number
        full = {**params, "_meta": meta} if meta else dict(params)
        answer = yield WireCall(
            "POST",
            PATH,
            self._failure,
            headers=self._headers(method),
            body=encoded({"jsonrpc": "2.0", "id": number, "method": method, "params": full}),
            repeatable=repeatable,
            progress=progress,
        )
        result = answer.json().get("result")
        if not isinstance(result, Mapping):
            raise ProtocolError("The result is no object.")
        return self._seen(answer, result)

    def _seen(self, answer: WireAnswer, result: Mapping[str, Json]) -> Mapping[str, Json]:  # noqa: ARG002 -- a hook
        return result

    def _failure(self, answer: WireAnswer) -> SluiceError | None:
        return rpc_failure(answer)

    def _meta(self) -> dict[str, Json]:
        return {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
        }

    def _headers(self, method: str) -> dict[str, str]:
        return {
            "Content-Type": JSON_TYPE,
            "Accept": f"{JSON_TYPE}, {EVENTS_TYPE}",
            "MCP-Protocol-Version": self.revision,
            "Mcp-Method": method,
        }


class HandshakeDialect(ModernDialect):
    """Revision 2025-11-25: ``initialize`` opens a session whose id every request carries."""

    revision: Revision = HANDSHAKE

    def __init__(self) -> None:
        super().__init__()
        self._open = False

    def opening(self, lost: str | None = None) -> Steps[None]:
        """Do the handshake, unless it was done or the lost session is not the current one."""
        if self._open and (lost is None or lost != self.session):
            return
        self.session, self._open = None, False
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT_INFO}
        result = yield from self._request("initialize", params, repeatable=True)
        if result.get("protocolVersion") != HANDSHAKE:
            raise ProtocolError(f"The service does not speak MCP {HANDSHAKE}.")
        body = encoded({"jsonrpc": "2.0", "method": "notifications/initialized"})
        headers = self._headers("notifications/initialized")
        yield WireCall("POST", PATH, self._accepted, headers=headers, body=body, repeatable=True)
        self._open = True

    def closing(self) -> Steps[None]:
        """End the session; a service that no longer knows it is no error."""
        if self.session is not None:
            headers = self._headers("")
            self.session, self._open = None, False
            yield WireCall("DELETE", PATH, lambda _: None, headers=headers)

    def _seen(self, answer: WireAnswer, result: Mapping[str, Json]) -> Mapping[str, Json]:
        if "protocolVersion" in result:
            self.session = answer.headers.get(SESSION_HEADER)
        return result

    def _accepted(self, answer: WireAnswer) -> SluiceError | None:
        return rpc_failure(answer) if answer.status >= FIRST_ERROR_STATUS else None

    def _failure(self, answer: WireAnswer) -> SluiceError | None:
        if answer.status == SESSION_GONE_STATUS and self.session is not None:
            return SessionLostError("The session has ended.", status=answer.status)
        return rpc_failure(answer)

    def _meta(self) -> dict[str, Json]:
        return {}

    def _headers(self, method: str) -> dict[str, str]:
        headers = {"Content-Type": JSON_TYPE, "Accept": f"{JSON_TYPE}, {EVENTS_TYPE}"}
        if method != "initialize":
            headers["MCP-Protocol-Version"] = self.revision
        if self.session is not None:
            headers["Mcp-Session-Id"] = self.session
        return headers
