"""Collections of documents over REST: create, fill, list and delete them; no response contains a document's text."""

import asyncio
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Body as FromBody
from fastapi import Path, Query, Request, Response
from fastapi.openapi.models import Example
from pydantic import Field, StringConstraints

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, Body, CursorQuery, LimitQuery, Page, answer_page
from app.core.access import Role
from app.core.catalog.collections import CollectionDefinition, DocumentDetails, Principal, validated
from app.core.errors import DeadlineExceededError
from app.edge.facts import facts_of
from app.edge.limits import RouteLimits, needs, takes
from app.services.documents.collections import CollectionInfo, DocumentInfo
from app.services.documents.ingestion import Ingested, IngestionInfo, Submitted

_BODY_S: Final = 60.0
_UPLOAD_TYPES: Final = frozenset(
    {
        "text/plain",
        "text/markdown",
        "text/html",
        "application/xhtml+xml",
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/octet-stream",
    }
)
"""Document formats that are accepted beside JSON."""

_COLLECTION: Final = {"description": "Notes of meetings.", "access": ["*"]}
_DOCUMENT: Final = {
    "source": "notes",
    "external_id": "q4-planning",
    "title": "Q4 Planning Notes",
    "date": "2025-10-01",
    "text": "- Focus on EMEA expansion\n- Budget: $2M allocated",
}
CollectionPath = Annotated[
    str, Path(min_length=1, max_length=63, description="Name of a collection.", examples=["internal_docs"])
]
IdPath = Annotated[
    str,
    Path(
        pattern=r"^[0-9a-f]{32}$",
        description="Id of the document or ingestion.",
        examples=["0190a1b2c3d47e5f8a9b0c1d2e3f4a5b"],
    ),
]

router = new_router("/collections", "collections")


class CollectionBody(Body):
    """Description and readers of a collection."""

    description: str = Field(default="", max_length=500)
    access: list[Principal] = Field(
        default=["*"],
        max_length=200,
        description="Who may read it: `*` (the whole tenant), `key:<id>` or `role:<role>`; empty: nobody.",
    )


class DocumentBody(DocumentDetails):
    """A document as text, with its metadata."""

    text: Annotated[str, StringConstraints(min_length=1)]
    media_type: str = Field(default="text/markdown", description="text/markdown, text/plain or text/html.")


class SourceAnswer(AnswerBody):
    """Number of documents of a source."""

    source: str
    documents: int


class CollectionAnswer(AnswerBody):
    """A collection and its size."""

    name: str
    description: str
    access: list[str]
    sources: list[SourceAnswer]
    documents: int
    chunks: int
    embedded: bool = Field(description="Whether every chunk has a vector, for search by meaning.")
    created: datetime
    created_by: str
    updated: datetime


class DocumentAnswer(AnswerBody):
    """The metadata of a document, without its text."""

    id: str
    collection: str
    source: str
    external_id: str
    title: str
    uri: str | None
    date: str | None
    media_type: str
    access: list[str] = Field(description="Readers of this document; empty: the readers of the collection.")
    chunks: int
    characters: int
    created: datetime
    updated: datetime


class IngestionAnswer(AnswerBody):
    """A document that is ingested in the background."""

    id: str
    collection: str
    source: str
    external_id: str
    state: str = Field(description="State: queued, running, done or failed.")
    percent: int
    document: str | None = Field(description="Id of the document once the state is done.")
    error: str | None = Field(description="Why the ingestion failed; null unless the state is failed.")
    created: datetime
    updated: datetime


class IngestedAnswer(AnswerBody):
    """The outcome of sending a document."""

    outcome: str = Field(description="Outcome: created, updated, unchanged or queued.")
    document: DocumentAnswer | None
    ingestion: IngestionAnswer | None


