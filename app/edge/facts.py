"""What is known of one request: the guard begins the record, and whoever serves the request reads and completes it."""

import re
from collections.abc import Collection, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.core.access import Caller
from app.core.errors import ForbiddenError, ServiceError
from app.core.ids import uuid7_text
from app.core.request import RequestInfo, is_client_request_id

MCP_PATH: Final = "/mcp"
INTERCEPTORS_PATH: Final = "/mcp/interceptors"
INVOKE_PREFIX: Final = "/api/v1/middleware/"
"""What stands before the name of a middleware in the path of its invocation over REST."""

GROUP_PATH: Final = "/mcp/groups/"
"""What stands before the name of a group in the address of its endpoint."""

_KEY: Final = "sluice.request"
_END_USER: Final = b"x-sluice-user"
_REQUEST_ID: Final = b"x-request-id"
_TRACEPARENT: Final = b"traceparent"
_ENDPOINTS: Final = frozenset({MCP_PATH, INTERCEPTORS_PATH})
_TRACE = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(slots=True)
class RequestFacts:
    """One request: what it brought, and what the logs, metrics and traces say of it in the end.

    ``request_id`` is always our own; ``client_request_id`` is what the caller sent, if it is a sane one. ``address`` is
    the peer's, ``end_users`` the values of the header X-Sluice-User. ``is_mcp`` says whether an MCP endpoint has this
    path: the one of all methods, the one of a ``group``, or the one that has interceptors and nothing else. ``caller``
    is there once the guard has checked the credential, ``body`` are the bytes that it read then, None where it read
    none; ``json`` is their value, ``bytes_in`` their number. ``route`` is the template of a path that the application
    does not match by itself. ``ends_itself``: whoever serves the request ends it in good order once its credential
    counts no more; ``is_cut``: it is ended then as it is. ``tenant``, ``key_id``, ``middleware`` and ``error_code``
    are set by who finds them out; ``required`` are the roles of which the request needs one.
    """

    request_id: str
    client_request_id: str | None = None
    traceparent: str | None = None
    address: str | None = None
    end_users: Sequence[bytes] = field(default=(), repr=False)
    path: str = ""
    is_mcp: bool = False
    group: str | None = None
    interceptors_only: bool = False
    caller: Caller | None = None
    body: bytes | None = None
    json: Any = None
    bytes_in: int = 0
    route: str | None = None
    ends_itself: bool = False
    is_cut: bool = False
    tenant: str | None = None
    key_id: str | None = None
    middleware: str | None = None
    error_code: str | None = None
    required: Collection[str] = ()

    def admit(self, caller: Caller) -> None:
        """Take note of who asks."""
        self.caller = caller
        self.tenant, self.key_id = caller.tenant, caller.key_id

    def fail(self, error: ServiceError) -> None:
        """Take note of why the request failed."""
        self.error_code = error.code
        if isinstance(error, ForbiddenError):
            self.required = error.details.get("required", ())

    def forget_body(self) -> None:
        """Drop the body and its value: the server keeps this record until the connection brings another request."""
        self.body = self.json = None

    def info(self, deadline: float) -> RequestInfo:
        """Return what services are told of the request; ``deadline`` is in the event loop's time."""
        return RequestInfo(
            request_id=self.request_id,
            traceparent=self.traceparent,
            address=self.address,
            deadline=deadline,
            client_request_id=self.client_request_id,
            is_cut=lambda: self.is_cut,
        )


def is_under_mcp(path: str) -> bool:
    """Return whether a path is, or would be, one of an MCP endpoint."""
    return path == MCP_PATH or path.startswith(MCP_PATH + "/")


def facts_of(scope: MutableMapping[str, Any]) -> RequestFacts:
    """Return the record of the request with this ASGI scope; the first who asks begins it."""
    facts: RequestFacts | None = scope.get(_KEY)
    if facts is None:
        facts = scope[_KEY] = _begun(scope)
    return facts


def _begun(scope: MutableMapping[str, Any]) -> RequestFacts:
    fields = dict(scope["headers"])
    wanted = fields[_REQUEST_ID].decode("latin-1") if _REQUEST_ID in fields else ""
    trace = fields[_TRACEPARENT].decode("latin-1") if _TRACEPARENT in fields else ""
    end_users = (
        [value for name, value in scope["headers"] if name == _END_USER] if _END_USER in fields else ()
    )
    client, path = scope.get("client"), scope["path"]
    group = path.removeprefix(GROUP_PATH) if path.startswith(GROUP_PATH) else None
    return RequestFacts(
        request_id=uuid7_text(),
        client_request_id=wanted if wanted and is_client_request_id(wanted) else None,
        traceparent=trace if trace and _TRACE.fullmatch(trace) else None,
        address=client[0] if client else None,
        end_users=end_users,
        path=path,
        is_mcp=group is not None or path in _ENDPOINTS,
        group=group,
        interceptors_only=path == INTERCEPTORS_PATH,
    )
