"""Reading a document into chunks with vectors: extraction and embedding, none of it on the event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.catalog.collections import DocumentDetails
from app.core.catalog.search_words import count_words
from app.core.contracts.engines import Embedder
from app.core.errors import TooLargeError, UpstreamUnavailableError
from app.engines.documents.chunking import chunked
from app.engines.documents.extraction import Extracted, media_type_of
from app.services.documents.retrieval import embedder_name
from app.store.documents.collection_documents import StoredChunk, embedded_text

RULES: Final = "1"
"""The version of the chunking rules: after a change of it, documents with the same bytes are read again."""
MAX_CHUNKS: Final = 20_000
_SIZE: Final = 1200
_OVERLAP: Final = 150
_AT_ONCE: Final = 32
_LONGEST_TITLE: Final = 300

Read = Callable[[bytes, str, str], Awaitable[Extracted]]
"""Returns the text of a document: called with its bytes, media type and name."""
Progress = Callable[[int, int], Awaitable[None]]
"""Called with the number of finished chunks and the number of all."""


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document as it is stored; ``embedder`` is empty if the chunks have no vectors."""

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
    read: Read,
) -> ReadDocument:
    """Return the document's chunks with their vectors; without vectors if the embedder is not available."""
    extracted = await read(body, media_type, details.external_id)
    document = await asyncio.to_thread(_cut, details, extracted, media_type)
    if len(document.chunks) > MAX_CHUNKS:
        raise TooLargeError(
            f"The document makes more than {MAX_CHUNKS} chunks; split it into several documents.",
            details={"limit": "chunks", "maximum": MAX_CHUNKS},
        )
    texts = [embedded_text(document.title, chunk.headings, chunk.text) for chunk in document.chunks]
    vectors, name = await _embed(texts, embedder, progress)
    chunks = [
        StoredChunk(chunk.headings, chunk.text, vectors[at] if vectors else None)
        for at, chunk in enumerate(document.chunks)
    ]
    return ReadDocument(
        document.title, document.media_type, chunks, document.words, document.characters, name
    )


async def _embed(
    texts: Sequence[str], embedder: Embedder | None, progress: Progress | None
) -> tuple[list[bytes], str]:
    """Return the vectors and the embedder's name; none if the engine failed or changed in between."""
    vectors: list[bytes] = []
    names: set[str] = set()
    for start in range(0, len(texts), _AT_ONCE):
        if progress is not None:
            await progress(start, len(texts))
        if embedder is None:
            continue
        try:
            embeddings = await embedder.embed(texts[start : start + _AT_ONCE])
        except UpstreamUnavailableError:
            return [], ""
        vectors += embeddings.vectors
        names.add(embedder_name(embeddings.report))
    if progress is not None:
        await progress(len(texts), len(texts))
    return (vectors, names.pop()) if len(names) == 1 else ([], "")


def _cut(details: DocumentDetails, extracted: Extracted, media_type: str) -> ReadDocument:
    title = (details.title or extracted.title or details.external_id)[:_LONGEST_TITLE]
    chunks = [
        StoredChunk(" > ".join(chunk.headings), chunk.text)
        for chunk in chunked(extracted.text, size=_SIZE, overlap=_OVERLAP)
    ]
    words = sum(count_words(chunk.text) for chunk in chunks)
    kind = media_type_of(media_type, details.external_id)
    return ReadDocument(title, kind, chunks, words, len(extracted.text), "")
