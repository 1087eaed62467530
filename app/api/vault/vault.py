"""The vault over REST: scopes, handles, expiry, and erasure with receipts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Query
from pydantic import ConfigDict, Field, StringConstraints, field_validator

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, Body, CursorQuery, LimitQuery, Moment, Page, Word
from app.core.access import Role
from app.core.content.handles import Handle
from app.core.errors import NotFoundError
from app.edge.limits import needs
from app.services.vault.reveals import REVEAL, RevealService
from app.services.vault.ring_state import ring_state

_MAX_VALUE = 100_000

ScopePath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Name of a vault scope.",
        examples=["conversation-1"],
    ),
]
OccurrenceCursor = Annotated[
    str | None,
    Query(max_length=400, pattern=r"^[^\x00-\x1f\x7f]*$", description="`next` of the previous page."),
]
HandlePath = Annotated[
    str, Path(max_length=200, description="A handle, with or without brackets.", examples=["PERSON_1"])
]

router = new_router("/vault", "vault")


class ExpiryBody(Body):
    """The expiry of a scope."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"expires": "2100-01-01T00:00:00Z"}]})

    expires: Moment | None = Field(description="Time with zone; null: never; a past time: at once.")


class ErasureBody(Body):
    """The value to find or to erase."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "jane.smith@example.com"}]})

    value: Annotated[str, StringConstraints(min_length=1, max_length=_MAX_VALUE)] = Field(
        description="The original, exactly as it was redacted; it is only searched for, not stored."
    )


class RevealBody(Body):
    """Why somebody looks at an original."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "Complaint 2026-114"}]})

    reason: str = Field(max_length=1000, description="3 to 500 printable characters. It is on record.")


class ScopeAnswer(AnswerBody):
    """A live scope."""

    id: str = Field(description="Name of the scope.")
    created: datetime
    expires: datetime | None
    state: str
    counts: dict[str, int] = Field(description="Number of handles by label.")


class EntryAnswer(AnswerBody):
    """A handle of a scope."""

    handle: str
    original: str | None = Field(
        default=None, description="The original; only with `originals=true` and the role restorer."
    )


class RevealAnswer(AnswerBody):
    """The original behind a handle."""

    handle: str
    original: str


class OccurrenceAnswer(AnswerBody):
    """A place in which a value occurs."""

    scope: str
    handle: str


class ReceiptAnswer(AnswerBody):
    """What was erased: counts by label, never values."""

    id: UUID
    kind: str
    at: datetime
    actor: str
    scope: str | None
    counts: dict[str, int]


class RingProcessAnswer(AnswerBody):
    """A process that serves from the database."""

    id: str
    host: str
    versions: list[int] = Field(description="Versions of the key ring that it holds.")
    release: str | None

    @field_validator("versions", mode="before")
    @classmethod
    def in_order(cls, versions: Any) -> Any:
        """Sort a set of versions."""
        return sorted(versions)


class RingAnswer(AnswerBody):
    """The key ring of the installation."""

    active: int = Field(description="The version that wraps new keys.")
    versions: Sequence[int] = Field(description="Versions that this process holds.")
    processes: Sequence[RingProcessAnswer]
    left: int = Field(description="Keys that depend on other versions; up to 10,000 of each.")


@router.get("/key-ring", summary="Get the state of the key ring")
async def get_key_ring(caller: CallerDep, services: ServicesDep, info: InfoDep) -> RingAnswer:
    """Return versions, the processes that hold them, and what is left to re-wrap, never a key.

    Needs the role key-custodian in the tenant `system`.
    """
    authority = services.access.authority
    return RingAnswer.model_validate(await ring_state(services.vault, authority, caller, info))


@router.get("/scopes", summary="List live scopes")
async def list_scopes(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
    prefix: Annotated[Word, Query(description="How the names of the scopes begin.")] = "",
) -> Page[ScopeAnswer]:
    """Return scopes by name with counts. Needs one of the roles operator, auditor, eraser."""
    page = await services.vault.list_scopes(caller, limit=limit, cursor=cursor, request=info, prefix=prefix)
    return Page(items=[ScopeAnswer.model_validate(scope) for scope in page.items], next=page.next)


