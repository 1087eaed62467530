"""Descriptions of tools over REST: what operators write for progressive disclosure."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import Body as FromBody
from fastapi import Path, Response
from fastapi.openapi.models import Example
from pydantic import Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, CursorQuery, LimitQuery, Page
from app.core.tools.disclosure import ToolDescription

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
    """What is written about a tool; where that is nothing on some point, it is derived from the definition."""

    name: str
    description: ToolDescription
    origin: str = Field(description="`api`, over what a file says of the same tool, or `file` alone.")
    updated: datetime | None = Field(description="When it was stored; null for a file.")


@router.get("", summary="List what is written about tools")
async def list_descriptions(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[DescriptionAnswer]:
    """Return descriptions by name, those of files included; needs the role operator."""
    found = await services.descriptions.list(caller, info, after=cursor, limit=limit)
    return Page(items=[DescriptionAnswer.model_validate(one) for one in found.items], next=found.next)


@router.get("/{name:path}", summary="Get what is written about a tool")
async def get_description(
    name: ToolPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> DescriptionAnswer:
    """Return what holds; needs the role operator."""
    return DescriptionAnswer.model_validate(await services.descriptions.get(caller, name, info))


@router.put("/{name:path}", summary="Describe a tool")
async def put_description(
    name: ToolPath, body: DescriptionBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> DescriptionAnswer:
    """Store what is written about the tool of that name, whether or not there is one now; needs the role operator.

    Members that are absent or null keep to a file of that tool, else to the server's own definition. An empty list or
    object says that there is nothing, and nothing is derived in its place.
    """
    return DescriptionAnswer.model_validate(await services.descriptions.put(caller, name, body, info))


@router.delete("/{name:path}", status_code=204, summary="Remove what is written about a tool")
async def remove_description(
    name: ToolPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> Response:
    """Remove what was stored; a file of that tool holds again. Needs the role operator."""
    await services.descriptions.remove(caller, name, info)
    return Response(status_code=204)
