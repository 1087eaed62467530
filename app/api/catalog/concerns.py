"""Concerns over REST: the properties by which hosts filter, and the preferences of callers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Body as FromBody
from fastapi import Path, Query, Response
from fastapi.openapi.models import Example
from pydantic import ConfigDict, Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, Body, CursorQuery, LimitQuery, Page, answer_page
from app.core.access import Role
from app.core.catalog.concerns import ConcernDefinition
from app.core.errors import InvalidArgumentsError
from app.edge.limits import needs
from app.services.catalog.concern_changes import ConcernInfo
from app.services.catalog.concerns import Preferences

_EXAMPLES: Final = {
    "security": Example(
        summary="A list of values, in order",
        value={
            "name": "security",
            "description": "Security level required for the operation",
            "values": ["high", "medium", "low"],
            "default": "medium",
        },
    ),
    "latency": Example(
        summary="A range; a value outside becomes the nearest one",
        value={
            "name": "latency",
            "description": "Seconds that an answer may take",
            "values": {"min": 1, "max": 60, "step": 1},
            "default": 10,
            "on_invalid": "clamp",
        },
    ),
}

ConcernPath = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
        description="Name of a concern.",
        examples=["security"],
    ),
]
OwnerPath = Annotated[
    str,
    Path(
        pattern=r"^(?:[0-9a-f]{8}|anonymous)$",
        description="Id of an API key; `anonymous` if the service requires no key.",
        examples=["0123abcd"],
    ),
]
ForceQuery = Annotated[
    bool,
    Query(
        description="Change it even if mappings use the removed values; they are removed from the mappings."
    ),
]
DefinitionBody = Annotated[ConcernDefinition, FromBody(openapi_examples=_EXAMPLES)]

router = new_router("/concerns", "concerns")


class ConcernAnswer(AnswerBody):
    """A concern and its origin."""

    concern: dict[str, Any] = Field(description="The concern, in the form of the declarative file.")
    origin: str = Field(description="`file`: managed by the declarative file; `api`: created over REST.")
    created: datetime
    updated: datetime


class PreferencesBody(Body):
    """Preferences of a caller, used if its session and request set no value."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"concerns": {"security": "high"}}]})

    concerns: dict[str, Any] = Field(
        description="Values by name of the concern; null: it does not filter, whatever its default is. An empty object "
        "removes all stored preferences."
    )


class PreferencesAnswer(AnswerBody):
    """The stored preferences of a caller."""

    key_id: str
    concerns: dict[str, Any]
    warnings: list[dict[str, str]] = Field(
        description="Ignored or adjusted values: `concern`, `code` and `message` of each."
    )


@router.get("", summary="List concerns")
async def list_concerns(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[ConcernAnswer]:
    """Return concerns by name. Needs the role operator."""
    concerns = await services.concerns.list(caller, info, after=cursor, limit=limit + 1)
    return answer_page(concerns, limit, _answer, lambda concern: concern.definition.name)


@router.get("/preferences/{key_id}", summary="Get the preferences of a caller")
async def get_preferences(
    key_id: OwnerPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> PreferencesAnswer:
    """Return your own preferences with any role, those of the tenant's other keys with the role operator."""
    return _preferred(await services.concerns.preferences(caller, key_id, info))


@router.put("/preferences/{key_id}", summary="Replace the preferences of a caller")
async def put_preferences(
    key_id: OwnerPath, body: PreferencesBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> PreferencesAnswer:
    """Replace your own preferences with any role, those of the tenant's other keys with the role operator."""
    return _preferred(await services.concerns.put_preferences(caller, key_id, body.concerns, info))


@router.get("/{name}", summary="Get a concern")
async def get_concern(
    name: ConcernPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ConcernAnswer:
    """Return a concern. Needs the role operator."""
    return _answer(await services.concerns.get(caller, name, info))


@router.put(
    "/{name}",
    summary="Declare or replace a concern",
    responses={201: {"model": ConcernAnswer, "description": "The concern is new."}},
)
@needs(Role.OPERATOR, action="concerns.put")
async def put_concern(
    name: ConcernPath,
    body: DefinitionBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    response: Response,
    *,
    force: ForceQuery = False,
) -> ConcernAnswer:
    """Store the whole definition. Every process uses it at once and notifies clients. Needs the role operator."""
    if body.name != name:
        raise InvalidArgumentsError(
            "The name in the body differs from the name in the path.", details={"pointer": "/name"}
        )
    stored, new = await services.concerns.put(caller, body, info, force=force)
    response.status_code = 201 if new else 200
    return _answer(stored)


@router.delete("/{name}", status_code=204, summary="Delete a concern")
@needs(Role.OPERATOR, action="concerns.delete")
async def delete_concern(
    name: ConcernPath, caller: CallerDep, services: ServicesDep, info: InfoDep, *, force: ForceQuery = False
) -> None:
    """Delete a concern, so that it filters nothing. Needs the role operator."""
    await services.concerns.delete(caller, name, info, force=force)


def _answer(info: ConcernInfo) -> ConcernAnswer:
    concern = info.definition.model_dump(mode="json")
    return ConcernAnswer(concern=concern, origin=info.origin, created=info.created, updated=info.updated)


def _preferred(preferences: Preferences) -> PreferencesAnswer:
    warnings: list[Mapping[str, str]] = list(preferences.warnings)
    return PreferencesAnswer(
        key_id=preferences.key_id,
        concerns=dict(preferences.concerns),
        warnings=[dict(warning) for warning in warnings],
    )
