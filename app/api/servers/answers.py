"""Servers as REST and the command line show them: state and definitions, never secrets."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import Field

from app.api.fields import AnswerBody
from app.core.catalog.primitives import Disclosure, PrimitiveKind
from app.services.servers.approval import Approval
from app.services.servers.inspection import ServerStatus
from app.services.servers.pins import PinName, PinState, Review
from app.services.servers.sealing import shown
from app.services.servers.server_records import ServerDetail, ServerRecord, StoredPin, Trial
from app.services.servers.upstreams import UpstreamService

_NAMES: Final = ("name", "title", "version")


class StatusAnswer(AnswerBody):
    """The connection to a server from the process that responds."""

    state: str = Field(description="State: connecting, ready, failed or stopped.")
    since: datetime | None
    error: str | None = Field(description="What is wrong, in the words of this service.")
    protocol_version: str | None
    server_info: dict[str, Any] | None = Field(description="Name and version that the server reports.")
    offered: dict[str, int] = Field(description="Number of primitives offered, by kind.")
    quarantined: int = Field(description="Number of offered primitives that are not served.")


class PrimitiveAnswer(AnswerBody):
    """A definition of a server, compared with its approval."""

    kind: PrimitiveKind
    name: str
    state: PinState = Field(
        description="approved (served), changed, new, invalid-header, unnameable (all not served) or gone."
    )
    digest: str | None = Field(description="SHA-256 of the offered definition.")
    approved_digest: str | None = Field(description="SHA-256 of the approved definition.")
    definition: dict[str, Any] | None = Field(description="The offered definition, unless it is approved.")
    approved_definition: dict[str, Any] | None = Field(
        description="The approved definition, unless it is offered."
    )


class ServerAnswer(AnswerBody):
    """A server; secrets are shown by name, with null as the value."""

    name: str
    state: str = Field(description="State: pending (waits for approval), approved (served) or paused.")
    origin: str = Field(description="Origin: file (declared) or api.")
    settings: dict[str, Any]
    toolFilter: list[str] | None  # noqa: N815 - the name on the wire
    aliases: dict[str, str]
    disclosure: Disclosure
    approved: datetime | None = Field(description="When the server was first approved.")
    created: datetime
    created_by: str = Field(description="Id of the key that added it.")
    updated: datetime
    status: StatusAnswer | None = Field(
        description="Connection; null: the process that responds does not serve this server."
    )


class ServerDetailAnswer(ServerAnswer):
    """A server with its definitions."""

    listed: bool = Field(
        description="Whether the process that responds has listed the server; otherwise states are unknown."
    )
    primitives: list[PrimitiveAnswer] = Field(
        description="Tools, prompts and templates; resources are data and need no approval."
    )


class TrialAnswer(AnswerBody):
    """The result of connecting once."""

    ready: bool = Field(description="Whether the server could be listed.")
    status: StatusAnswer
    listing: str | None = Field(
        description="Digest of all that the server offers; send it as `listing` when approving."
    )
    primitives: list[PrimitiveAnswer]


class ApprovalAnswer(AnswerBody):
    """What was approved and what is still not served."""

    state: str
    approved: int = Field(description="Number of definitions that this request approved.")
    held_back: list[PrimitiveAnswer]


def server_answer(record: ServerRecord, upstreams: UpstreamService) -> ServerAnswer:
    """Return a server with the state of this process's connection."""
    return ServerAnswer(**_fields(record, upstreams))


def detail_answer(detail: ServerDetail, upstreams: UpstreamService) -> ServerDetailAnswer:
    """Return a server with the approval state of its definitions."""
    return ServerDetailAnswer(
        **_fields(detail.record, upstreams),
        listed=detail.reviews is not None,
        primitives=[_primitive(review, detail.pins) for review in detail.reviews or []],
    )


def trial_answer(trial: Trial) -> TrialAnswer:
    """Return the result of a test."""
    inspected = trial.inspection
    return TrialAnswer(
        ready=inspected.ready,
        status=_status(inspected.status, sum(review.quarantined for review in trial.reviews)),
        listing=inspected.digest if inspected.ready else None,
        primitives=[_primitive(review, trial.pins) for review in trial.reviews],
    )


def approval_answer(done: Approval) -> ApprovalAnswer:
    """Return the result of an approval."""
    return ApprovalAnswer(
        state=done.stored.state,
        approved=len(done.chosen.offers),
        held_back=[_primitive(review, {}) for review in done.chosen.held_back],
    )


def _fields(record: ServerRecord, upstreams: UpstreamService) -> dict[str, Any]:
    stored, entry = record.stored, record.entry
    return {
        "name": stored.name,
        "state": stored.state,
        "origin": stored.origin,
        "settings": shown(entry.settings),
        "toolFilter": entry.tool_filter,
        "aliases": entry.aliases,
        "disclosure": entry.disclosure,
        "approved": stored.pinned,
        "created": stored.created,
        "created_by": stored.created_by,
        "updated": stored.updated,
        "status": _connection(stored.tenant, stored.name, upstreams),
    }


def _connection(tenant: str, name: str, upstreams: UpstreamService) -> StatusAnswer | None:
    status, fault = upstreams.status(tenant, name), upstreams.fault(tenant, name)
    if status is not None:
        return _status(status, sum(review.quarantined for review in upstreams.reviews(tenant, name)))
    if fault is not None:
        return StatusAnswer(
            state="failed",
            since=None,
            error=fault,
            protocol_version=None,
            server_info=None,
            offered={},
            quarantined=0,
        )
    return None


def _status(status: ServerStatus, quarantined: int) -> StatusAnswer:
    info = status.server_info or {}
    return StatusAnswer(
        state=status.state,
        since=status.since,
        error=status.error,
        protocol_version=status.protocol_version,
        server_info={name: info[name] for name in _NAMES if name in info} or None,
        offered={kind.value: count for kind, count in status.offered.items()},
        quarantined=quarantined,
    )


def _primitive(review: Review, pins: Mapping[PinName, StoredPin]) -> PrimitiveAnswer:
    approved = review.state is PinState.APPROVED
    pin = pins.get(PinName(review.kind, review.name))
    return PrimitiveAnswer(
        kind=review.kind,
        name=review.name,
        state=review.state,
        digest=review.digest,
        approved_digest=review.approved,
        definition=None if approved or review.offer is None else dict(review.offer.definition),
        approved_definition=None if approved or pin is None else dict(pin.definition),
    )
