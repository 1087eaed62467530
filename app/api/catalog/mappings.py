"""Mappings over REST: which values of which concerns the primitives match."""

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Body as FromBody
from fastapi import Path, Query, Response
from fastapi.openapi.models import Example
from pydantic import Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, LimitQuery, Page, answer_page
from app.core.access import Role
from app.core.catalog.concerns import ConcernMapping
from app.core.catalog.primitives import PrimitiveKind
from app.core.errors import InvalidArgumentsError
from app.edge.limits import needs
from app.services.catalog.concern_changes import MappingInfo

_MAX_NAME: Final = 2048
_EXAMPLES: Final = {
    "one tool": Example(
        summary="One tool",
        value={
            "kind": "tool",
            "name": "crypto__encryptData",
            "concerns": {"security": "high", "cost": "minimal"},
        },
    ),
    "pattern": Example(
        summary="All tools of a server, for any of two values and for a range",
        value={
            "kind": "tool",
            "name": "reports__*",
            "concerns": {"security": ["low", "medium"], "latency": {"max": 5}},
        },
    ),
}
KindPath = Annotated[PrimitiveKind, Path(description="Kind of the primitives.", examples=["tool"])]
NamePath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=_MAX_NAME,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="Exposed name or pattern, exactly as stored.",
        examples=["crypto__encryptData"],
    ),
]
MappingCursor = Annotated[
    str | None, Query(max_length=_MAX_NAME + 32, description="`next` of the previous page.")
]
MappingBody = Annotated[ConcernMapping, FromBody(openapi_examples=_EXAMPLES)]

router = new_router("/concern-mappings", "concerns")


class MappingAnswer(AnswerBody):
    """A mapping and its origin."""

    mapping: dict[str, Any] = Field(description="The mapping as stored: kind, name, concerns.")
    origin: str = Field(description="`file`: managed by the declarative file; `api`: created over REST.")
    created: datetime
    updated: datetime


@router.get("", summary="List mappings to concerns")
async def list_mappings(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: MappingCursor = None,
) -> Page[MappingAnswer]:
    """Return mappings by kind and name. Needs the role operator."""
    mappings = await services.concerns.mappings(caller, info, after=_after(cursor), limit=limit + 1)
    return answer_page(
        mappings, limit, _answer, lambda info: f"{info.mapping.kind.value} {info.mapping.name}"
    )


@router.put(
    "",
    summary="Map primitives to concerns",
    responses={201: {"model": MappingAnswer, "description": "The mapping is new."}},
)
@needs(Role.OPERATOR, action="concerns.mappings.put")
async def put_mapping(
    body: MappingBody, caller: CallerDep, services: ServicesDep, info: InfoDep, response: Response
) -> MappingAnswer:
    """Store the whole mapping of a name or pattern. Every process uses it at once. Needs the role operator.

    If several mappings match a primitive, one applies: the exact name, else the pattern with the most characters
    besides `*`, and among equals the first in alphabetical order. With empty `concerns`, nothing filters it.
    """
    stored, new = await services.concerns.put_mapping(caller, body, info)
    response.status_code = 201 if new else 200
    return _answer(stored)


@router.get("/{kind}/{name:path}", summary="Get a mapping")
async def get_mapping(
    kind: KindPath, name: NamePath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> MappingAnswer:
    """Return the mapping of exactly this name or pattern. Needs the role operator."""
    return _answer(await services.concerns.get_mapping(caller, kind, name, info))


@router.delete("/{kind}/{name:path}", status_code=204, summary="Remove a mapping")
@needs(Role.OPERATOR, action="concerns.mappings.delete")
async def delete_mapping(
    kind: KindPath, name: NamePath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> None:
    """Delete a mapping; other matching mappings apply again, then `_meta.concerns`. Needs the role operator."""
    await services.concerns.delete_mapping(caller, kind, name, info)


def _after(cursor: str | None) -> tuple[str, str] | None:
    if cursor is None:
        return None
    kind, space, name = cursor.partition(" ")
    if not space:
        raise InvalidArgumentsError(
            "The cursor does not belong to this list.", details={"parameter": "cursor"}
        )
    return kind, name


def _answer(info: MappingInfo) -> MappingAnswer:
    mapping = info.mapping.model_dump(mode="json")
    return MappingAnswer(mapping=mapping, origin=info.origin, created=info.created, updated=info.updated)
