"""Collections: which documents there are, who may read them, and what somebody else finds in them; never their text."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Path, Query
from starlette.responses import Response

from app.console.visits import FORM, FormDep, Visit, VisitDep, check_form, new_pages, see
from app.core.access import Role
from app.core.catalog.collections import CollectionDefinition, DocumentDetails, validated
from app.core.errors import DeadlineExceededError, InvalidArgumentsError
from app.edge.limits import RouteLimits, needs, takes
from app.services.access.console_sessions import form_token
from app.services.documents.ingestion import IngestionInfo, Submitted
from app.services.documents.trials import SEARCH_AS

HOME: Final = "/console/collections"
PAGE: Final = 50
_MOST_QUERY: Final = 4000
_BODY_S: Final = 60.0
_UNFINISHED: Final = frozenset({"queued", "running"})
_FILE: Final = RouteLimits(streamed=frozenset({"application/octet-stream"}), whole=True)
"""A file whose name says what it is; as for documents over REST."""

NamePath = Annotated[str, Path(min_length=1, max_length=63)]
IdPath = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]

router = new_pages()


@router.get(HOME)
async def show_collections(
    visit: VisitDep, after: Annotated[str | None, Query(max_length=63)] = None
) -> Response:
    """Show the collections by name, and the forms for a new one and for a search."""
    return await _list(visit, after)


@router.post(HOME)
@takes(FORM)
@needs(Role.OPERATOR, action="collections.put")
async def put_collection(visit: VisitDep, form: FormDep) -> Response:
    """Make a collection, or change its description and readers."""
    values = {
        "name": form.get("name", ""),
        "description": form.get("description", "").strip(),
        "access": form.get("access", "").replace(",", " ").split(),
    }
    definition = validated(CollectionDefinition, values)
    await visit.services.collections.put(visit.caller, definition, visit.info)
    return see(f"{HOME}/{definition.name}")


@router.post(f"{HOME}/search")
@takes(FORM)
@needs(Role.OPERATOR, action=SEARCH_AS)
async def search_as(visit: VisitDep, form: FormDep) -> Response:
    """Show what a reader finds: names of documents, best first."""
    query, key = form.get("query", "").strip(), form.get("key", "").strip()
    reader = f"key:{key}" if key else form.get("reader", "*")
    if not 1 <= len(query) <= _MOST_QUERY:
        raise InvalidArgumentsError(f"Give a question of 1 to {_MOST_QUERY} characters.")
    # The list of readers of a collection says what a reader may be.
    validated(CollectionDefinition, {"name": "search", "access": [reader]})
    documents = await visit.services.trials.search(visit.caller, query, reader, visit.info)
    asked = {"query": query, "reader": reader if not key else "*", "key": key}
    return await _list(visit, None, {"asked": asked, "reader": reader, "documents": documents})


@router.get(HOME + "/{name}")
async def show_collection(
    visit: VisitDep, name: NamePath, after: Annotated[str | None, Query(max_length=600)] = None
) -> Response:
    """Show a collection: its readers, its documents, and those that are being read."""
    services, caller = visit.services, visit.caller
    collection = await services.collections.get(caller, name, visit.info)
    source, slash, external_id = (after or "").partition("/")
    documents = await services.collections.documents(
        caller, name, visit.info, after=(source, external_id) if slash else None, limit=PAGE + 1
    )
    ingestions = await services.ingestion.ingestions(caller, name, visit.info, limit=PAGE)
    last = documents[PAGE - 1] if len(documents) > PAGE else None
    return visit.page(
        "collection.html",
        {
            "collection": collection,
            "documents": documents[:PAGE],
            "next": f"{last.source}/{last.external_id}" if last else None,
            "is_first": after is None,
            "ingestions": [_progress(each) for each in ingestions],
            "is_reading": any(each.state in _UNFINISHED for each in ingestions),
        },
    )


@router.post(HOME + "/{name}/documents")
@takes(FORM)
@needs(Role.OPERATOR, action="documents.put")
async def add_text(visit: VisitDep, name: NamePath, form: FormDep) -> Response:
    """Add a document as text, or replace the one of the same source and id."""
    text = form.get("text", "").replace("\r\n", "\n")
    if not text.strip():
        raise InvalidArgumentsError("Give the text of the document.")
    submitted = Submitted(name, _details(form), text.encode(), "text/markdown; charset=utf-8")
    await visit.services.ingestion.add(visit.caller, submitted, visit.info)
    return see(f"{HOME}/{name}")


@router.post(HOME + "/{name}/files")
@takes(_FILE)
@needs(Role.OPERATOR, action="documents.put")
async def add_file(
    visit: VisitDep,
    name: NamePath,
    external_id: Annotated[str, Query(max_length=500)],
    source: Annotated[str, Query(max_length=63)] = "documents",
) -> Response:
    """Add a file, whose name is its id; a script sends it and shows how much has arrived."""
    check_form({"form_token": visit.request.headers.get("x-form-token", "")}, form_token(visit.token))
    details = _details({"external_id": external_id, "source": source})
    try:
        async with asyncio.timeout(_BODY_S):
            body = await visit.request.body()
    except TimeoutError:
        raise DeadlineExceededError("The file did not arrive in time.") from None
    submitted = Submitted(name, details, body, "application/octet-stream")
    await visit.services.ingestion.add(visit.caller, submitted, visit.info)
    return see(f"{HOME}/{name}")


@router.post(HOME + "/{name}/delete")
@takes(FORM)
@needs(Role.OPERATOR, action="collections.delete")
async def delete_collection(visit: VisitDep, name: NamePath, form: FormDep) -> Response:
    """Delete a collection with all its documents."""
    if form.get("sure") != "on":
        raise InvalidArgumentsError("Tick that the documents are to be deleted: nothing brings them back.")
    await visit.services.collections.delete(visit.caller, name, visit.info)
    return see(HOME)


@router.post(HOME + "/{name}/documents/{document}/delete")
@takes(FORM)
@needs(Role.OPERATOR, action="documents.delete")
async def delete_document(visit: VisitDep, name: NamePath, document: IdPath, form: FormDep) -> Response:  # noqa: ARG001 - its token is checked
    """Delete one document."""
    await visit.services.collections.delete_document(visit.caller, name, document, visit.info)
    return see(f"{HOME}/{name}")


async def _list(visit: Visit, after: str | None, trial: Mapping[str, Any] | None = None) -> Response:
    listed = await visit.services.collections.list(visit.caller, visit.info, after=after, limit=PAGE + 1)
    values = {
        "collections": listed[:PAGE],
        "next": listed[PAGE - 1].definition.name if len(listed) > PAGE else None,
        "is_first": after is None,
        "trial": trial,
        "asked": trial["asked"] if trial else {"query": "", "reader": "*", "key": ""},
        "readers": {
            "*": "everybody",
            **{f"role:{role}": f"the role {role}" for role in Role},
        },
    }
    return visit.page("collections.html", values)


def _details(form: Mapping[str, str]) -> DocumentDetails:
    """Return the details of a document that a form gives; what is left empty has its default."""
    names = ("source", "external_id", "title")
    values: dict[str, Any] = {name: text for name in names if (text := form.get(name, "").strip())}
    return validated(DocumentDetails, {**values, "access": form.get("access", "").replace(",", " ").split()})


def _progress(ingestion: IngestionInfo) -> dict[str, Any]:
    return {
        "name": ingestion.document["details"]["external_id"],
        "source": ingestion.document["details"]["source"],
        "state": ingestion.state,
        "done": ingestion.done,
        "total": ingestion.total,
        "error": ingestion.result if ingestion.state == "failed" else None,
        "updated": ingestion.updated,
    }
