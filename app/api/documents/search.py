"""Search collections as another reader over REST: which documents it finds, never their text."""

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, Body
from app.core.access import Role
from app.core.catalog.collections import Principal
from app.edge.limits import needs
from app.services.documents.trials import SEARCH_AS

router = new_router("/collections", "collections")


class ReaderSearchBody(Body):
    """A search as another reader."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "budget of the expansion", "reader": "role:invoker"}]}
    )

    query: Annotated[str, StringConstraints(min_length=1, max_length=4000)]
    reader: Principal = Field(
        default="*", description="Who searches: `key:<id>`, `role:<role>`, or `*`: whoever no list names."
    )
    sources: list[Annotated[str, StringConstraints(min_length=1, max_length=63)]] | None = Field(
        default=None, max_length=100, description="Names of collections or sources; null: all."
    )
    limit: int = Field(default=10, ge=1, le=50, description="Maximum number of documents.")


class FoundDocumentAnswer(AnswerBody):
    """A document that the reader finds, without its text."""

    document: str = Field(description="Id of the document.")
    title: str
    collection: str
    source: str
    relevance: float = Field(description="0 to 1.")


class ReaderSearchAnswer(AnswerBody):
    """What a reader finds, best first."""

    items: list[FoundDocumentAnswer]


@router.post("/search", summary="Search as another reader")
@needs(Role.OPERATOR, action=SEARCH_AS)
async def search_as(
    body: ReaderSearchBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ReaderSearchAnswer:
    """Return which documents a reader finds, never their text; on record without the query. Needs the role operator."""
    documents = await services.trials.search(
        caller, body.query, body.reader, info, sources=body.sources, limit=body.limit
    )
    return ReaderSearchAnswer(items=[FoundDocumentAnswer.model_validate(document) for document in documents])
