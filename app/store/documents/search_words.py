"""Index chunks by our own words where the databases' tokenizers do not know the script; index older ones again.

PostgreSQL's parser is given the prepared text of a chunk. FTS5 reads the text itself, which it must keep to delete it
again, so a second table, ``document_search_words``, has the words that are not of ASCII letters alone.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.catalog.search_words import VERSION, count_words, search_text, words_beyond_ascii
from app.store.documents.tables import collection_document, collection_part, document_chunk

TERMS = (
    "setweight(to_tsvector('english', :title), 'A') || setweight(to_tsvector('english', :headings), 'B') || "
    "to_tsvector('english', :text)"
)
"""The indexed words of a chunk on PostgreSQL, from its prepared texts."""
_TEXTS = ("title", "headings", "text")
_AGAIN = f"UPDATE document_search SET terms = {TERMS} WHERE tenant = :tenant AND number = :number"  # noqa: S608
_FORGET = "DELETE FROM document_search_words WHERE rowid = :number"
_ADD = "INSERT INTO document_search_words (rowid, words, part) VALUES (:number, :words, :part)"
_PAGE = 500


class UnpreparedDocument(NamedTuple):
    """A document whose words were made by other rules, and how many chunks it has."""

    tenant: str
    id: str
    chunks: int


async def prepared(chunks: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the texts of ``chunks`` as PostgreSQL's parser should see them; long ones are not made on the loop."""
    if all(chunk[name].isascii() for chunk in chunks for name in _TEXTS):
        return [{name: chunk[name] for name in _TEXTS} for chunk in chunks]
    return await asyncio.to_thread(
        lambda: [{name: search_text(chunk[name]) for name in _TEXTS} for chunk in chunks]
    )


async def index_words(tx: AsyncConnection, chunks: Sequence[Mapping[str, Any]]) -> None:
    """Add the words beyond ASCII of new chunks to the index of SQLite; a trigger removes them with their chunk."""
    strange = [chunk for chunk in chunks if not all(chunk[name].isascii() for name in _TEXTS)]
    if not strange:
        return
    values = [
        {"number": chunk["number"], "part": chunk["part"], "words": words}
        for chunk, words in zip(strange, await asyncio.to_thread(_words_of, strange), strict=True)
        if words
    ]
    if values:
        await tx.execute(text(_ADD), values)


async def list_unprepared(tx: AsyncConnection, *, limit: int) -> list[UnpreparedDocument]:
    """Return documents whose words were made by older rules (system transactions)."""
    column = collection_document.c
    query = (
        select(column.tenant, column.id, column.chunks)
        .where(column.prepared < VERSION)
        .order_by(column.prepared, column.tenant)
        .limit(limit)
    )
    return [UnpreparedDocument(*row) for row in await tx.execute(query)]


async def prepare_again(tx: AsyncConnection, tenant: str, documents: Sequence[str]) -> bool:
    """Index the words of stored documents by the present rules, and count them; return whether any changed."""
    column = collection_document.c
    query = (
        select(column.id, column.part, column.words)
        .where(column.tenant == tenant, column.id.in_(list(documents)), column.prepared < VERSION)
        .order_by(column.id)
        .with_for_update()
    )
    changed = False
    for row in (await tx.execute(query)).all():
        words = await _index_again(tx, tenant, row.id)
        values: dict[str, int] = {"prepared": VERSION}
        if words is not None:
            changed = True
            values["words"] = words
            await _grow(tx, tenant, row.part, words - row.words)
        named = (column.tenant == tenant) & (column.id == row.id)
        await tx.execute(update(collection_document).where(named).values(values))
    return changed


async def _index_again(tx: AsyncConnection, tenant: str, document: str) -> int | None:
    """Index the chunks of one document again; return its length in words, None if all of it is ASCII."""
    column = document_chunk.c
    after, words, strange_chunks = -1, 0, False
    while True:
        query = (
            select(column.ordinal, column.number, column.part, *(column[name] for name in _TEXTS))
            .where(column.tenant == tenant, column.document == document, column.ordinal > after)
            .order_by(column.ordinal)
            .limit(_PAGE)
        )
        rows = [dict(row) for row in (await tx.execute(query)).mappings()]
        strange = [row for row in rows if not all(row[name].isascii() for name in _TEXTS)]
        if strange:
            strange_chunks = True
            if tx.dialect.name == "postgresql":
                texts = await prepared(strange)
                keys = [{"tenant": tenant, "number": row["number"]} for row in strange]
                values = [key | row_texts for key, row_texts in zip(keys, texts, strict=True)]
                await tx.execute(text(_AGAIN), values)
            else:
                await tx.execute(text(_FORGET), [{"number": row["number"]} for row in strange])
                await index_words(tx, strange)
        words += await asyncio.to_thread(count_words, *(row["text"] for row in rows))
        if len(rows) < _PAGE:
            return words if strange_chunks else None
        after = rows[-1]["ordinal"]


async def _grow(tx: AsyncConnection, tenant: str, part: int, words: int) -> None:
    """Correct the words of a part; its new revision tells caches and other indexes that it changed."""
    column = collection_part.c
    values = {"words": column.words + words, "revision": column.revision + 1}
    named = (column.tenant == tenant) & (column.id == part)
    await tx.execute(update(collection_part).where(named).values(values))


def _words_of(chunks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the words beyond ASCII of each chunk; those of its title twice, since they count more."""
    return [
        " ".join(words for name in ("title", *_TEXTS) if (words := words_beyond_ascii(chunk[name])))
        for chunk in chunks
    ]
