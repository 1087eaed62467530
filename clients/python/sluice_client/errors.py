"""Errors of a call: one exception per stable error code of the service."""

from collections.abc import Mapping
from typing import Any, ClassVar


class SluiceError(Exception):
    """A call that returned no result.

    ``code`` is stable and meant for programs; the message is for people and never holds content of a context.
    ``request_id`` finds the call in the service's log and audit; ``retry_after`` is in seconds, None where waiting
    does not help; ``details`` are JSON values such as the pointer to a fault.
    """

    default_code: ClassVar[str] = "unknown"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        details: Mapping[str, Any] | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.request_id = request_id
        self.retry_after = retry_after
        self.details: dict[str, Any] = dict(details or {})
        self.status = status


class UnauthenticatedError(SluiceError):
    """The key is missing, unknown, expired, revoked or used from a wrong address."""

    default_code = "unauthenticated"


class ForbiddenError(SluiceError):
    """The key's roles do not allow this."""

    default_code = "forbidden"


class NotFoundError(SluiceError):
    """This does not exist for this caller."""

    default_code = "not_found"


class ConflictError(SluiceError):
    """The change contradicts what is stored."""

    default_code = "conflict"


class PreconditionRequiredError(SluiceError):
    """The change does not say on which version it is based."""

    default_code = "precondition_required"


class InvalidRequestError(SluiceError):
    """The bytes were not a valid request."""

    default_code = "invalid_request"


class InvalidArgumentsError(SluiceError):
    """An argument or a context item is wrong; ``details["pointer"]`` says where."""

    default_code = "invalid_arguments"


class TooLargeError(SluiceError):
    """The context exceeds a limit on bytes, blocks or depth."""

    default_code = "too_large"


class RateLimitedError(SluiceError):
    """The tenant calls too often; nothing was done."""

    default_code = "rate_limited"


class OverloadedError(SluiceError):
    """The service has too much in flight; nothing was done."""

    default_code = "overloaded"


class DeadlineExceededError(SluiceError):
    """The service stopped the work at its time limit and passed nothing on."""

    default_code = "deadline_exceeded"


class BlockedByPolicyError(SluiceError):
    """A policy of the tenant refuses this call or this content."""

    default_code = "blocked_by_policy"


class UnscannableContentError(SluiceError):
    """The context has content that cannot be scanned, and the caller chose to refuse that."""

    default_code = "unscannable_content"


class AuditUnavailableError(SluiceError):
    """The call could not be recorded, so its answer was withheld."""

    default_code = "audit_unavailable"


class StoreUnavailableError(SluiceError):
    """The service's database does not answer."""

    default_code = "store_unavailable"


class UpstreamUnavailableError(SluiceError):
    """A server behind the service does not answer."""

    default_code = "upstream_unavailable"


class InternalError(SluiceError):
    """A bug in the service; its log has the request id."""

    default_code = "internal_error"


class UnreachableError(SluiceError):
    """The service could not be reached, or the connection was lost before the answer came.

    ``sent`` tells whether bytes of the request may have arrived; when False, nothing was done.
    """

    default_code = "unreachable"

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class ClientTimeoutError(UnreachableError):
    """No answer came within the client's own time limit; whether the work was done is unknown."""

    default_code = "client_timeout"


class NotCoveredError(SluiceError):
    """A wrapped client does not cover this call: it would pass unredacted."""

    default_code = "not_covered"


class ProtocolError(SluiceError):
    """The response is not from Sluice: another service or a proxy answered."""

    default_code = "protocol_error"


BY_CODE: dict[str, type[SluiceError]] = {
    kind.default_code: kind
    for kind in (
        UnauthenticatedError,
        ForbiddenError,
        NotFoundError,
        ConflictError,
        InvalidRequestError,
        InvalidArgumentsError,
        TooLargeError,
        RateLimitedError,
        OverloadedError,
        DeadlineExceededError,
        BlockedByPolicyError,
        UnscannableContentError,
        AuditUnavailableError,
        StoreUnavailableError,
        UpstreamUnavailableError,
        InternalError,
    )
}
"""The exception of each stable code; an unknown code of a newer service becomes a plain ``SluiceError``."""


def error_of(
    code: str,
    message: str,
    *,
    request_id: str | None = None,
    retry_after: float | None = None,
    details: Mapping[str, Any] | None = None,
    status: int | None = None,
) -> SluiceError:
    """Return the exception for ``code``."""
    kind = BY_CODE.get(code, SluiceError)
    return kind(
        message,
        code=code,
        request_id=request_id,
        retry_after=retry_after,
        details=details,
        status=status,
    )
