"""``sluice documents``: add, search and delete documents of collections on the host."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from app.cli.terminal import FAILED, USAGE, confirm, fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.assembly import Services
    from app.core.access import Caller
    from app.core.contracts.engines import Retrieval
    from app.services.documents.collections import CollectionInfo, DocumentInfo

T = TypeVar("T")
_PAGE = 500

commands = typer.Typer(
    help="Add files to collections; list, search and delete documents.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Collection = Annotated[str, typer.Option("--collection", "-c", help="Name of the collection.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]


@commands.command(
    epilog="""Examples:

\b
  sluice documents add notes/ --collection internal_docs
  sluice documents add report.pdf -c internal_docs --access role:invoker"""
)
def add(
    paths: Annotated[
        list[Path], typer.Argument(help="Files, or folders whose files of supported types are added.")
    ],
    collection: Collection,
    tenant: Tenant = "default",
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
    files = list(_files(paths))
    if not files:
        fail("No files of a supported type were found: .txt, .md, .html, .pdf or .docx.", USAGE)
    counts, faults = _in_tenant(
        tenant,
        lambda services, caller: _add_all(services, caller, files, collection, source, access or []),
        begins=True,
    )
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "nothing done")
    if faults:
        fail(f"{faults} of {len(files)} files could not be read.", FAILED)


@commands.command(
    "list", epilog="Examples:\n\n\b\n  sluice documents list\n  sluice documents list -c internal_docs"
)
def list_(
    collection: Annotated[
        str | None,
        typer.Option(
            "--collection",
            "-c",
            help="List the documents of this collection [default: list all collections].",
        ),
    ] = None,
    tenant: Tenant = "default",
    *,
    json: Json = False,
) -> None:
    """List collections, or the documents of one collection."""
    if collection is None:
        collections = _in_tenant(tenant, lambda services, caller: services.collections.list(caller))
        _show_collections(collections, json=json)
        return
    documents = _in_tenant(tenant, lambda services, caller: _documents(services, caller, collection))
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
def search(
    question: Annotated[str, typer.Argument(help="Question to search for.")],
    tenant: Tenant = "default",
    sources: Annotated[
        list[str] | None, typer.Option("--source", help="Search only this collection or source. Repeatable.")
    ] = None,
    principals: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            help="Search with the rights of this reader, such as role:invoker [default: every role]. Repeatable.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of documents to show.")] = 5,
    *,
    json: Json = False,
) -> None:
    """Show what a caller would retrieve for a question: title, relevance and passage."""
    from app.core.catalog.collections import principals_of
    from app.core.contracts.engines import RetrievalQuery
    from app.middlewares.document_retrieval import DocumentRetrievalArguments

    async def searched(services: "Services", caller: "Caller") -> "Retrieval":
        readers = frozenset({"*", *principals}) if principals else principals_of(caller)
        least = DocumentRetrievalArguments().min_relevance
        query = RetrievalQuery(tenant, readers, question, tuple(sources) if sources else None, limit, least)
        return await services.retrieval.retrieve([query])

    retrieval = _in_tenant(tenant, searched)
    note(f"Searched by {retrieval.report.name} {retrieval.report.version}.")
    passages = retrieval.passages[0]
    if json:
        names = ("title", "relevance", "collection", "source", "document", "uri", "text")
        show_json([{name: getattr(passage, name) for name in names} for passage in passages])
        return
    if not passages:
        note("No documents match.")
    for passage in passages:
        print(
            f"{passage.relevance:.2f}  {passage.title}  ({passage.collection}, {passage.source}, {passage.document})"
        )
        print("\n".join(f"      {line}" for line in passage.text.splitlines()[:8]))


@commands.command(
    epilog="""Examples:

