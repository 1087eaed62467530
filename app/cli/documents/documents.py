"""``sluice documents``: add, search and delete documents of collections, on the host or at a service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.documents.adding import AddedFiles, files_in
from app.cli.target import CommandTarget, placed
from app.cli.terminal import FAILED, USAGE, confirm, fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.api.documents.collections import CollectionAnswer, DocumentAnswer
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.core.contracts.engines import Retrieval

_PATH = "/api/v1/collections"
_PAGE = 500

commands = typer.Typer(
    help="Add files to collections; list, search and delete documents.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Collection = Annotated[str, typer.Option("--collection", "-c", help="Name of the collection.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]


@commands.command(
    epilog="""Examples:

\b
  sluice documents add notes/ --collection internal_docs
  sluice documents add report.pdf -c internal_docs --access role:invoker"""
)
@placed()
def add(
    target: CommandTarget,
    paths: Annotated[
        list[Path], typer.Argument(help="Files, or folders whose files of supported types are added.")
    ],
    collection: Collection,
    source: Annotated[str, typer.Option(help="Where the documents come from, such as wiki.")] = "files",
    access: Annotated[
        list[str] | None,
        typer.Option(
            help="Readers of these documents, among the readers of the collection, such as role:invoker. Repeatable."
        ),
    ] = None,
) -> None:
    """Read files (text, Markdown, HTML, PDF, DOCX) and store them. Unchanged files are skipped.

    A missing collection is created; the whole tenant may read it.
    """
    from app.cli.host import tenant_caller

    files = list(files_in(paths))
    if not files:
        fail("No files of a supported type were found: .txt, .md, .html, .pdf or .docx.", USAGE)
    added = AddedFiles(files, collection, source, access or [])

    async def here(host: "Services") -> None:
        await added.here(host, await tenant_caller(host, target.here))

    target.do(here, added.there, begins=True)
    print(
        ", ".join(f"{count} {outcome}" for outcome, count in added.counts.items() if count) or "nothing done"
    )
    if added.faults:
        fail(f"{added.faults} of {len(files)} files could not be read.", FAILED)


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice documents list\n  sluice documents list -c internal_docs"
)
@placed()
def list_(
    target: CommandTarget,
    collection: Annotated[
        str | None,
        typer.Option(
            "--collection",
            "-c",
            help="List the documents of this collection [default: list all collections].",
        ),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """List collections, or the documents of one collection."""
    if collection is None:
        _show_collections(_collections(target), json=json)
        return
    documents = _documents(target, collection)
    if json:
        show_json([_described(document) for document in documents])
    else:
        show_table(
            ("ID", "SOURCE", "NAME", "TITLE", "CHUNKS", "UPDATED"),
            [
                (
                    document.id,
                    document.source,
                    document.external_id,
                    document.title,
                    document.chunks,
                    document.updated,
                )
                for document in documents
            ],
        )


@commands.command(
    epilog='Example:\n\n\b\n  sluice documents search "Who approved the budget?" --as key:0123abcd'
)
@placed()
def search(
    target: CommandTarget,
    question: Annotated[str, typer.Argument(help="Question to search for.")],
    sources: Annotated[
        list[str] | None, typer.Option("--source", help="Search only this collection or source. Repeatable.")
    ] = None,
    principals: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            help="Search with the rights of this reader, such as role:invoker [default: every role]. Repeatable; with "
            "--url there is one.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of documents to show.")] = 5,
    *,
    json: Json = False,
) -> None:
    """Show what a caller would retrieve for a question: title, relevance and passage; a service shows no passage."""
    if target.remote:
        _search_as(target, question, sources, principals or [], limit, json=json)
        return
    retrieval = _retrieved(target, question, sources, principals, limit)
    note(f"Searched by {retrieval.report.name} {retrieval.report.version}.")
    passages = retrieval.passages[0]
    if json:
        names = ("title", "relevance", "collection", "source", "document", "uri", "text")
        show_json([{name: getattr(passage, name) for name in names} for passage in passages])
        return
    if not passages:
        note("No documents match.")
    for passage in passages:
        print(_line(passage.relevance, passage.title, passage.collection, passage.source, passage.document))
        print("\n".join(f"      {line}" for line in passage.text.splitlines()[:8]))


def _retrieved(
    target: CommandTarget,
    question: str,
    sources: list[str] | None,
    principals: list[str] | None,
    limit: int,
) -> "Retrieval":
    from app.cli.host import on_host, tenant_caller
    from app.core.catalog.collections import principals_of
    from app.core.contracts.engines import RetrievalQuery
    from app.middlewares.document_retrieval import DocumentRetrievalArguments

    async def searched(host: "Services") -> "Retrieval":
        caller = await tenant_caller(host, target.here)
        readers = frozenset({"*", *principals}) if principals else principals_of(caller)
        least, chosen = DocumentRetrievalArguments().min_relevance, tuple(sources) if sources else None
        query = RetrievalQuery(target.here, readers, question, chosen, limit, least)
        return await host.retrieval.retrieve([query])

    return on_host(searched)


def _search_as(
    target: CommandTarget,
    question: str,
    sources: list[str] | None,
    principals: list[str],
    limit: int,
    *,
    json: bool,
) -> None:
    """Let a service say which documents a reader finds; it gives no text of them."""
    from app.api.documents.search import ReaderSearchAnswer

    if len(principals) != 1:
        fail("A service searches as one reader: give --as once, such as --as role:invoker.", USAGE)
    body = {"query": question, "reader": principals[0], "sources": sources or None, "limit": limit}
    documents = target.call(
        lambda service: ReaderSearchAnswer.model_validate(service.ask("POST", f"{_PATH}/search", body))
    ).items
    if json:
        show_json([document.model_dump() for document in documents])
        return
    if not documents:
        note("No documents match.")
    for each in documents:
        print(_line(each.relevance, each.title, each.collection, each.source, each.document))


def _line(relevance: float, title: str, *place: str) -> str:
    return f"{relevance:.2f}  {title}  ({', '.join(place)})"


@commands.command(
    epilog="""Examples:

