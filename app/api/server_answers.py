"""What REST and the command line tell of servers: their state, their definitions, never their secrets."""

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
    """The connection of the process that answers to a server."""

    state: str = Field(description="connecting, ready, failed or stopped.")
    since: datetime | None
    error: str | None = Field(description="What is wrong, in our words.")
    protocol_version: str | None
    server_info: dict[str, Any] | None = Field(description="Name and version, as the server calls itself.")
    offered: dict[str, int] = Field(description="How many primitives of each kind it offers.")
    quarantined: int = Field(description="How many of them are held back.")


class PrimitiveAnswer(AnswerBody):
    """A definition of a server and how it stands to what was approved."""

    kind: PrimitiveKind
    name: str
    state: PinState = Field(
        description="approved (served), changed, new, header-leak, unnameable (all held back) or gone."
    )
    digest: str | None = Field(description="SHA-256 of what the server offers now.")
    approved_digest: str | None = Field(description="SHA-256 of what was approved.")
    definition: dict[str, Any] | None = Field(
        description="What the server offers now, unless that is approved."
    )
    approved_definition: dict[str, Any] | None = Field(
        description="What was approved, unless that is offered."
    )


class ServerAnswer(AnswerBody):
    """A server; of its secrets only the names are shown, with null for each value."""

    name: str
    state: str = Field(description="pending (waits for approval), approved (served) or paused.")
    origin: str = Field(description="file (declared) or api.")
    settings: dict[str, Any]
    toolFilter: list[str] | None  # noqa: N815 - the name on the wire
    aliases: dict[str, str]
    disclosure: Disclosure
    approved: datetime | None = Field(description="When what it offers was first approved.")
    created: datetime
    created_by: str = Field(description="Id of the key that added it.")
    updated: datetime
    status: StatusAnswer | None = Field(description="null: the process that answers does not serve it.")


class ServerDetailAnswer(ServerAnswer):
    """A server with its definitions."""

    listed: bool = Field(
        description="Whether the process that answers has listed it; else states are unknown."
    )
    primitives: list[PrimitiveAnswer] = Field(description="Tools, prompts and templates; resources are data.")


class TrialAnswer(AnswerBody):
    """What connecting once has shown."""

    ready: bool = Field(description="Whether it could be listed.")
    status: StatusAnswer
    listing: str | None = Field(description="Stands for all that it offers; give it when approving.")
    primitives: list[PrimitiveAnswer]


class ApprovalAnswer(AnswerBody):
    """What was approved and what stays held back."""

    state: str
    approved: int = Field(description="How many definitions were approved by this request.")
    held_back: list[PrimitiveAnswer]


def server_answer(known: ServerRecord, upstreams: UpstreamService) -> ServerAnswer:
    """Return a server with the state of this process's connection."""
    return ServerAnswer(**_fields(known, upstreams))


def detail_answer(found: ServerDetail, upstreams: UpstreamService) -> ServerDetailAnswer:
    """Return a server with the standing of its definitions."""
    return ServerDetailAnswer(
        **_fields(found.record, upstreams),
        listed=found.reviews is not None,
        primitives=[_primitive(one, found.pins) for one in found.reviews or []],
    )


def trial_answer(trial: Trial) -> TrialAnswer:
    """Return what a test has shown."""
    inspected = trial.inspection
    return TrialAnswer(
        ready=inspected.ready,
        status=_status(inspected.status, sum(one.quarantined for one in trial.reviews)),
        listing=inspected.digest if inspected.ready else None,
        primitives=[_primitive(one, trial.pins) for one in trial.reviews],
    )


def approval_answer(done: Approval) -> ApprovalAnswer:
    """Return what an approval did."""
    return ApprovalAnswer(
        state=done.stored.state,
        approved=len(done.chosen.offers),
        held_back=[_primitive(one, {}) for one in done.chosen.held_back],
    )


def _fields(known: ServerRecord, upstreams: UpstreamService) -> dict[str, Any]:
    stored, entry = known.stored, known.entry
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
        return _status(status, sum(one.quarantined for one in upstreams.reviews(tenant, name)))
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


def _primitive(one: Review, pins: Mapping[PinName, StoredPin]) -> PrimitiveAnswer:
    approved = one.state is PinState.APPROVED
    pin = pins.get(PinName(one.kind, one.name))
    return PrimitiveAnswer(
        kind=one.kind,
        name=one.name,
        state=one.state,
        digest=one.digest,
        approved_digest=one.approved,
        definition=None if approved or one.offer is None else dict(one.offer.definition),
        approved_definition=None if approved or pin is None else dict(pin.definition),
    )
