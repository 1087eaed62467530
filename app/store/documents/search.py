"""The search index of documents: FTS5 on SQLite; on PostgreSQL tsvector, and pgvector where it is installed.

Every function takes the parts that may be read and searches nothing else: what a caller may not read is neither
ranked nor counted. The index only proposes chunks; the service scores them, so that both databases agree.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.bulk import fetch
from app.store.database import Database
from app.store.documents.collection_documents import spelled
from app.store.documents.tables import document_chunk

_MOST_NAMED_PARTS = 64
"""Above this number, parts are looked up in a join instead of being named in the query of the index."""

_CHUNKS = (
    "SELECT c.number, c.part, c.document, c.ordinal, c.title, c.headings, c.text, "
    "d.collection, d.source, d.uri, d.written "
    "FROM {} c JOIN collection_document d ON d.tenant = c.tenant AND d.id = c.document "
    "WHERE c.tenant = {} AND c.number {}"
)
# A plan that PostgreSQL keeps for any numbers would begin with the document, and read all of its chunks for a few.
_NUMBERED = "(SELECT * FROM document_chunk WHERE tenant = $1 AND number = ANY($2) OFFSET 0)"
_MOST_COUNTED = 5_000
"""PostgreSQL counts the chunks of a word up to this number and estimates the others from a sample of readable ones."""
_MOST_RANKED = 2_000
"""How many chunks PostgreSQL ranks; above it, those with all words come first, then those with the rarest."""

# Row-level security would keep PostgreSQL from using the index: these functions take the tenant from the transaction.
_COUNT = "SELECT sluice_count_words($1::bigint[], $2::text[], $3::integer)"
_MATCH = (
    "SELECT sluice_match_words($1::bigint[], $2::text[], $3::double precision[], $4::integer, $5::integer)"
)
_NOT_A_WORD = re.compile(r"[^\w]")
_MERGED_PAGES = 400


class _TextIndex(NamedTuple):
    """A table of FTS5, the columns that have words, and its order by relevance."""

    table: str
    columns: str
    rank: str


_OWN = _TextIndex("document_search", "title headings text", "bm25(document_search, 2.0, 1.0, 1.0, 0.0)")
_BEYOND = _TextIndex("document_search_words", "words", "bm25(document_search_words, 1.0, 0.0)")
"""What FTS5 cuts from a text itself, and the words beyond ASCII, which we cut."""


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk with the facts of its document that a result shows."""

    number: int
    part: int
    document: str
    ordinal: int
    title: str
    headings: str
    text: str
    collection: str
    source: str
    uri: str | None
    written: str | None


async def count_matches(
    tx: AsyncConnection, tenant: str, parts: Sequence[int], words: Sequence[str]
) -> list[int]:
    """Return for each of ``words`` how many readable chunks contain it."""
    if not words or not parts:
        return [0] * len(words)
    if tx.dialect.name == "postgresql":
        ((counts,),) = await fetch(tx, _COUNT, (list(parts), list(words), _MOST_COUNTED))
        return [int(count) for count in counts]
    subqueries: list[str] = []
    values: list[Any] = []
    for word in words:
        index = _index_of(word)
        source, source_values = _sqlite_source(index, tenant, parts)
        subqueries.append(f"(SELECT count(*) FROM {source} WHERE {index.table} MATCH ?)")  # noqa: S608 - as above
        values += (*source_values, _match(index, parts, [word]))
    (totals,) = await fetch(tx, f"SELECT {', '.join(subqueries)}", values)
    return [int(total) for total in totals]


async def match_words(
    tx: AsyncConnection,
    tenant: str,
    parts: Sequence[int],
    words: Sequence[str],
    weights: Sequence[float],
    *,
    limit: int,
) -> list[int]:
    """Return the numbers of the readable chunks that match best; ``words`` come rarest first.

    ``weights`` state how rare each word is. SQLite returns up to ``limit`` for words of ASCII letters, and as many for
    others.
    """
    if not words or not parts:
        return []
    if tx.dialect.name == "postgresql":
        values = (list(parts), list(words), [float(weight) for weight in weights], _MOST_RANKED, limit)
        return [int(number) for (number,) in await fetch(tx, _MATCH, values)]
    numbers: dict[int, None] = {}
    for index in (_OWN, _BEYOND):
        if wanted := [word for word in words if _index_of(word) is index]:
            source, source_values = _sqlite_source(index, tenant, parts)
            statement = (
                f"SELECT {index.table}.rowid FROM {source} WHERE {index.table} MATCH ? "  # noqa: S608 - as above
                f"ORDER BY {index.rank}, {index.table}.rowid LIMIT ?"
            )
            rows = await fetch(tx, statement, (*source_values, _match(index, parts, wanted), limit))
            numbers |= {int(number): None for (number,) in rows}
    return [*numbers]


async def compare_vectors(
    tx: AsyncConnection, tenant: str, parts: Sequence[int], vector: bytes, *, limit: int
) -> dict[int, float]:
    """Return the readable chunks nearest to ``vector`` with their cosine (pgvector, exact)."""
    statement = (
        "SELECT number, -(embedding <#> CAST(CAST(:vector AS text) AS vector)) AS likeness FROM document_search "
        "WHERE tenant = :tenant AND part = ANY(:parts) ORDER BY likeness DESC, number LIMIT :limit"
    )
    values = {"tenant": tenant, "parts": list(parts), "vector": spelled(vector), "limit": limit}
    return {row.number: float(row.likeness) for row in await tx.execute(text(statement), values)}


