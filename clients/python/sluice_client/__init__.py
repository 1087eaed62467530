"""The Python client for host applications.

with Sluice("http://127.0.0.1:8000", key) as sluice:
    safe = sluice.redact("My name is John Doe.")
    answer = model(safe.text)
    print(sluice.restore(answer, scope=safe.scope).text)
"""

from sluice_client.asynchronous import AsyncSluice
from sluice_client.blocking import Sluice
from sluice_client.errors import (
    AuditUnavailableError,
    BlockedByPolicyError,
    ClientTimeoutError,
    ConflictError,
    DeadlineExceededError,
    ForbiddenError,
    InternalError,
    InvalidArgumentsError,
    InvalidRequestError,
    NotCoveredError,
    NotFoundError,
    OverloadedError,
    ProtocolError,
    RateLimitedError,
    SluiceError,
    StoreUnavailableError,
    TooLargeError,
    UnauthenticatedError,
    UnreachableError,
    UnscannableContentError,
    UpstreamUnavailableError,
)
from sluice_client.results import (
    Health,
    InvokeResult,
    MiddlewareInfo,
    Redaction,
    RedactResult,
    RestoreResult,
)
from sluice_client.wrapping import wrap

__all__ = [
    "AsyncSluice",
    "AuditUnavailableError",
    "BlockedByPolicyError",
    "ClientTimeoutError",
    "ConflictError",
    "DeadlineExceededError",
    "ForbiddenError",
    "Health",
    "InternalError",
    "InvalidArgumentsError",
    "InvalidRequestError",
    "InvokeResult",
    "MiddlewareInfo",
    "NotCoveredError",
    "NotFoundError",
    "OverloadedError",
    "ProtocolError",
    "RateLimitedError",
    "RedactResult",
    "Redaction",
    "RestoreResult",
    "Sluice",
    "SluiceError",
    "StoreUnavailableError",
    "TooLargeError",
    "UnauthenticatedError",
    "UnreachableError",
    "UnscannableContentError",
    "UpstreamUnavailableError",
    "wrap",
]
