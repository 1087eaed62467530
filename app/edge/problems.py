"""How errors look over plain HTTP: problem details (RFC 9457), from one table of codes."""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from starlette.responses import Response

from app.core.errors import InternalError, ServiceError, UnauthenticatedError
from app.core.strictjson import dumps
from app.edge.observability import log_bug

PROBLEM_TYPE: Final = "application/problem+json"
URN_PREFIX: Final = "urn:sluice:error:"

PROBLEMS: Final[Mapping[str, tuple[int, str]]] = {
    "unauthenticated": (401, "No valid credential"),
    "forbidden": (403, "Not allowed"),
    "not_found": (404, "Not found"),
    "conflict": (409, "Conflicts with what is stored"),
    "precondition_required": (428, "Say on which version the change is based"),
    "invalid_request": (400, "Not a valid request"),
    "invalid_arguments": (422, "Wrong arguments"),
    "too_large": (413, "Too large"),
    "rate_limited": (429, "Too many requests"),
    "overloaded": (503, "Too much to do"),
    "deadline_exceeded": (504, "Took too long"),
    "blocked_by_policy": (403, "Refused by the tenant's policy"),
    "unscannable_content": (422, "Content that cannot be scanned"),
    "audit_unavailable": (503, "The record cannot be written"),
    "store_unavailable": (503, "The database does not answer"),
    "upstream_unavailable": (502, "A server behind this one does not answer"),
    "internal_error": (500, "A fault in the service"),
}
"""Code -> HTTP status and title; a test fails when a code of core.errors is missing."""


def status_of(error: ServiceError) -> int:
    """Return the HTTP status of ``error``."""
    return PROBLEMS[error.code][0]


def problem(error: ServiceError, request_id: str, status: int | None = None) -> dict[str, Any]:
    """Return the problem document of ``error``; ``status`` where HTTP has a more exact one than the table."""
    usual, title = PROBLEMS[error.code]
    details = dict(error.details)
    body: dict[str, Any] = {
        "type": URN_PREFIX + error.code,
        "title": title,
        "status": status or usual,
        "detail": error.message,
        "code": error.code,
        "request_id": request_id,
    }
    if "pointer" in details:
        body["pointer"] = details.pop("pointer")
    if details:
        body["details"] = details
    return body


def error_headers(error: ServiceError, status: int) -> dict[str, str]:
    """Return the headers that belong to ``error``: when to try again, how to authenticate."""
    headers = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    elif status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}:
        headers["retry-after"] = "1"
    if isinstance(error, UnauthenticatedError):
        headers["www-authenticate"] = 'Bearer realm="sluice"'
    return headers


def problem_response(
    error: ServiceError,
    request_id: str,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return the whole answer to a request that ended in ``error``."""
    status = status or status_of(error)
    return Response(
        dumps(problem(error, request_id, status)),
        status,
        headers={**error_headers(error, status), **(headers or {})},
        media_type=PROBLEM_TYPE,
    )


def internal_error() -> InternalError:
    """Return what a caller may know of a bug."""
    return InternalError("Something went wrong inside the service; its log has the request id.")


def log_cause(error: ServiceError, request_id: str) -> None:
    """Log the exception behind an internal error that a service raised in its place."""
    if isinstance(error, InternalError):
        log_bug(structlog.get_logger("sluice"), error.__cause__ or error, request_id)
