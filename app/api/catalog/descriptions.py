"""Descriptions of tools over REST: what operators write for progressive disclosure."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import Body as FromBody
from fastapi import Path, Response
from fastapi.openapi.models import Example
from pydantic import Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, CursorQuery, LimitQuery, Page
from app.core.access import Role
from app.core.tools.disclosure import ToolDescription
from app.edge.limits import needs

_EXAMPLES: Final = {
    "search": Example(
        summary="A short description, examples and guidance",
        value={
            "short": "Retrieves data from the system with filtering and pagination options.",
            "examples": [{"description": "Basic query", "input": {"query": "search term", "limit": 10}}],
            "usage_guidance": {"paging": "Repeat the call with the cursor of the answer."},
            "error_guidance": {"rate_limited": "Wait a minute, then try once more."},
        },
    )
}

ToolPath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="The name under which clients see the tool.",
        examples=["data__get_data"],
    ),
]
DescriptionBody = Annotated[ToolDescription, FromBody(openapi_examples=_EXAMPLES)]

router = new_router("/tool-descriptions", "tool descriptions")


class DescriptionAnswer(AnswerBody):
    """The description of a tool; missing members are derived from the tool's definition."""

    name: str
    description: ToolDescription
    origin: str = Field(description="`api`: stored over REST, overriding a file; `file`: only from a file.")
    updated: datetime | None = Field(description="When it was stored; null if it comes from a file.")


@router.get("", summary="List descriptions of tools")
async def list_descriptions(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[DescriptionAnswer]:
    """Return descriptions by name, including those of files. Needs the role operator."""
    page = await services.descriptions.list(caller, info, after=cursor, limit=limit)
    return Page(
        items=[DescriptionAnswer.model_validate(description) for description in page.items], next=page.next
    )


@router.get("/{name:path}", summary="Get the description of a tool")
async def get_description(
    name: ToolPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> DescriptionAnswer:
    """Return the description in effect. Needs the role operator."""
    return DescriptionAnswer.model_validate(await services.descriptions.get(caller, name, info))


@router.put("/{name:path}", summary="Describe a tool")
@needs(Role.OPERATOR, action="descriptions.put")
async def put_description(
    name: ToolPath, body: DescriptionBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> DescriptionAnswer:
    """Store the description of a tool, which need not exist yet. Needs the role operator.

    Absent or null members come from a file for that tool, else from the server's own definition. An empty list or
    object means that there is nothing, and nothing is derived instead.
    """
    return DescriptionAnswer.model_validate(await services.descriptions.put(caller, name, body, info))


@router.delete("/{name:path}", status_code=204, summary="Delete the description of a tool")
@needs(Role.OPERATOR, action="descriptions.remove")
async def remove_description(
    name: ToolPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> Response:
    """Delete the stored description; a file for that tool applies again. Needs the role operator."""
    await services.descriptions.remove(caller, name, info)
    return Response(status_code=204)
