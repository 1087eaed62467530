"""Groups of primitives over REST: read and change them, export and import them as one document."""

import asyncio
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Body as FromBody
from fastapi import Path, Query, Request, Response
from fastapi.openapi.models import Example
from pydantic import ConfigDict, Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, Body, CursorQuery, LimitQuery, Page, answer_page
from app.core.access import Role
from app.core.catalog.groups import MAX_MEMBERS, GroupDefinition
from app.core.catalog.primitives import Member
from app.core.errors import DeadlineExceededError, InvalidArgumentsError
from app.edge.limits import RouteLimits, needs, takes
from app.services.catalog.groups import GroupInfo, SavedGroup
from app.services.data_files import DocumentFormat, write_document

_BODY_S: Final = 15.0
_GROUP: Final = {
    "name": "email",
    "title": "E-mail",
    "description": "Write, check and send mail.",
    "members": [{"kind": "tool", "name": "mail__*"}, {"kind": "tool", "name": "text__spell_check"}],
}
_DOCUMENT: Final = {"groups": [_GROUP, {"name": "work", "members": [{"kind": "group", "name": "email"}]}]}
_MEDIA_TYPES: Final[dict[DocumentFormat, str]] = {"json": "application/json", "yaml": "application/yaml"}

GroupPath = Annotated[
    str, Path(min_length=1, max_length=128, description="Name of a group.", examples=["email"])
]
GroupDefinitionBody = Annotated[
    GroupDefinition, FromBody(openapi_examples={"email": Example(summary="A group of tools", value=_GROUP)})
]
FormatQuery = Annotated[DocumentFormat, Query(alias="format", description="Format of the document.")]

router = new_router("/groups", "groups")


class MembersBody(Body):
    """Members to add to and remove from a group."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"add": [{"kind": "tool", "name": "mail__draft"}], "remove": []}]}
    )

    add: list[Member] = Field(default_factory=list, max_length=MAX_MEMBERS)
    remove: list[Member] = Field(default_factory=list, max_length=MAX_MEMBERS)


class GroupAnswer(AnswerBody):
    """A group, its parents and its origin."""

    group: dict[str, Any] = Field(
        description="The group in the form of an export; absent fields are omitted."
    )
    parents: list[str] = Field(description="Groups that have this group as a direct member.")
    origin: str = Field(description="`file`: managed by the declarative file; `api`: created over REST.")
    created: datetime
    updated: datetime


class SavedGroupAnswer(GroupAnswer):
    """The stored group, with warnings."""

    warnings: list[str] = Field(description="Warnings about members that match nothing at present.")


class GroupPlanAnswer(AnswerBody):
    """Names of the groups that an import changed or would change."""

    created: list[str]
    updated: list[str]
    removed: list[str]
    unchanged: list[str]
    warnings: list[str]


@router.get("", summary="List groups")
async def list_groups(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[GroupAnswer]:
    """Return groups by name. Needs the role operator."""
    groups = await services.groups.list(caller, info, after=cursor, limit=limit + 1)
    return answer_page(groups, limit, _answer, lambda group: group.definition.name)


@router.get(
    "/export",
    summary="Export all groups as one document",
    response_class=Response,
    responses={
        200: {
            "description": "The document, in the shape of `groups` in the declarative file.",
            "content": {
                "application/yaml": {"schema": {"type": "string"}},
                "application/json": {"schema": {"type": "object"}},
            },
        }
    },
)
async def export_groups(
    caller: CallerDep, services: ServicesDep, info: InfoDep, form: FormatQuery = "yaml"
) -> Response:
    """Return a document that `import` accepts; equal groups give equal documents. Needs the role operator."""
    document = write_document(await services.groups.export(caller, info), form)
    headers = {"content-disposition": f'attachment; filename="groups.{form}"'}
    return Response(document, media_type=_MEDIA_TYPES[form], headers=headers)


@router.post(
    "/import",
    summary="Import groups from one document",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"type": "object"},
                    "examples": {"two groups": {"value": _DOCUMENT}},
                },
                "application/yaml": {
                    "schema": {"type": "string"},
                    "examples": {"two groups": {"value": write_document(_DOCUMENT, "yaml")}},
                },
            },
        }
    },
)
@needs(Role.OPERATOR, action="groups.import")
@takes(RouteLimits(streamed=frozenset(_MEDIA_TYPES.values()), whole=True))
async def import_groups(
    request: Request,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    *,
    dry_run: Annotated[bool, Query(description="Return what would change without changing it.")] = False,
    prune: Annotated[bool, Query(description="Remove all groups that the document does not name.")] = False,
) -> GroupPlanAnswer:
    """Create and replace groups, all or none; repeating an import changes nothing. Needs the role operator."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        async with asyncio.timeout(_BODY_S):
            body = await request.body()
    except TimeoutError:
        raise DeadlineExceededError("The body did not arrive in time.") from None
    form: DocumentFormat = "json" if kind == "application/json" else "yaml"
    plan = await services.groups.import_document(caller, body, form, info, dry_run=dry_run, prune=prune)
    return GroupPlanAnswer.model_validate(plan)


@router.get("/{name}", summary="Get a group")
async def get_group(name: GroupPath, caller: CallerDep, services: ServicesDep, info: InfoDep) -> GroupAnswer:
    """Return a group. Needs the role operator."""
    return _answer(await services.groups.get(caller, name, info))


@router.put(
    "/{name}",
    summary="Create or replace a group",
    responses={201: {"model": SavedGroupAnswer, "description": "The group is new."}},
)
@needs(Role.OPERATOR, action="groups.put")
async def put_group(
    name: GroupPath,
    body: GroupDefinitionBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    response: Response,
) -> SavedGroupAnswer:
    """Store the whole group. Every process uses it at once and notifies clients. Needs the role operator."""
    if body.name != name:
        raise InvalidArgumentsError(
            "The name in the body differs from the name in the path.", details={"pointer": "/name"}
        )
    saved = await services.groups.put(caller, body, info)
    response.status_code = 201 if saved.created else 200
    return _saved(saved)


@router.patch("/{name}/members", summary="Add and remove members of a group")
@needs(Role.OPERATOR, action="groups.members")
async def change_group_members(
    name: GroupPath, body: MembersBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> SavedGroupAnswer:
    """Add and remove members; a member that is already present or absent stays so. Needs the role operator."""
    return _saved(await services.groups.change_members(caller, name, body.add, body.remove, info))


@router.delete("/{name}", status_code=204, summary="Delete a group")
@needs(Role.OPERATOR, action="groups.delete")
async def delete_group(name: GroupPath, caller: CallerDep, services: ServicesDep, info: InfoDep) -> None:
    """Delete a group but not its members; groups that contain it lose it as a member. Needs the role operator."""
    await services.groups.delete(caller, name, info)


def _answer(group: GroupInfo) -> GroupAnswer:
    return GroupAnswer.model_validate(_shown(group))


def _saved(saved: SavedGroup) -> SavedGroupAnswer:
    return SavedGroupAnswer.model_validate({**_shown(saved.group), "warnings": saved.warnings})


def _shown(group: GroupInfo) -> dict[str, Any]:
    return {
        "group": group.definition.declared(),
        "parents": list(group.parents),
        "origin": group.origin,
        "created": group.created,
        "updated": group.updated,
    }