\b
  sluice documents delete 0190a1b2c3d47e5f8a9b0c1d2e3f4a5b -c internal_docs
  sluice documents delete --all -c internal_docs"""
)
def delete(
    collection: Collection,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of documents, as `list` shows them.")] = None,
    tenant: Tenant = "default",
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
    confirm(f"Delete {what}?", yes=yes)

    async def deleted(services: "Services", caller: "Caller") -> None:
        if everything:
            await services.collections.delete(caller, collection)
        for id_ in ids or []:
            await services.collections.delete_document(caller, collection, id_)

    _in_tenant(tenant, deleted)
    print(f"Deleted: {what}.")


@commands.command(epilog="Example:\n\n\b\n  sluice documents reindex")
def reindex(*, yes: Yes = False) -> None:
    """Rebuild the index on the server of SLUICE_DOCUMENTS__URL. The database answers searches meanwhile."""
    confirm("Delete the index and rebuild it?", yes=yes)

    async def rebuilt(services: "Services", _caller: "Caller") -> bool | None:
        return await services.indexing.rebuild() if services.indexing is not None else None

    done = _in_tenant("default", rebuilt)
    if done is None:
        fail("No index server is configured: set SLUICE_DOCUMENTS__URL.", USAGE)
    if not done:
        fail("The service is updating the index. Try again in a moment.", FAILED)
    print("The index was rebuilt.")


async def _add_all(
    services: "Services",
    caller: "Caller",
    files: list[tuple[Path, str]],
    collection: str,
    source: str,
    access: list[str],
) -> tuple[dict[str, int], int]:
    from pydantic import ValidationError

    from app.core.catalog.collections import CollectionDefinition, DocumentDetails
    from app.core.errors import InvalidArgumentsError, NotFoundError, ServiceError, TooLargeError
    from app.services.documents.ingestion import Submitted

    counts, faults = dict.fromkeys(("created", "updated", "unchanged"), 0), 0
    try:
        definition = CollectionDefinition(name=collection)
        details = [
            DocumentDetails.model_validate({"source": source, "external_id": name, "access": access})
            for _, name in files
        ]
    except ValidationError as error:
        raise InvalidArgumentsError(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from None
    try:
        await services.collections.get(caller, collection)
    except NotFoundError:
        await services.collections.put(caller, definition)
    for number, ((path, name), detail) in enumerate(zip(files, details, strict=True), 1):
        progress = _Progress(f"[{number}/{len(files)}] {name}")
        try:
            submitted = Submitted(collection, detail, path.read_bytes(), "")
            ingested = await services.ingestion.add(
                caller, submitted, background=False, progress=progress.show
            )
            counts[ingested.outcome] += 1
            progress.end(ingested.outcome)
        except (InvalidArgumentsError, TooLargeError, OSError) as error:
            faults += 1
            progress.end(error.message if isinstance(error, ServiceError) else "cannot be read from the disk")
    await services.ingestion.purge()
    return counts, faults


class _Progress:
    """One line per file on standard error; on a terminal it also shows the percentage of chunks done."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.animated = sys.stderr.isatty()

    async def show(self, done: int, total: int) -> None:
        if self.animated and total:
            print(f"\r\x1b[K{self.label}  {100 * done // total} %", end="", file=sys.stderr, flush=True)

    def end(self, outcome: str) -> None:
        note(("\r\x1b[K" if self.animated else "") + f"{self.label}  {outcome}")


async def _documents(services: "Services", caller: "Caller", collection: str) -> "list[DocumentInfo]":
    documents: list[DocumentInfo] = []
    after: tuple[str, str] | None = None
    while page := await services.collections.documents(caller, collection, after=after, limit=_PAGE):
        documents += page
        after = page[-1].source, page[-1].external_id
    return documents


def _files(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield files and their external ids: the file name, or the path relative to the given folder."""
    from app.engines.documents.extraction import MEDIA_TYPES

    for path in paths:
        if path.is_dir():
            inside = sorted(
                file for file in path.rglob("*") if file.suffix.lower().lstrip(".") in MEDIA_TYPES
            )
            yield from ((file, file.relative_to(path).as_posix()) for file in inside if file.is_file())
        elif path.is_file():
            yield path, path.name
        else:
            fail(f"There is no file {path}.", USAGE)


def _show_collections(collections: "list[CollectionInfo]", *, json: bool) -> None:
    rows = [
        {
            **collection.definition.model_dump(mode="json"),
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


def _described(document: "DocumentInfo") -> dict[str, object]:
    names = (
        "id",
        "source",
        "external_id",
        "title",
        "uri",
        "written",
        "media_type",
        "access",
        "chunks",
        "updated",
    )
    return {name: getattr(document, name) for name in names}


def _in_tenant(
    tenant: str, work: Callable[["Services", "Caller"], Awaitable[T]], *, begins: bool = False
) -> T:
    """Run ``work`` as the host's caller in ``tenant``, which must exist; ``begins`` as in ``on_host``."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    async def worked(services: "Services") -> T:
        await services.tenants.get(caller_for(SYSTEM_TENANT), tenant)
        return await work(services, caller_for(tenant))

    return on_host(worked, begins=begins)
