"""The members of an audit event, which never include content, and the filters of a query."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from app.core.addresses import AddressClass

Decision = Literal["allow", "flag", "change", "block"]
"""What became of content: it passed as it was, passed though a check spoke against it, was changed, or was refused."""


@dataclass(slots=True)
class AuditEvent:
    """One recorded action: keyed digests and counts, never content.

    Nobody changes it. It is not frozen, since that would take ten times as long to make, once for each call.

    ``scope_ref``, ``in_hmac`` and ``out_hmac`` are HMACs under the audit key (hex), so that an auditor can match
    equal contexts and nobody else can guess them; so is ``on_behalf_of``, the end user for whom the actor asked.
    ``key_name`` is what people call the actor's key, ``address_class`` the kind of address that it asked from.
    ``decision`` says what became of content. ``counts`` maps entity labels to numbers. ``sealed`` is ciphertext,
    `Kept`, present only if the tenant's policy requires that content or the end user's name is kept. ``versions`` says
    what decided: of ``sluice``, and in ``engines`` of the engine of each middleware that has one; None in events of
    releases before them.
    """

    tenant: str
    id: UUID
    at: datetime
    actor: str
    roles: tuple[str, ...]
    action: str
    outcome: str
    middleware: str | None = None
    policy_version: int | None = None
    error_code: str | None = None
    scope_ref: str | None = None
    in_hmac: str | None = None
    out_hmac: str | None = None
    blocks: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    duration_us: int = 0
    request_id: str | None = None
    traceparent: str | None = None
    details: Mapping[str, str | int | bool] = field(default_factory=dict)
    sealed: bytes | None = None
    on_behalf_of: str | None = None
    key_name: str | None = None
    address_class: AddressClass | None = None
    decision: Decision | None = None
    versions: Mapping[str, Any] | None = None


_WITH_END_USER: Final = b"\x02"
"""The first byte of what is sealed where a name is part of it; a ciphertext alone begins with another."""
_LENGTH_BYTES: Final = 4


class Kept(NamedTuple):
    """The ciphertexts that an event keeps: of content, and of the end user's name; None where there is none."""

    content: bytes | None = None
    end_user: bytes | None = None

    @classmethod
    def of(cls, sealed: bytes | None) -> "Kept":
        """Take apart what an event has as ``sealed``."""
        if sealed is None or sealed[:1] != _WITH_END_USER:
            return cls(sealed)
        start = 1 + _LENGTH_BYTES
        end = start + int.from_bytes(sealed[1:start])
        return cls(sealed[end:] or None, sealed[start:end])

    def joined(self) -> bytes | None:
        """Return what an event has as ``sealed``."""
        if self.end_user is None:
            return self.content
        return (
            _WITH_END_USER
            + len(self.end_user).to_bytes(_LENGTH_BYTES)
            + self.end_user
            + (self.content or b"")
        )


class WriterNumber(NamedTuple):
    """Which of its writer's events in a tenant an event is: the first has the number 1, and none is left out."""

    writer: str
    number: int


class EventCode(NamedTuple):
    """The hash of an event's leaf in the log, and the code that authenticates it; both 32 bytes."""

    leaf: bytes
    mac: bytes


GAP_ACTION: Final = "audit.gap"
"""The action of an event by which the sealer says that numbers of a writer are missing."""

ALTERED_ACTION: Final = "audit.altered"
"""The action of an event by which the sealer says that rows were sealed whose code is not their own."""

OUTCOME_OK = "ok"
OUTCOME_REFUSED = "refused"
OUTCOME_FAILED = "failed"
OUTCOME_SENT = "sent"
"""The request was passed on to a server behind this one; a second event records the result."""

CLIENT_REQUEST_ID = "client_request_id"
"""The detail of an event that has the caller's own id of the request; ``request_id`` is always ours."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of the audit log: the member of `AuditQuery` that it sets, what it holds, and its help text."""

    name: str
    kind: Literal["time", "word", "outcome", "user"]
    help: str


AUDIT_FILTERS: Final = (
    AuditFilter(
        "since",
        "time",
        "Only events at or after this time. Without it a page is of the 30 days before `until` or now, and an export "
        "begins with the first event.",
    ),
    AuditFilter("until", "time", "Only events before this time."),
    AuditFilter("actor", "word", "Id of the API key that acted, or cli."),
    AuditFilter("user", "user", "End user, as X-Sluice-User or their token named them."),
    AuditFilter("on_behalf_of", "word", "End user, as events show them: a keyed digest."),
    AuditFilter("middleware", "word", "Name of a middleware."),
    AuditFilter("action", "word", "Name of an action, such as middleware.invoke."),
    AuditFilter("outcome", "outcome", "Outcome of the action."),
    AuditFilter("scope", "word", "Name of a vault scope."),
    AuditFilter("scope_ref", "word", "Vault scope, as events show it: a keyed digest."),
    AuditFilter("request_id", "word", "Request id that the response carried in `X-Request-Id`."),
    AuditFilter(
        "client_request_id",
        "word",
        "Request id that the client sent in `X-Request-Id` and got back in `X-Client-Request-Id`.",
    ),
)
"""The filters that REST takes as query parameters and the command line as options."""
