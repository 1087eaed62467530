"""What Qdrant does of its REST interface with a collection of chunks."""

from dataclasses import dataclass, field
from typing import Any

from tests.integration.index_server import IndexServer, Seen
from tests.integration.opensearch_server import cosine


@dataclass
class QdrantServer(IndexServer):
    """``status`` is what updates answer; a server that is asked to wait says ``completed``."""

    collections: dict[str, dict[str, Any]] = field(default_factory=dict)
    points: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    status: str = "completed"

    async def answer(self, seen: Seen) -> tuple[int, Any]:
        _, name, *rest = seen.path.strip("/").split("/")
        action = "/".join([seen.method, *rest])
        if action == "GET/exists":
            return _ok({"exists": name in self.collections})
        if action == "PUT":
            return self._make(name, seen.body)
        if action == "DELETE":
            return _ok(self.collections.pop(name, None) is not None)
        if name not in self.collections:
            return 404, {"status": {"error": f"Not found: Collection `{name}`"}, "time": 0.0}
        if action in {"PUT/index", "PUT/points", "POST/points/delete"}:
            assert seen.query == {"wait": "true"}
        return {
            "PUT/index": self._declare,
            "PUT/points": self._put,
            "POST/points/delete": self._remove,
            "POST/points/count": self._count,
            "POST/points/query": self._query,
        }[action](name, seen.body)

    def _make(self, name: str, body: Any) -> tuple[int, Any]:
        if name in self.collections:
            return 409, {"status": {"error": "Wrong input: Collection already exists!"}, "time": 0.0}
        self.collections[name] = {**body, "indexes": {}}
        self.points[name] = {}
        return _ok(True)

    def _declare(self, name: str, body: Any) -> tuple[int, Any]:
        self.collections[name]["indexes"][body["field_name"]] = body["field_schema"]
        return self._updated()

    def _put(self, name: str, body: Any) -> tuple[int, Any]:
        declared = self.collections[name]
        for point in body["points"]:
            meaning = point["vector"].get("meaning")
            size = declared["vectors"].get("meaning", {}).get("size")
            words = point["vector"]["words"]
            same = len(set(words["indices"])) == len(words["values"])
            if not same or (meaning is not None and len(meaning) != size):
                return 400, {"status": {"error": "Wrong input"}, "time": 0.0}
            self.points[name][point["id"]] = point
        return self._updated()

    def _remove(self, name: str, body: Any) -> tuple[int, Any]:
        held = self.points[name]
        self.points[name] = {id_: one for id_, one in held.items() if not _within(body["filter"], one)}
        return self._updated()

    def _count(self, name: str, body: Any) -> tuple[int, Any]:
        assert body["exact"] is True
        return _ok({"count": sum(_within(body["filter"], one) for one in self.points[name].values())})

    def _query(self, name: str, body: Any) -> tuple[int, Any]:
        query, using = body["query"], body["using"]
        assert using in {**self.collections[name]["vectors"], **self.collections[name]["sparse_vectors"]}
        scored = []
        for id_, one in self.points[name].items():
            vector = one["vector"].get(using)
            if vector is None or not _within(body["filter"], one):
                continue
            if using == "words":
                held = dict(zip(vector["indices"], vector["values"], strict=True))
                asked = zip(query["indices"], query["values"], strict=True)
                shared = [held[place] * weight for place, weight in asked if place in held]
                if not shared:
                    continue
                scored.append((sum(shared), id_))
            else:
                scored.append((cosine(query, vector), id_))
        scored.sort(key=lambda one: (-one[0], one[1]))
        points = [{"id": id_, "version": 1, "score": score} for score, id_ in scored[: body["limit"]]]
        return _ok({"points": points})

    def _updated(self) -> tuple[int, Any]:
        return _ok({"operation_id": 1, "status": self.status})


def _ok(result: Any) -> tuple[int, Any]:
    return 200, {"result": result, "status": "ok", "time": 0.001, "usage": None}


def _within(asked: Any, point: Any) -> bool:
    assert asked.keys() == {"must"}
    return all(_has(condition, point["payload"][condition["key"]]) for condition in asked["must"])


def _has(condition: Any, held: Any) -> bool:
    ((kind, said),) = condition["match"].items()
    wanted = said if kind == "any" else [said]
    return not set(wanted).isdisjoint(held if isinstance(held, list) else [held])
