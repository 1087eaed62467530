"""The one tree of errors that callers may see; each surface maps a code to its own status."""

from collections.abc import Mapping
from typing import Any, ClassVar


class ServiceError(Exception):
    """The service refuses a request for a reason that the caller may know.

    ``message`` is a sentence for people and never includes content of a context; ``details`` are for programs (JSON
    values: a pointer, a limit, a name). ``retry_after_s`` is set if waiting helps.
    """

    code: ClassVar[str]

    def __init__(
        self, message: str, *, details: Mapping[str, Any] | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self.retry_after_s = retry_after_s


class UnauthenticatedError(ServiceError):
    """The credential is missing, unknown, expired, revoked or used from a wrong address."""

    code = "unauthenticated"


class ForbiddenError(ServiceError):
    """The caller is known but its roles do not allow this."""

    code = "forbidden"


class NotFoundError(ServiceError):
    """The object does not exist for this caller (foreign and absent objects look the same)."""

    code = "not_found"


class ConflictError(ServiceError):
    """The change conflicts with stored data (a name that is taken, a state that forbids it)."""

    code = "conflict"


class PreconditionRequiredError(ServiceError):
    """The change does not say on which version it is based, so it could undo somebody else's."""

    code = "precondition_required"


class InvalidRequestError(ServiceError):
    """The bytes are not a valid request: malformed JSON, or a wrong type, encoding, host or origin."""

    code = "invalid_request"


class InvalidArgumentsError(ServiceError):
    """An argument or a context item is wrong; ``details["pointer"]`` is the JSON pointer to the fault."""

    code = "invalid_arguments"


class TooLargeError(ServiceError):
    """A limit on bytes, blocks or depth is exceeded; ``details`` name the limit."""

    code = "too_large"


class RateLimitedError(ServiceError):
    """The tenant's token bucket is empty."""

    code = "rate_limited"


class OverloadedError(ServiceError):
    """Too many requests are in flight; nothing was done."""

    code = "overloaded"


class DeadlineExceededError(ServiceError):
    """The work did not end in time; nothing was passed on."""

    code = "deadline_exceeded"


class BlockedByPolicyError(ServiceError):
    """A policy of the tenant refuses this call or this content."""

    code = "blocked_by_policy"


class UnscannableContentError(ServiceError):
    """The context contains something that cannot be scanned, and the caller chose to refuse that."""

    code = "unscannable_content"


class AuditUnavailableError(ServiceError):
    """The audit event could not be stored, so the answer is withheld."""

    code = "audit_unavailable"


class StoreUnavailableError(ServiceError):
    """The database does not answer."""

    code = "store_unavailable"


class UpstreamUnavailableError(ServiceError):
    """An MCP server behind the aggregator does not answer."""

    code = "upstream_unavailable"


class InternalError(ServiceError):
    """A bug; the message has no further details, the log has the request id."""

    code = "internal_error"


def all_errors() -> tuple[type[ServiceError], ...]:
    """Return every concrete error, for the status tables of the surfaces and their completeness test."""
    return tuple(ServiceError.__subclasses__())
