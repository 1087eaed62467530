"""Where the values of a person are, over REST: scopes, types, counts and times, never an original."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import ConfigDict, Field, StringConstraints

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, Body, LimitQuery
from app.core.access import Role
from app.edge.limits import needs
from app.services.vault.subjects import (
    MOST_VALUES,
    SEARCH,
    SubjectPage,
    SubjectRequest,
    SubjectService,
    SubjectValue,
)

_MAX_VALUE = 10_000
Reason = Annotated[
    str, Field(max_length=1000, description="Why: 3 to 500 printable characters, on record. No value in it.")
]
SubjectCursor = Annotated[
    str | None,
    Query(max_length=400, pattern=r"^[^\x00-\x1f\x7f]*$", description="`next` of the previous page."),
]

router = new_router("/subjects", "subjects")


class SubjectValueBody(Body):
    """A value of a person."""

    value: Annotated[str, StringConstraints(min_length=1, max_length=_MAX_VALUE)] = Field(
        description="A name, an address, a number; it is only compared, not stored."
    )
    type: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,40}$")] | None = Field(
        default=None, description="Only where it was masked as this type, such as PERSON; null: as any."
    )


class SubjectSearchBody(Body):
    """What is searched for, and why."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "values": [
                        {"value": "jane.smith@example.com"},
                        {"value": "Jane Smith", "type": "PERSON"},
                    ],
                    "variants": True,
                    "reason": "Request for access 2026-114",
                }
            ]
        }
    )

    values: Annotated[list[SubjectValueBody], Field(min_length=1, max_length=MOST_VALUES)] = Field(
        description="A tenant may search for 60 values a minute."
    )
    variants: bool = Field(
        default=False,
        description="Also other spellings: case, spacing, accents, formats of phone and card numbers.",
    )
    reason: Reason


class SubjectGroupAnswer(AnswerBody):
    """The values of one type that a scope has."""

    scope: str
    type: str = Field(examples=["EMAIL"])
    count: int = Field(description="Number of handles.")
    first: datetime = Field(description="When the first of them was stored.")
    last: datetime


class SubjectSearchAnswer(AnswerBody):
    """Where the values are; no original is shown."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "indexed": True,
                    "unreadable": 0,
                    "scopes": 1,
                    "counts": {"EMAIL": 1},
                    "by_value": [1, 0],
                    "items": [
                        {
                            "scope": "conversation-1",
                            "type": "EMAIL",
                            "count": 1,
                            "first": "2026-11-20T09:00:00Z",
                            "last": "2026-11-20T09:00:00Z",
                        }
                    ],
                    "next": None,
                }
            ]
        }
    )

    indexed: bool = Field(
        description="Whether every value of the tenant is in the index; those that are not were opened one by one."
    )
    unreadable: int = Field(
        description="Values outside the index that could not be opened, and so not compared."
    )
    scopes: int = Field(description="Number of live scopes that have one of the values.")
    counts: dict[str, int] = Field(description="Number of handles by type, in all scopes.")
    by_value: list[int] = Field(description="Number of handles of each value, in the order of the request.")
    items: list[SubjectGroupAnswer] = Field(description="In the order of scopes and types.")
    next: str | None = Field(description="Cursor of the next page; null: this was the last page.")


def subject_values(values: Sequence[SubjectValueBody]) -> list[SubjectValue]:
    """Return the values of a body."""
    return [SubjectValue(each.value, each.type) for each in values]


@router.post("/search", summary="Find a person's values")
@needs(Role.ERASER, action=SEARCH)
async def search_subjects(
    body: SubjectSearchBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: SubjectCursor = None,
) -> SubjectSearchAnswer:
    """Return which live scopes of the caller's tenant have the values. Needs the role eraser and a reason."""
    wanted = SubjectRequest(subject_values(body.values), body.reason, body.variants)
    page = await SubjectService.over(services.vault).search(caller, wanted, info, limit=limit, cursor=cursor)
    return search_answer(page)


def search_answer(page: SubjectPage) -> SubjectSearchAnswer:
    """Return what a search has as the route shows it."""
    items = [
        SubjectGroupAnswer(
            scope=group.place.scope,
            type=group.place.label,
            count=group.count,
            first=group.first,
            last=group.last,
        )
        for group in page.items
    ]
    totals = page.totals
    return SubjectSearchAnswer(
        indexed=totals.indexed,
        unreadable=totals.unreadable,
        scopes=totals.scopes,
        counts=totals.counts,
        by_value=totals.by_value,
        items=items,
        next=page.next,
    )
