"""Types of parameters and members that several resources share, with their limits."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, Generic, TypeVar

from fastapi import Path, Query
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from app.core.paging import page_of

MAX_PAGE: Final = 1000
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 9998


def in_range(moment: datetime) -> datetime:
    """Return ``moment`` in UTC, refusing years that some databases or time zones cannot represent."""
    if not _FIRST_YEAR < moment.year < _LAST_YEAR:
        raise ValueError("the year is out of range")
    return moment.astimezone(UTC)


Word = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
EndUser = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")]
Moment = Annotated[AwareDatetime, AfterValidator(in_range)]
TenantName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
KeyId = Annotated[str, Path(pattern=r"^[0-9a-f]{8}$", description="Id of an API key.", examples=["0123abcd"])]
TenantPath = Annotated[
    str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="Name of a tenant.", examples=["default"])
]
LimitQuery = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Items per page.")]
CursorQuery = Annotated[Word | None, Query(description="`next` of the previous page.")]

R = TypeVar("R")
T = TypeVar("T")


class Body(BaseModel):
    """A request body that refuses unknown members."""

    model_config = ConfigDict(extra="forbid")


class AnswerBody(BaseModel):
    """A response built from a record of a service."""

    model_config = ConfigDict(from_attributes=True)


class Page(BaseModel, Generic[T]):
    """A page of a list in a stable order."""

    items: list[T]
    next: str | None = Field(description="Cursor of the next page; null: this was the last page.")


def answer_page(
    rows: Sequence[R], limit: int, answer: Callable[[R], T], cursor: Callable[[R], str]
) -> Page[T]:
    """Return the first ``limit`` of ``rows`` as answers; one extra row means that another page follows."""
    page, following = page_of(rows, limit, cursor)
    return Page(items=[answer(row) for row in page], next=following)
