"""What OpenSearch and Elasticsearch do of their REST interfaces with an index of chunks, declared fields enforced."""

import math
from dataclasses import dataclass, field
from typing import Any

from tests.integration.index_server import IndexServer, Seen

SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}


@dataclass
class OpenSearchServer(IndexServer):
    """``kind`` says whose way of declaring and asking for vectors is understood; the other's is refused."""

    kind: str = "opensearch"
    indexes: dict[str, dict[str, Any]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    documents: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    refreshed: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    busy: int = 0
    refused: str = ""

    async def answer(self, seen: Seen) -> tuple[int, Any]:
        name, _, action = seen.path.strip("/").partition("/")
        if not action:
            return getattr(self, f"_{seen.method.lower()}")(name, seen.body)
        index = self.aliases.get(name)
        if action == "_bulk" and index is None:
            assert seen.query.get("require_alias") == "true", "else the server would make an index"
            return 404, _fault("index_not_found_exception")
        if index is None:
            return 404, _fault("index_not_found_exception")
        if action == "_delete_by_query":
            assert seen.query.get("refresh") == "true"
        return getattr(self, action)(index, seen.body)

    def _head(self, name: str, _body: Any) -> tuple[int, Any]:
        return (200 if name in self.aliases or name in self.indexes else 404), None

    def _put(self, name: str, body: Any) -> tuple[int, Any]:
        if name in self.indexes:
            return 400, _fault("resource_already_exists_exception")
        fields = body["mappings"]["properties"]
        vector = fields.get("vector")
        knn = body.get("settings", {}).get("index", {}).get("knn")
        if self.kind == "elasticsearch":
            if knn is not None:
                return 400, _fault("illegal_argument_exception")
            right = vector is None or (vector["type"], vector["similarity"]) == ("dense_vector", "cosine")
        else:
            right = vector is None or (vector["type"] == "knn_vector" and knn is True)
        if not right:
            return 400, _fault("mapper_parsing_exception")
        self.indexes[name] = body
        self.documents[name], self.refreshed[name] = {}, {}
        self.aliases |= dict.fromkeys(body.get("aliases", {}), name)
        return 200, {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _delete(self, name: str, _body: Any) -> tuple[int, Any]:
        if self.indexes.pop(name, None) is None:
            return 404, _fault("index_not_found_exception")
        self.aliases = {alias: index for alias, index in self.aliases.items() if index != name}
        return 200, {"acknowledged": True}

    def _bulk(self, index: str, lines: list[Any]) -> tuple[int, Any]:
        fields = self.indexes[index]["mappings"]["properties"]
        items = []
        for action, source in zip(lines[::2], lines[1::2], strict=True):
            id_ = action["index"]["_id"]
            if self.busy > 0:
                self.busy -= 1
                items.append(
                    {"index": {"_index": index, "_id": id_, "status": 429, "error": {"type": "busy"}}}
                )
                continue
            bad = not source.keys() <= fields.keys() or source["document"] == self.refused
            bad = bad or any(value <= 0 for value in source["weights"].values())
            if bad or any("." in stem for stem in source["weights"]):
                items.append(
                    {"index": {"_index": index, "_id": id_, "status": 400, "error": {"type": "bad"}}}
                )
                continue
            self.documents[index][id_] = source
            items.append({"index": {"_index": index, "_id": id_, "status": 201, "result": "created"}})
        errors = any("error" in item["index"] for item in items)
        return 200, {"took": 1, "errors": errors, "items": items}

    def _refresh(self, index: str, _body: Any) -> tuple[int, Any]:
        self.refreshed[index] = dict(self.documents[index])
        return 200, {"_shards": SHARDS}

    def _count(self, index: str, body: Any) -> tuple[int, Any]:
        found = [one for one in self.refreshed[index].values() if _score(body["query"], one) is not None]
        return 200, {"count": len(found), "_shards": SHARDS}

    def _delete_by_query(self, index: str, body: Any) -> tuple[int, Any]:
        gone = [id_ for id_, one in self.refreshed[index].items() if _score(body["query"], one) is not None]
        for id_ in gone:
            del self.documents[index][id_]
        self._refresh(index, None)
        said = {"took": 1, "timed_out": False, "total": len(gone), "deleted": len(gone), "batches": 1}
        return 200, {**said, "version_conflicts": 0, "noops": 0, "failures": []}

    def _search(self, index: str, body: Any) -> tuple[int, Any]:
        held = self.refreshed[index]
        if "knn" in body or "knn" in body.get("query", {}):
            ranked = self._nearest(held, body)
            if ranked is None:
                return 400, _fault("parsing_exception")
        else:
            scored = [(id_, _score(body["query"], one)) for id_, one in held.items()]
            ranked = [(id_, score) for id_, score in scored if score is not None]
            ranked.sort(key=lambda one: (-one[1], int(one[0])))
        hits = [{"_index": index, "_id": id_, "_score": score} for id_, score in ranked[: body["size"]]]
        said: dict[str, Any] = {"took": 1, "timed_out": False, "_shards": SHARDS, "hits": {"hits": hits}}
        if "aggs" in body:
            inside = [held[id_] for id_, _ in ranked]
            filters = body["aggs"]["words"]["filters"]["filters"]
            buckets = {
                key: {"doc_count": sum(_score(one, chunk) is not None for chunk in inside)}
                for key, one in filters.items()
            }
            said["aggregations"] = {"words": {"buckets": buckets}}
        return 200, said

    def _nearest(self, held: dict[str, Any], body: Any) -> list[tuple[str, float]] | None:
        if self.kind == "elasticsearch":
            if "knn" not in body or body["knn"]["num_candidates"] < body["knn"]["k"]:
                return None
            asked, most, within = body["knn"]["query_vector"], body["knn"]["k"], body["knn"]["filter"]
        else:
            if "knn" in body:
                return None
            said = body["query"]["knn"]["vector"]
            asked, most, within = said["vector"], said["k"], said["filter"]
        scored = [
            (id_, (1 + cosine(asked, one["vector"])) / 2)
            for id_, one in held.items()
            if "vector" in one and _score(within, one) is not None
        ]
        return sorted(scored, key=lambda one: (-one[1], int(one[0])))[:most]


def cosine(one: list[float], other: list[float]) -> float:
    """Return the cosine of two vectors of the same length."""
    assert len(one) == len(other)
    return math.sumprod(one, other) if hasattr(math, "sumprod") else sum(map(float.__mul__, one, other))


def _score(query: Any, chunk: dict[str, Any]) -> float | None:
    """Return the score of a chunk, None where it does not match."""
    ((kind, said),) = query.items()
    if kind == "term":
        ((field_, value),) = said.items()
        held = chunk[field_]
        return 0.0 if (value in held if isinstance(held, list) else value == held) else None
    if kind == "terms":
        ((field_, values),) = said.items()
        return 0.0 if chunk[field_] in values else None
    if kind == "rank_feature":
        assert said["linear"] == {}
        held = chunk["weights"].get(said["field"].removeprefix("weights."))
        return None if held is None else held * said["boost"]
    assert kind == "bool", kind
    if any(_score(one, chunk) is None for one in said.get("filter", ())):
        return None
    found = [score for one in said.get("should", ()) if (score := _score(one, chunk)) is not None]
    return sum(found) if len(found) >= said.get("minimum_should_match", 0) else None


def _fault(kind: str) -> dict[str, Any]:
    return {"error": {"type": kind, "reason": "words of the server", "root_cause": []}, "status": 400}
