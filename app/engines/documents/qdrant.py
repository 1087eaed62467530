"""Chunks in Qdrant 1.11 and later: embeddings, and sparse vectors of words with our own weights."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from app.engines.documents.chunk_index import IndexedChunk, IndexOptions, SearchScope
from app.engines.documents.index_client import IndexAnswer, IndexClient, numbers_of

_MISSING: Final = 404
_CONFLICT: Final = 409
_FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "tenant": {"type": "keyword", "is_tenant": True},
    "part": {"type": "integer", "lookup": True, "range": False},
    "document": {"type": "keyword"},
    "stems": {"type": "keyword"},
}

Ok = Literal["ok"]


class _Existence(IndexAnswer):
    exists: bool


class _Exists(IndexAnswer):
    status: Ok
    result: _Existence


class _Update(IndexAnswer):
    status: Literal["completed"]


class _Updated(IndexAnswer):
    status: Ok
    result: _Update


class _Total(IndexAnswer):
    count: Annotated[int, Field(ge=0)]


class _Counted(IndexAnswer):
    status: Ok
    result: _Total


class _Point(IndexAnswer):
    id: Annotated[int, Field(ge=0)]


class _Points(IndexAnswer):
    points: list[_Point]


class _Found(IndexAnswer):
    status: Ok
    result: _Points


class QdrantIndex:
    """Implements ChunkIndex; the tenant is a payload field, and Qdrant stores the points of each tenant together."""

    def __init__(self, options: IndexOptions) -> None:
        self._client = IndexClient(options)
        self._declared: set[str] = set()

    async def ensure(self, name: str, dimensions: int | None) -> bool:
        """Create the collection where there is none, and declare its fields."""
        there = await self._client.ask("GET", f"/collections/{name}/exists", None, _Exists)
        made = False
        if not there.result.exists:
            meaning = {} if dimensions is None else {"meaning": {"size": dimensions, "distance": "Cosine"}}
            body = {"vectors": meaning, "sparse_vectors": {"words": {}}}
            accepted = frozenset({_CONFLICT})
            reply = await self._client.send("PUT", f"/collections/{name}", body, accepted=accepted)
            made = reply.status != _CONFLICT  # another process was faster
        if made or name not in self._declared:
            for field, schema in _FIELDS.items():
                body = {"field_name": field, "field_schema": dict(schema)}
                await self._client.ask("PUT", f"/collections/{name}/index?wait=true", body, _Updated)
            self._declared.add(name)
        return made

    async def drop(self, name: str) -> None:
        """Remove a collection."""
        self._declared.discard(name)
        await self._client.send("DELETE", f"/collections/{name}", accepted=frozenset({_MISSING}))

    async def put(self, name: str, chunks: Sequence[IndexedChunk]) -> None:
        """Store chunks."""
        if chunks:
            body = {"points": [_point(chunk) for chunk in chunks]}
            await self._client.ask("PUT", f"/collections/{name}/points?wait=true", body, _Updated)

    async def remove(self, name: str, tenant: str, documents: Sequence[str] | None) -> None:
        """Remove all chunks of these documents (None: of the tenant)."""
        must: list[dict[str, Any]] = [_has("tenant", value=tenant)]
        if documents is not None:
            must.append(_has("document", any=list(documents)))
        body = {"filter": {"must": must}}
        await self._client.ask("POST", f"/collections/{name}/points/delete?wait=true", body, _Updated)

    async def count(self, name: str, tenant: str) -> int:
        """Return how many chunks a tenant has."""
        return await self._counted(name, [_has("tenant", value=tenant)])

    async def count_matches(self, name: str, scope: SearchScope, stems: Sequence[str]) -> list[int]:
        """Return for each of ``stems`` how many chunks contain it, with one concurrent request for each."""
        filters = _within(scope)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._counted(name, [*filters, _has("stems", value=stem)]))
                    for stem in stems
                ]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return [task.result() for task in tasks]

    async def match_words(
        self, name: str, scope: SearchScope, weights: Mapping[str, float], limit: int
    ) -> list[int]:
        """Return the chunks in which the words, each times its weight, add up to most."""
        return await self._query(name, _sparse(weights), "words", scope, limit)

    async def nearest(self, name: str, scope: SearchScope, vector: Sequence[float], limit: int) -> list[int]:
        """Return the chunks with the nearest vectors; the filter is part of the walk through the graph."""
        return await self._query(name, list(vector), "meaning", scope, limit)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def _counted(self, name: str, must: list[dict[str, Any]]) -> int:
        body = {"filter": {"must": must}, "exact": True}
        path = f"/collections/{name}/points/count"
        return (await self._client.ask("POST", path, body, _Counted)).result.count

    async def _query(self, name: str, query: Any, using: str, scope: SearchScope, limit: int) -> list[int]:
        body = {
            "query": query,
            "using": using,
            "filter": {"must": _within(scope)},
            "limit": limit,
            "with_payload": False,
            "with_vector": False,
        }
        answer = await self._client.ask("POST", f"/collections/{name}/points/query", body, _Found)
        return numbers_of([point.id for point in answer.result.points], limit)


def _point(chunk: IndexedChunk) -> dict[str, Any]:
    vectors: dict[str, Any] = {"words": _sparse(chunk.weights)}
    if chunk.vector is not None:
        vectors["meaning"] = list(chunk.vector)
    payload = {
        "tenant": chunk.tenant,
        "part": chunk.part,
        "document": chunk.document,
        "stems": list(chunk.weights),
    }
    return {"id": chunk.number, "vector": vectors, "payload": payload}


def _sparse(weights: Mapping[str, float]) -> dict[str, Any]:
    """Return words as a sparse vector; words that share a hash (of 32 bits) add up."""
    values: dict[int, float] = {}
    for stem, weight in weights.items():
        place = int.from_bytes(hashlib.blake2b(stem.encode(), digest_size=4).digest())
        values[place] = values.get(place, 0.0) + weight
    return {"indices": list(values), "values": list(values.values())}


def _has(key: str, **match: Any) -> dict[str, Any]:
    return {"key": key, "match": match}


def _within(scope: SearchScope) -> list[dict[str, Any]]:
    return [_has("tenant", value=scope.tenant), _has("part", any=list(scope.parts))]
