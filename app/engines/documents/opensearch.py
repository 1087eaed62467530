"""Chunks in OpenSearch 2 and 3, or Elasticsearch 8 and 9, which declare and query vectors differently.

Words are stored as our own stems, so no analyzer decides what matches. They are ranked by weights that come with the
query, so that documents of other tenants, which the servers' own statistics count, have no influence.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from app.engines.documents.chunk_index import IndexedChunk, IndexOptions, SearchScope
from app.engines.documents.index_client import IndexAnswer, IndexClient, numbers_of, read_reply
from app.engines.resilience import RemoteEngineError

_CREATED: Final = frozenset({200, 201})
_BUSY: Final = 429
_ATTEMPTS: Final = 4
_PAUSE_S: Final = 0.2
_MISSING: Final = 404
_CONCRETE: Final = "-index"
"""Suffix of the real index behind the alias. Writes require the alias, so none creates an index without mapping."""
_BAD_REQUEST: Final = 400

Count = Annotated[int, Field(ge=0)]


class _Shards(IndexAnswer):
    failed: Count


class _Hit(IndexAnswer):
    id: Annotated[str, Field(alias="_id", pattern=r"^[0-9]{1,19}$")]


class _Hits(IndexAnswer):
    hits: list[_Hit]


class _Bucket(IndexAnswer):
    doc_count: Count


class _Buckets(IndexAnswer):
    buckets: dict[str, _Bucket]


class _Aggregations(IndexAnswer):
    words: _Buckets


class _Found(IndexAnswer):
    timed_out: bool
    shards: Annotated[_Shards, Field(alias="_shards")]
    hits: _Hits


class _Counted(_Found):
    aggregations: _Aggregations


class _Total(IndexAnswer):
    count: Count
    shards: Annotated[_Shards, Field(alias="_shards")]


class _Stored(IndexAnswer):
    id: Annotated[str, Field(alias="_id")]
    status: int


class _Item(IndexAnswer):
    index: _Stored


class _Bulk(IndexAnswer):
    errors: bool
    items: list[_Item]


class _Removed(IndexAnswer):
    timed_out: bool
    version_conflicts: Count
    failures: list[Any]


class _Acknowledged(IndexAnswer):
    acknowledged: bool


class _Fault(IndexAnswer):
    type: str


class _Refused(IndexAnswer):
    error: _Fault


class OpenSearchIndex:
    """Implements ChunkIndex; ``kind`` of the options is ``opensearch`` or ``elasticsearch``."""

    def __init__(self, options: IndexOptions) -> None:
        self._client = IndexClient(options)
        self._elastic = options.kind == "elasticsearch"

    async def ensure(self, name: str, dimensions: int | None) -> bool:
        """Create the index where there is none; another process may do so at the same time."""
        there = await self._client.send("HEAD", f"/{name}", accepted=frozenset({_MISSING}))
        if there.status != _MISSING:
            return False
        body = {**self._declaration(dimensions), "aliases": {name: {}}}
        path = f"/{name}{_CONCRETE}"
        made = await self._client.send("PUT", path, body, accepted=frozenset({_BAD_REQUEST}))
        if made.status == _BAD_REQUEST:
            if (await read_reply(made, _Refused)).error.type == "resource_already_exists_exception":
                return False
            raise RemoteEngineError("status 400")
        if not (await read_reply(made, _Acknowledged)).acknowledged:
            raise RemoteEngineError("the index was not made in time")
        return True

    async def drop(self, name: str) -> None:
        """Remove an index."""
        await self._client.send("DELETE", f"/{name}{_CONCRETE}", accepted=frozenset({_MISSING}))

    async def put(self, name: str, chunks: Sequence[IndexedChunk]) -> None:
        """Store chunks; send those again that a busy server refused."""
        waiting = {str(chunk.number): chunk for chunk in chunks}
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_PAUSE_S * 2**attempt)
            body = b"".join(map(_lines, waiting.values()))
            done = await self._client.ask("POST", f"/{name}/_bulk?require_alias=true", body, _Bulk)
            if [item.index.id for item in done.items] != list(waiting):
                raise RemoteEngineError("malformed answer")
            refused = {item.index.id: item.index.status for item in done.items}
            refused = {id_: status for id_, status in refused.items() if status not in _CREATED}
            if any(status != _BUSY for status in refused.values()):
                raise RemoteEngineError("a chunk was refused")
            waiting = {id_: waiting[id_] for id_ in refused}
            if not waiting:
                await self._refresh(name)
                return
        raise RemoteEngineError("the server is busy")

    async def remove(self, name: str, tenant: str, documents: Sequence[str] | None) -> None:
        """Remove all chunks of these documents (None: of the tenant)."""
        filters: list[dict[str, Any]] = [{"term": {"tenant": tenant}}]
        if documents is not None:
            filters.append({"terms": {"document": list(documents)}})
        await self._refresh(name)  # a deletion sees only what a search would see
        path = f"/{name}/_delete_by_query?refresh=true&wait_for_completion=true"
        done = await self._client.ask("POST", path, {"query": {"bool": {"filter": filters}}}, _Removed)
        if done.timed_out or done.version_conflicts or done.failures:
            raise RemoteEngineError("not all was removed")

    async def count(self, name: str, tenant: str) -> int:
        """Return how many chunks a tenant has."""
        query = {"query": {"term": {"tenant": tenant}}}
        total = await self._client.ask("POST", f"/{name}/_count", query, _Total)
        if total.shards.failed:
            raise RemoteEngineError("a part of the index did not answer")
        return total.count

    async def count_matches(self, name: str, scope: SearchScope, stems: Sequence[str]) -> list[int]:
        """Return for each of ``stems`` how many chunks have it."""
        filters = {str(at): {"term": {"stems": stem}} for at, stem in enumerate(stems)}
        body = {
            "size": 0,
            "track_total_hits": False,
            "query": {"bool": {"filter": _within(scope)}},
            "aggs": {"words": {"filters": {"filters": filters}}},
        }
        answer = await self._client.ask("POST", f"/{name}/_search", body, _Counted)
        _check_whole(answer)
        buckets = answer.aggregations.words.buckets
        if buckets.keys() != filters.keys():
            raise RemoteEngineError("malformed answer")
        return [buckets[str(at)].doc_count for at in range(len(stems))]

    async def match_words(
        self, name: str, scope: SearchScope, weights: Mapping[str, float], limit: int
    ) -> list[int]:
        """Return the chunks in which the words, each times its weight, add up to most."""
        wanted = [
            {"rank_feature": {"field": f"weights.{stem}", "linear": {}, "boost": weight}}
            for stem, weight in weights.items()
        ]
        query = {"bool": {"filter": _within(scope), "should": wanted, "minimum_should_match": 1}}
        return await self._search(name, {"query": query, "sort": ["_score", {"number": "asc"}]}, limit)

    async def nearest(self, name: str, scope: SearchScope, vector: Sequence[float], limit: int) -> list[int]:
        """Return the chunks with the nearest vectors; the filter is part of the walk through the graph."""
        scope_filter: dict[str, Any] = {"bool": {"filter": _within(scope)}}
        if self._elastic:
            query: dict[str, Any] = {
                "field": "vector",
                "query_vector": list(vector),
                "k": limit,
                "num_candidates": 4 * limit,
                "filter": scope_filter,
            }
            return await self._search(name, {"knn": query}, limit)
        query = {"vector": {"vector": list(vector), "k": limit, "filter": scope_filter}}
        return await self._search(name, {"query": {"knn": query}}, limit)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def _search(self, name: str, body: Mapping[str, Any], limit: int) -> list[int]:
        query = {"size": limit, "_source": False, "track_total_hits": False, **body}
        answer = await self._client.ask("POST", f"/{name}/_search", query, _Found)
        _check_whole(answer)
        return numbers_of([int(hit.id) for hit in answer.hits.hits], limit)

    async def _refresh(self, name: str) -> None:
        await self._client.send("POST", f"/{name}/_refresh")

    def _declaration(self, dimensions: int | None) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "tenant": {"type": "keyword"},
            "part": {"type": "long"},
            "document": {"type": "keyword"},
            "number": {"type": "long"},
            "stems": {"type": "keyword", "doc_values": False},
            "weights": {"type": "rank_features"},
        }
        if dimensions is not None and self._elastic:
            fields["vector"] = {
                "type": "dense_vector",
                "dims": dimensions,
                "index": True,
                "similarity": "cosine",
            }
        elif dimensions is not None:
            method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
            fields["vector"] = {"type": "knn_vector", "dimension": dimensions, "method": method}
        mappings = {
            "dynamic": "strict",
            "_source": {"includes": ["tenant", "part", "document", "number"]},
            "properties": fields,
        }
        knn = {} if self._elastic or dimensions is None else {"settings": {"index": {"knn": True}}}
        return {"mappings": mappings, **knn}


def _lines(chunk: IndexedChunk) -> bytes:
    fields: dict[str, Any] = {
        "tenant": chunk.tenant,
        "part": chunk.part,
        "document": chunk.document,
        "number": chunk.number,
        "stems": list(chunk.weights),
        "weights": dict(chunk.weights),
    }
    if chunk.vector is not None:
        fields["vector"] = list(chunk.vector)
    action = {"index": {"_id": str(chunk.number)}}
    return "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in (action, fields)).encode()


def _within(scope: SearchScope) -> list[dict[str, Any]]:
    return [{"term": {"tenant": scope.tenant}}, {"terms": {"part": list(scope.parts)}}]


def _check_whole(answer: _Found) -> None:
    """Refuse an answer of only some shards, which would ignore the chunks of the others."""
    if answer.timed_out or answer.shards.failed:
        raise RemoteEngineError("a part of the index did not answer")