@router.delete("/scopes/{scope:path}/entries/{handle}", summary="Erase a handle")
@needs(Role.ERASER, action="vault.erase_handle")
async def erase_handle(
    scope: ScopePath, handle: HandlePath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ReceiptAnswer:
    """Delete the original of one handle; its number is never reused. Needs the role eraser."""
    parsed = Handle.parse(handle)
    if parsed is None:
        raise NotFoundError("This scope has no such handle.")
    return ReceiptAnswer.model_validate(await services.vault.erase_handle(caller, scope, parsed, info))


@router.post("/scopes/{scope:path}/entries/{handle}/reveal", summary="Reveal an original")
@needs(Role.RESTORER, action=REVEAL)
async def reveal_original(
    scope: ScopePath,
    handle: HandlePath,
    body: RevealBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
) -> RevealAnswer:
    """Return the original behind one handle. Needs the role restorer, and a reason; on record with it."""
    parsed = Handle.parse(handle)
    if parsed is None:
        raise NotFoundError("This scope has no such handle.")
    original = await RevealService(services.vault).reveal(caller, scope, parsed, body.reason, info)
    return RevealAnswer(handle=parsed.name, original=original)


@router.get("/scopes/{scope:path}/entries", summary="List the handles of a scope")
async def list_entries(
    scope: ScopePath,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    originals: Annotated[
        bool, Query(description="Also return the originals; needs the role restorer.")
    ] = False,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[EntryAnswer]:
    """Return handles by label and number. Reading is recorded before the response."""
    page = await services.vault.entries(
        caller, scope, originals=originals, limit=limit, cursor=cursor, request=info
    )
    items = [EntryAnswer(handle=entry.handle.name, original=entry.original) for entry in page.items]
    return Page(items=items, next=page.next)


@router.get("/scopes/{scope:path}", summary="Get a scope")
async def get_scope(scope: ScopePath, caller: CallerDep, services: ServicesDep, info: InfoDep) -> ScopeAnswer:
    """Return counts and expiry. Foreign, expired, erased and unknown scopes all give 404."""
    return ScopeAnswer.model_validate(await services.vault.get_scope(caller, scope, info))


@router.patch("/scopes/{scope:path}", summary="Set the expiry of a scope")
@needs(Role.OPERATOR, Role.ERASER, action="vault.set_expiry")
async def set_expiry(
    scope: ScopePath, body: ExpiryBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ScopeAnswer:
    """Change the expiry of a scope. Needs the role operator or eraser."""
    changed = await services.vault.set_expiry(caller, scope, body.expires, info)
    return ScopeAnswer.model_validate(changed)


@router.delete("/scopes/{scope:path}", summary="Erase a scope")
@needs(Role.ERASER, action="vault.erase_scope")
async def erase_scope(
    scope: ScopePath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ReceiptAnswer:
    """Destroy the data key and all originals of a scope permanently. Needs the role eraser."""
    return ReceiptAnswer.model_validate(await services.vault.erase_scope(caller, scope, info))


@router.post("/occurrences", summary="Find a value", deprecated=True)
@needs(Role.ERASER, action="vault.find_value")
async def find_value(
    body: ErasureBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: OccurrenceCursor = None,
) -> Page[OccurrenceAnswer]:
    """Return where live scopes of the caller's tenant have a value. On record. Needs the role eraser.

    Goes in the next release: `POST /api/v1/subjects/search` finds other spellings, and asks for a reason.
    """
    page = await services.vault.erasures.find_value(caller, body.value, info, limit=limit, cursor=cursor)
    items = [
        OccurrenceAnswer(scope=place.scope, handle=Handle(place.label, place.ordinal).name)
        for place in page.items
    ]
    return Page(items=items, next=page.next)


@router.post("/erasures", status_code=201, summary="Erase a value everywhere", deprecated=True)
@needs(Role.ERASER, action="vault.erase_value")
async def erase_value(
    body: ErasureBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ReceiptAnswer:
    """Delete a value from every live scope of the caller's tenant. Needs the role eraser.

    Goes in the next release: `POST /api/v1/erasures` says first what it would erase, and gives a signed receipt.
    """
    return ReceiptAnswer.model_validate(await services.vault.erase_value(caller, body.value, info))