@router.get("", summary="List collections")
async def list_collections(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[CollectionAnswer]:
    """Return collections by name. Needs the role operator."""
    collections = await services.collections.list(caller, info, after=cursor, limit=limit + 1)
    return answer_page(collections, limit, collection_answer, lambda collection: collection.definition.name)


@router.get("/{name}", summary="Get a collection")
async def get_collection(
    name: CollectionPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> CollectionAnswer:
    """Return a collection. Needs the role operator."""
    return collection_answer(await services.collections.get(caller, name, info))


@router.put(
    "/{name}",
    summary="Create a collection, or change who may read it",
    responses={201: {"model": CollectionAnswer, "description": "The collection is new."}},
)
@needs(Role.OPERATOR, action="collections.put")
async def put_collection(
    name: CollectionPath,
    body: Annotated[
        CollectionBody,
        FromBody(openapi_examples={"open": Example(summary="For the whole tenant", value=_COLLECTION)}),
    ],
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    response: Response,
) -> CollectionAnswer:
    """Create or replace the settings of a collection. Every process uses them at once. Needs the role operator."""
    definition = validated(CollectionDefinition, {"name": name, **body.model_dump()})
    saved, created = await services.collections.put(caller, definition, info)
    response.status_code = 201 if created else 200
    return collection_answer(saved)


@router.delete("/{name}", status_code=204, summary="Delete a collection with all its documents")
@needs(Role.OPERATOR, action="collections.delete")
async def delete_collection(
    name: CollectionPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> None:
    """Delete rows, index entries, vectors and caches before responding. Needs the role operator."""
    await services.collections.delete(caller, name, info)


@router.get("/{name}/documents", summary="List the documents of a collection")
async def list_documents(
    name: CollectionPath,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    source: Annotated[str | None, Query(max_length=63, description="Only documents of this source.")] = None,
    limit: LimitQuery = 100,
    cursor: Annotated[str | None, Query(max_length=600, description="`next` of the previous page.")] = None,
) -> Page[DocumentAnswer]:
    """Return documents by source and external id, without their text. Needs the role operator."""
    first, slash, second = (cursor or "").partition("/")
    after = (first, second) if slash else None
    documents = await services.collections.documents(
        caller, name, info, source=source, after=after, limit=limit + 1
    )
    return answer_page(
        documents, limit, document_answer, lambda document: f"{document.source}/{document.external_id}"
    )


@router.post(
    "/{name}/documents",
    summary="Add or replace a document",
    status_code=201,
    response_model=IngestedAnswer,
    responses={
        200: {
            "model": IngestedAnswer,
            "description": "The document existed; `outcome` says whether it changed.",
        },
        202: {
            "model": IngestedAnswer,
            "description": "The document is ingested in the background; `Location` is the URL of its progress.",
        },
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": DocumentBody.model_json_schema(),
                    "examples": {"note": {"value": _DOCUMENT}},
                },
                **{
                    kind: {"schema": {"type": "string", "format": "binary"}} for kind in sorted(_UPLOAD_TYPES)
                },
            },
        }
    },
)
@needs(Role.OPERATOR, action="documents.put")
@takes(RouteLimits(streamed=_UPLOAD_TYPES, json=True, whole=True))
async def add_document(
    name: CollectionPath,
    request: Request,
    response: Response,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    *,
    background: Annotated[
        bool | None,
        Query(description="Whether to ingest in the background; default: only if larger than 64 KiB."),
    ] = None,
    source: Annotated[str, Query(max_length=63, description="`source`, for files.")] = "documents",
    external_id: Annotated[
        str | None, Query(max_length=500, description="`external_id`, for files; required there.")
    ] = None,
    title: Annotated[str | None, Query(max_length=500, description="`title`, for files.")] = None,
    uri: Annotated[str | None, Query(max_length=2000, description="`uri`, for files.")] = None,
    date: Annotated[str | None, Query(max_length=40, description="`date`, for files.")] = None,
    access: Annotated[
        list[str] | None, Query(max_length=200, description="`access`, for files; repeatable.")
    ] = None,
) -> Any:
    """Send JSON with `text`, or the bytes of a text, Markdown, HTML, PDF or DOCX file with its content type.

    Sending the same source and external id again replaces the document atomically; sending the same content again
    changes nothing. Needs the role operator.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _UPLOAD_TYPES:
        fields = {"source": source, "external_id": external_id, "title": title, "uri": uri, "date": date}
        details = validated(DocumentDetails, {**fields, "access": access or []})
        submitted = Submitted(name, details, await _received(request), request.headers["content-type"])
    else:
        submitted = _from_json(name, facts_of(request.scope).json)
    ingested = await services.ingestion.add(caller, submitted, info, background=background)
    response.status_code = {"created": 201, "queued": 202}.get(ingested.outcome, 200)
    if ingested.waiting is not None:
        response.headers["location"] = f"/api/v1/collections/{name}/ingestions/{ingested.waiting.id}"
    return _ingested(ingested)


@router.get("/{name}/documents/{document}", summary="Get the metadata of a document")
async def get_document(
    name: CollectionPath, document: IdPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> DocumentAnswer:
    """Return the metadata of a document, without its text. Needs the role operator."""
    return document_answer(await services.collections.document(caller, name, document, info))


@router.delete("/{name}/documents/{document}", status_code=204, summary="Delete a document")
@needs(Role.OPERATOR, action="documents.delete")
async def delete_document(
    name: CollectionPath, document: IdPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> None:
    """Delete rows, index entries, vectors and caches before responding. Needs the role operator."""
    await services.collections.delete_document(caller, name, document, info)


@router.get("/{name}/ingestions", summary="List background ingestions")
async def list_ingestions(
    name: CollectionPath,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[IngestionAnswer]:
    """Return ingestions in order of arrival; finished ones are kept for a week. Needs the role operator."""
    ingestions = await services.ingestion.ingestions(caller, name, info, after=cursor, limit=limit + 1)
    return answer_page(ingestions, limit, _ingestion, lambda ingestion: ingestion.id)


@router.get("/{name}/ingestions/{ingestion}", summary="Get the progress of a background ingestion")
async def get_ingestion(
    name: CollectionPath, ingestion: IdPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> IngestionAnswer:
    """Return the state of an ingestion. Needs the role operator."""
    return _ingestion(await services.ingestion.ingestion(caller, name, ingestion, info))


async def _received(request: Request) -> bytes:
    try:
        async with asyncio.timeout(_BODY_S):
            return await request.body()
    except TimeoutError:
        raise DeadlineExceededError("The body did not arrive in time.") from None


def _from_json(name: str, value: Any) -> Submitted:
    body = validated(DocumentBody, value)
    details = DocumentDetails.model_validate(body.model_dump(exclude={"text", "media_type"}))
    return Submitted(name, details, body.text.encode(), f"{body.media_type}; charset=utf-8")


def collection_answer(info: CollectionInfo) -> CollectionAnswer:
    """Return a collection as operators see it."""
    definition = info.definition.model_dump()
    return CollectionAnswer.model_validate(
        {**info._asdict(), **definition, "access": list(definition["access"])}
    )


def document_answer(document: DocumentInfo) -> DocumentAnswer:
    """Return a document as operators see it, without its text."""
    names = DocumentAnswer.model_fields.keys() - {"date", "access"}
    fields = {name: getattr(document, name) for name in names}
    return DocumentAnswer(**fields, date=document.written, access=list(document.access))


def _ingestion(ingestion: IngestionInfo) -> IngestionAnswer:
    percent = 100 if ingestion.state == "done" else 100 * ingestion.done // max(1, ingestion.total)
    return IngestionAnswer(
        id=ingestion.id,
        collection=ingestion.collection,
        source=ingestion.document["details"]["source"],
        external_id=ingestion.document["details"]["external_id"],
        state=ingestion.state,
        percent=percent,
        document=ingestion.result if ingestion.state == "done" else None,
        error=ingestion.result if ingestion.state == "failed" else None,
        created=ingestion.created,
        updated=ingestion.updated,
    )


def _ingested(ingested: Ingested) -> IngestedAnswer:
    return IngestedAnswer(
        outcome=ingested.outcome,
        document=document_answer(ingested.document) if ingested.document is not None else None,
        ingestion=_ingestion(ingested.waiting) if ingested.waiting is not None else None,
    )
