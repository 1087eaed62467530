"""Reading a document into chunks with vectors: extraction and embedding, none of it on the event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.catalog.collections import DocumentDetails
from app.core.contracts.engines import Embedder
from app.core.errors import TooLargeError, UpstreamUnavailableError
from app.engines.documents.chunking import chunked
from app.engines.documents.extraction import Extracted, media_type_of
from app.engines.documents.reader import DocumentReader
from app.engines.documents.words import count_words
from app.services.documents.retrieval import embedder_name
from app.store.documents.collection_documents import StoredChunk, embedded_text

RULES: Final = "1"
"""Changes with how documents are cut, so that the same bytes are read again after an update that cuts otherwise."""
MAX_CHUNKS: Final = 20_000
_SIZE: Final = 1200
_OVERLAP: Final = 150
_AT_ONCE: Final = 32
_LONGEST_TITLE: Final = 300

Progress = Callable[[int, int], Awaitable[None]]
"""Is told how many chunks of how many are done."""


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document as it is stored; ``embedder`` is empty where the chunks have no vectors."""

    title: str
    media_type: str
    chunks: list[StoredChunk]
    words: int
    characters: int
    embedder: str


async def read_document(
    details: DocumentDetails,
    body: bytes,
    media_type: str,
    embedder: Embedder | None,
    progress: Progress | None = None,
    *,
    reader: DocumentReader,
) -> ReadDocument:
    """Return the document's chunks with their vectors; without vectors where the embedder is not available."""
    found = await reader.read(body, media_type, details.external_id)
    read = await asyncio.to_thread(_cut, details, found, media_type)
    if len(read.chunks) > MAX_CHUNKS:
        raise TooLargeError(
            f"The document makes more than {MAX_CHUNKS} chunks; split it into several documents.",
            details={"limit": "chunks", "maximum": MAX_CHUNKS},
        )
    texts = [embedded_text(read.title, one.headings, one.text) for one in read.chunks]
    vectors, name = await _embedded(texts, embedder, progress)
    chunks = [
        StoredChunk(one.headings, one.text, vectors[at] if vectors else None)
        for at, one in enumerate(read.chunks)
    ]
    return ReadDocument(read.title, read.media_type, chunks, read.words, read.characters, name)


async def _embedded(
    texts: Sequence[str], embedder: Embedder | None, progress: Progress | None
) -> tuple[list[bytes], str]:
    """Return the vectors and who made them; none where the engine failed or was replaced in between."""
    vectors: list[bytes] = []
    names: set[str] = set()
    for start in range(0, len(texts), _AT_ONCE):
        if progress is not None:
            await progress(start, len(texts))
        if embedder is None:
            continue
        try:
            made = await embedder.embed(texts[start : start + _AT_ONCE])
        except UpstreamUnavailableError:
            return [], ""
        vectors += made.vectors
        names.add(embedder_name(made.report))
    if progress is not None:
        await progress(len(texts), len(texts))
    return (vectors, names.pop()) if len(names) == 1 else ([], "")


def _cut(details: DocumentDetails, found: Extracted, media_type: str) -> ReadDocument:
    title = (details.title or found.title or details.external_id)[:_LONGEST_TITLE]
    chunks = [
        StoredChunk(" > ".join(one.headings), one.text)
        for one in chunked(found.text, size=_SIZE, overlap=_OVERLAP)
    ]
    words = sum(count_words(one.text) for one in chunks)
    kind = media_type_of(media_type, details.external_id)
    return ReadDocument(title, kind, chunks, words, len(found.text), "")