async def likeness_of(
    tx: AsyncConnection, tenant: str, numbers: Sequence[int], vector: bytes
) -> dict[int, float]:
    """Return the cosine of each of these chunks to ``vector`` (pgvector)."""
    statement = (
        "SELECT number, -(embedding <#> CAST(CAST(:vector AS text) AS vector)) AS likeness FROM document_search "
        "WHERE tenant = :tenant AND number = ANY(:numbers)"
    )
    values = {"tenant": tenant, "numbers": list(numbers), "vector": spelled(vector)}
    return {row.number: float(row.likeness) for row in await tx.execute(text(statement), values)}


async def read_chunks(
    tx: AsyncConnection, tenant: str, parts: Sequence[int], numbers: Sequence[int]
) -> list[FoundChunk]:
    """Return chunks by number, those of readable parts only."""
    postgres = tx.dialect.name == "postgresql"
    chosen = ("document_chunk", "?", "IN (SELECT value FROM json_each(?))")
    if postgres:
        chosen = (_NUMBERED, "$1", "= ANY($2)")
    wanted = list(numbers) if postgres else json.dumps(list(numbers))
    readable = frozenset(parts)
    rows = await fetch(tx, _CHUNKS.format(*chosen), (tenant, wanted))
    return [FoundChunk(*row) for row in rows if row[1] in readable]


async def list_chunk_texts(
    tx: AsyncConnection, tenant: str, part: int, *, after: int, limit: int
) -> list[tuple[int, int, str, str, str]]:
    """Return number, part, title, headings and text of a part's chunks, after the number ``after``."""
    column = document_chunk.c
    query = (
        select(column.number, column.part, column.title, column.headings, column.text)
        .where(column.tenant == tenant, column.part == part, column.number > after)
        .order_by(column.number)
        .limit(limit)
    )
    return [(row.number, row.part, row.title, row.headings, row.text) for row in await tx.execute(query)]


async def read_vectors(tx: AsyncConnection, tenant: str, part: int, embedder: str) -> list[tuple[int, bytes]]:
    """Return the numbers of a part's chunks, ascending, with their vectors of ``embedder``."""
    column = document_chunk.c
    query = (
        select(column.number, column.vector)
        .where(column.tenant == tenant, column.part == part, column.embedder == embedder)
        .order_by(column.number)
    )
    return [(row.number, row.vector) for row in await tx.execute(query)]


async def compares_vectors(tx: AsyncConnection) -> bool:
    """Return whether the database itself compares vectors."""
    if tx.dialect.name != "postgresql":
        return False
    statement = (
        "SELECT count(*) FROM pg_attribute WHERE attrelid = 'document_search'::regclass "
        "AND attname = 'embedding' AND NOT attisdropped"
    )
    return bool((await tx.execute(text(statement))).scalar_one())


async def scrub_index(database: Database) -> None:
    """Remove deleted text from the files of SQLite, too: from the text index and from the write-ahead log.

    FTS5 keeps the words of a deleted row until its segments are merged. This merges in short steps, so that other
    writers get their turn. PostgreSQL does the same by itself (vacuum).
    """
    if not database.embedded:
        return
    for table in (_OWN.table, _BEYOND.table):
        pages = -_MERGED_PAGES
        while True:
            async with database.system_transaction() as tx:
                before = (await tx.execute(text("SELECT total_changes()"))).scalar_one()
                merge = f"INSERT INTO {table} ({table}, rank) VALUES ('merge', :pages)"  # noqa: S608 - as above
                await tx.execute(text(merge), {"pages": pages})
                after = (await tx.execute(text("SELECT total_changes()"))).scalar_one()
            if after - before < 2:  # noqa: PLR2004 - the command itself counts as one
                break
            pages = _MERGED_PAGES
    async with database.connection() as connection:
        await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def _index_of(word: str) -> _TextIndex:
    return _OWN if word.isascii() else _BEYOND


def _sqlite_source(index: _TextIndex, tenant: str, parts: Sequence[int]) -> tuple[str, tuple[str, ...]]:
    """Return the table to search and its parameters; many parts would be too long for the query of the index."""
    if len(parts) <= _MOST_NAMED_PARTS:
        return index.table, ()
    joined = (
        f"{index.table} JOIN document_chunk AS held ON held.tenant = ? "  # noqa: S608 - as above
        f"AND held.number = {index.table}.rowid AND held.part IN (SELECT value FROM json_each(?))"
    )
    return joined, (tenant, json.dumps(list(parts)))


def _match(index: _TextIndex, parts: Sequence[int], words: Sequence[str]) -> str:
    """Return the FTS5 query; words are quoted, so that nothing in them is an operator."""
    wanted = " OR ".join(f'"{_NOT_A_WORD.sub(" ", word)}"' for word in words)
    words_query = f"{{{index.columns}}} : ({wanted})"
    if len(parts) > _MOST_NAMED_PARTS:
        return words_query
    part_query = " OR ".join(f'"{part}"' for part in parts)
    return f"(part : ({part_query})) AND ({words_query})"