\b
  sluice documents delete 0190a1b2c3d47e5f8a9b0c1d2e3f4a5b -c internal_docs
  sluice documents delete --all -c internal_docs"""
)
@placed()
def delete(
    target: CommandTarget,
    collection: Collection,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of documents, as `list` shows them.")] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Delete the whole collection.")] = False,
    yes: Yes = False,
) -> None:
    """Delete documents or a whole collection permanently from tables, index and memory."""
    if everything == bool(ids):
        fail("Give the ids of documents, or --all.", USAGE)
    named = ids or []
    plural = "" if len(named) == 1 else "s"
    what = f"{len(named)} document{plural}"
    if everything:
        what = f"the collection {collection} with all its documents"
    from app.cli.calls import segment
    from app.cli.host import tenant_caller

    async def here(host: "Services") -> None:
        caller = await tenant_caller(host, target.here)
        if everything:
            await host.collections.delete(caller, collection)
        for id_ in named:
            await host.collections.delete_document(caller, collection, id_)

    def there(service: "ServiceCalls") -> None:
        path = f"{_PATH}/{segment(collection)}"
        if everything:
            service.ask("DELETE", path)
        for id_ in named:
            service.ask("DELETE", f"{path}/documents/{segment(id_)}")

    target.confirm(f"Delete {what}?", yes=yes)
    target.do(here, there)
    print(f"Deleted: {what}.")


@commands.command(epilog="Example:\n\n\b\n  sluice documents reindex")
def reindex(*, yes: Yes = False) -> None:
    """Rebuild the index on the server of SLUICE_DOCUMENTS__URL. The database answers searches meanwhile."""
    confirm("Delete the index and rebuild it?", yes=yes)

    from app.cli.host import on_host

    async def rebuilt(host: "Services") -> bool | None:
        return await host.indexing.rebuild() if host.indexing is not None else None

    done = on_host(rebuilt)
    if done is None:
        fail("No index server is configured: set SLUICE_DOCUMENTS__URL.", USAGE)
    if not done:
        fail("The service is updating the index. Try again in a moment.", FAILED)
    print("The index was rebuilt.")


def _collections(target: CommandTarget) -> "list[CollectionAnswer]":
    from app.api.documents.collections import CollectionAnswer, collection_answer
    from app.cli.host import tenant_caller

    async def here(host: "Services") -> "list[CollectionAnswer]":
        caller = await tenant_caller(host, target.here)
        return [collection_answer(info) for info in await host.collections.list(caller)]

    return target.do(
        here, lambda service: [CollectionAnswer.model_validate(each) for each in service.pages(_PATH)]
    )


def _documents(target: CommandTarget, collection: str) -> "list[DocumentAnswer]":
    from app.api.documents.collections import DocumentAnswer, document_answer
    from app.cli.calls import segment
    from app.cli.host import tenant_caller

    async def here(host: "Services") -> "list[DocumentAnswer]":
        caller = await tenant_caller(host, target.here)
        documents: list[DocumentAnswer] = []
        after: tuple[str, str] | None = None
        while page := await host.collections.documents(caller, collection, after=after, limit=_PAGE):
            documents += [document_answer(document) for document in page]
            after = page[-1].source, page[-1].external_id
        return documents

    def there(service: "ServiceCalls") -> "list[DocumentAnswer]":
        listed = service.pages(f"{_PATH}/{segment(collection)}/documents")
        return [DocumentAnswer.model_validate(document) for document in listed]

    return target.do(here, there)


def _show_collections(collections: "list[CollectionAnswer]", *, json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "name": collection.name,
            "description": collection.description,
            "access": collection.access,
            "sources": {source.source: source.documents for source in collection.sources},
            "documents": collection.documents,
            "chunks": collection.chunks,
            "embedded": collection.embedded,
        }
        for collection in collections
    ]
    if json:
        show_json(rows)
        return
    show_table(
        ("NAME", "DOCUMENTS", "CHUNKS", "SOURCES", "READERS"),
        [
            (
                row["name"],
                row["documents"],
                row["chunks"],
                ", ".join(row["sources"]),
                ", ".join(row["access"]),
            )
            for row in rows
        ],
    )


def _described(document: "DocumentAnswer") -> dict[str, object]:
    return {
        "id": document.id,
        "source": document.source,
        "external_id": document.external_id,
        "title": document.title,
        "uri": document.uri,
        "written": document.date,
        "media_type": document.media_type,
        "access": document.access,
        "chunks": document.chunks,
        "updated": document.updated,
    }
