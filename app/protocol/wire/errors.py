"""How errors look on the MCP wire: one table from our codes to JSON-RPC codes and HTTP statuses."""

import logging
import math
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST
from pydantic import ValidationError

from app.core.errors import (
    AuditUnavailableError,
    BlockedByPolicyError,
    ConflictError,
    DeadlineExceededError,
    ForbiddenError,
    InternalError,
    InvalidArgumentsError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    PreconditionRequiredError,
    RateLimitedError,
    ServiceError,
    StoreUnavailableError,
    TooLargeError,
    UnauthenticatedError,
    UnscannableContentError,
    UpstreamUnavailableError,
)

REQUEST_CANCELLED: Final = -32800
"""What a cancelled request of the handshake revision is answered with, as the SDK does."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WireError:
    """One row: the JSON-RPC code, and the HTTP status of an answer that was not yet begun.

    A status other than 200 stands only where HTTP itself must know (credentials, sizes, rates, outages): an
    MCP client that gets one may never look at the JSON-RPC body.
    """

    code: int
    status: int = HTTPStatus.OK


# New codes must lie outside -32768..-32000: ours are positive, the HTTP status they resemble with a digit added.
WIRE_ERRORS: Final[Mapping[str, WireError]] = MappingProxyType(
    {
        UnauthenticatedError.code: WireError(4010, HTTPStatus.UNAUTHORIZED),
        ForbiddenError.code: WireError(4030, HTTPStatus.FORBIDDEN),
        BlockedByPolicyError.code: WireError(4031),
        NotFoundError.code: WireError(INVALID_PARAMS),
        ConflictError.code: WireError(4090),
        InvalidRequestError.code: WireError(INVALID_REQUEST, HTTPStatus.BAD_REQUEST),
        InvalidArgumentsError.code: WireError(INVALID_PARAMS),
        TooLargeError.code: WireError(4130, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        UnscannableContentError.code: WireError(4220),
        PreconditionRequiredError.code: WireError(4280),
        RateLimitedError.code: WireError(4290, HTTPStatus.TOO_MANY_REQUESTS),
        InternalError.code: WireError(INTERNAL_ERROR),
        UpstreamUnavailableError.code: WireError(5020),
        OverloadedError.code: WireError(5030, HTTPStatus.SERVICE_UNAVAILABLE),
        AuditUnavailableError.code: WireError(5031, HTTPStatus.SERVICE_UNAVAILABLE),
        StoreUnavailableError.code: WireError(5032, HTTPStatus.SERVICE_UNAVAILABLE),
        DeadlineExceededError.code: WireError(5040),
    }
)


class RefusedError(Exception):
    """The message cannot be dispatched at all: a fault of HTTP or JSON-RPC framing, not of a service.

    ``code`` is the JSON-RPC code that the protocol prescribes, ``name`` our stable name for the same.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = HTTPStatus.BAD_REQUEST,
        code: int = INVALID_REQUEST,
        name: str = InvalidRequestError.code,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.name = name
        self.headers = dict(headers or {})


def error_body(error: ServiceError, request_id: str) -> dict[str, Any]:
    """Return the JSON-RPC ``error`` member; ``data`` has our code, the request id and the details."""
    return {
        "code": WIRE_ERRORS[error.code].code,
        "message": error.message,
        "data": {**error.details, "code": error.code, "requestId": request_id},
    }


def error_headers(error: ServiceError) -> dict[str, str]:
    """Return the HTTP headers that belong to ``error``."""
    headers = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    if isinstance(error, UnauthenticatedError):
        headers["www-authenticate"] = 'Bearer realm="sluice"'
    return headers


def as_mcp_error(error: ServiceError, request_id: str) -> MCPError:
    """Return ``error`` in the form that the SDK puts on the wire."""
    body = error_body(error, request_id)
    return MCPError(body["code"], body["message"], body["data"])


def params_error(error: ValidationError, params: Mapping[str, Any] | None) -> InvalidArgumentsError:
    """Say where the params of a request are wrong, without quoting them."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    pointer = _pointer(first["loc"], params or {}, missing=first["type"] == "missing")
    return InvalidArgumentsError(
        f"The request's params are wrong at {pointer or '/'}: {first['msg']}.", details={"pointer": pointer}
    )


def _pointer(location: tuple[int | str, ...], params: Any, *, missing: bool) -> str:
    """Return ``location`` as a JSON pointer, without the names that the validator gives to alternatives."""
    pointer, node = "", params
    for part in location:
        inside = (
            part in node if isinstance(node, Mapping) else isinstance(node, list) and isinstance(part, int)
        )
        if not inside and not missing:
            break
        pointer += f"/{str(part).replace('~', '~0').replace('/', '~1')}"
        if not inside:
            break
        node = node[part]
    return pointer


def internal_error(error: BaseException, request_id: str) -> InternalError:
    """Log a bug by its type and place, never by its text, and return what the caller may know."""
    details = error.details if isinstance(error, InternalError) else {}
    failed = {"interceptor": details["interceptor"], "reason": "failed"} if "interceptor" in details else {}
    if isinstance(error, InternalError) and error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    where = " > ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}:{frame.name}" for frame in frames)
    logger.error("request %s failed with %s at %s", request_id, type(error).__qualname__, where)
    return InternalError(
        "Something went wrong inside the service; its log has the request id.",
        details={"errorId": request_id, **failed},
    )
