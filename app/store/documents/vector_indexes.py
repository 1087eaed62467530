"""Indexes of vectors (HNSW of pgvector), one for each tenant and embedder with many chunks, and questions to them.

An index holds the vectors of one tenant alone, so what others store changes neither its answers nor its speed.
Row-level security holds in every question: the order of an index is no condition that would have to be leakproof.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.database import Database
from app.store.documents.collection_documents import spelled

PREFIX: Final = "ix_document_search_near_"
_MOST_DIMENSIONS: Final = 2000
"""HNSW of pgvector takes no more."""
_BYTES: Final = 4
_LOOKED_AT: Final = 400
"""Vectors that a walk through the graph keeps (``hnsw.ef_search``)."""
_COLLECTED: Final = 200
"""Readable chunks that a walk collects at least, of which the nearest count: its order is only nearly exact."""
_BUILD_S: Final = 6 * 3600.0

# Without a plan of its own for each tenant, PostgreSQL could not see that the index of a tenant serves.
_SETTINGS = (
    "SELECT set_config('plan_cache_mode', 'force_custom_plan', true), "
    "set_config('hnsw.iterative_scan', 'relaxed_order', true), "
    f"set_config('hnsw.ef_search', '{_LOOKED_AT}', true)"
)
_SUPPORTED = (
    "SELECT count(*) FROM pg_extension WHERE extname = 'vector' "
    "AND (string_to_array(extversion, '.')::integer[])[1:2] >= ARRAY[0, 8]"
)
_LARGE = """
SELECT tenant, embedder, sum(chunks) AS chunks FROM collection_part WHERE embedder <> ''
GROUP BY tenant, embedder HAVING sum(chunks) >= :least ORDER BY tenant, embedder"""
_DIMENSIONS = """
SELECT vector_dims(embedding) FROM document_search
WHERE tenant = :tenant AND embedder = :embedder AND embedding IS NOT NULL LIMIT 1"""
_EXISTING = """
SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'document_search'::regclass AND starts_with(c.relname, :prefix)"""
_OWNED = "SELECT pg_has_role(session_user, relowner, 'USAGE') FROM pg_class WHERE oid = 'document_search'::regclass"
_INDEX = """
SELECT format(
    'CREATE INDEX CONCURRENTLY %I ON document_search USING hnsw ((embedding::vector(%s)) vector_ip_ops) '
    'WHERE tenant = %L AND embedder = %L AND vector_dims(embedding) = %s', $3::text, $4, $1::text, $2::text, $4
) FROM (SELECT $4::integer) AS dimensions"""


class VectorSpace(NamedTuple):
    """The vectors of one tenant that one embedder made, and how many chunks have them."""

    tenant: str
    embedder: str
    chunks: int

    @property
    def index_name(self) -> str:
        """Return the name of its index."""
        return PREFIX + hashlib.sha256(f"{self.tenant}\0{self.embedder}".encode()).hexdigest()[:24]


async def indexes_vectors(tx: AsyncConnection) -> bool:
    """Return whether pgvector is there in a version that goes on until enough readable chunks are found (0.8)."""
    return tx.dialect.name == "postgresql" and bool((await tx.execute(text(_SUPPORTED))).scalar_one())


async def nearest_chunks(
    tx: AsyncConnection, tenant: str, parts: Sequence[int], vector: bytes, embedder: str, *, limit: int
) -> dict[int, float]:
    """Return readable chunks nearest to ``vector`` with their cosine, by the tenant's index where it has one.

    Access holds inside the walk: chunks of other parts are passed over until enough are found.
    """
    size = len(vector) // _BYTES
    if size > _MOST_DIMENSIONS:
        raise ValueError("No index takes so many dimensions.")
    likeness = f"(embedding::vector({size}) <#> CAST(CAST(:vector AS text) AS vector({size})))"
    statement = (
        f"WITH near AS MATERIALIZED (SELECT number, {likeness} AS distance FROM document_search "  # noqa: S608
        f"WHERE tenant = :tenant AND embedder = :embedder AND vector_dims(embedding) = {size} "
        f"AND part = ANY(:parts) ORDER BY {likeness} LIMIT :most) "
        "SELECT number, -distance AS likeness FROM near ORDER BY distance, number LIMIT :limit"
    )
    values = {
        "tenant": tenant,
        "embedder": embedder,
        "parts": list(parts),
        "vector": spelled(vector),
        "most": max(limit, _COLLECTED),
        "limit": limit,
    }
    await tx.execute(text(_SETTINGS))
    return {row.number: float(row.likeness) for row in await tx.execute(text(statement), values)}


def may_be_indexed(vector: bytes) -> bool:
    """Return whether an index takes vectors of this size."""
    return len(vector) // _BYTES <= _MOST_DIMENSIONS


async def list_spaces(tx: AsyncConnection, *, least: int) -> list[VectorSpace]:
    """Return the vectors that at least so many chunks have (system transactions)."""
    return [VectorSpace(*row) for row in await tx.execute(text(_LARGE), {"least": least})]


async def find_dimensions(tx: AsyncConnection, space: VectorSpace) -> int | None:
    """Return the number of dimensions, or None where no index takes them (system transactions)."""
    values = {"tenant": space.tenant, "embedder": space.embedder}
    size: int | None = (await tx.execute(text(_DIMENSIONS), values)).scalar_one_or_none()
    return size if size is not None and size <= _MOST_DIMENSIONS else None


async def list_vector_indexes(tx: AsyncConnection) -> dict[str, bool]:
    """Return the names of the indexes, and whether each is whole: an interrupted build leaves one that is not."""
    return {row[0]: row[1] for row in await tx.execute(text(_EXISTING), {"prefix": PREFIX})}


async def may_build(tx: AsyncConnection) -> bool:
    """Return whether the login owns the table."""
    return bool((await tx.execute(text(_OWNED))).scalar_one())


async def build_index(database: Database, space: VectorSpace, dimensions: int) -> None:
    """Build the index of ``space`` while others read and write; what is left of an earlier try goes first."""
    await _alone(database, f"DROP INDEX CONCURRENTLY IF EXISTS {space.index_name}")
    async with database.connection() as tx:
        statement = (
            await tx.exec_driver_sql(_INDEX, (*space[:2], space.index_name, dimensions))
        ).scalar_one()
    await _alone(database, statement)


async def drop_index(database: Database, name: str) -> None:
    """Drop an index while others read and write."""
    await _alone(database, f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"')


async def _alone(database: Database, statement: str) -> None:
    """Run a statement outside of transactions, without the limits of requests: it waits for who began before it."""
    async with database.session() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        try:
            await driver.execute("SET statement_timeout = 0; SET lock_timeout = 0")
            await driver.execute(statement, timeout=_BUILD_S)
        finally:
            await connection.invalidate()
