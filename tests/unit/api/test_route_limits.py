"""Routes that take another type than JSON declare it, and the edge finds it by the path of a request."""

import pytest

from app.api.surface import rest_routers
from app.edge.health import Readiness
from app.edge.lifespan_state import Drain
from app.edge.limits import DeclaredLimits, Headers

RESTORATION = "/api/v1/middleware/pii_restoration/stream"
IMPORT = "/api/v1/groups/import"
DOCUMENTS = "/api/v1/collections/minutes/documents"


@pytest.fixture(scope="module")
def declared() -> DeclaredLimits:
    routers = rest_routers(Readiness(Drain()), None)
    return DeclaredLimits.of(route for router in routers for route in router.routes)


def streamed(declared: DeclaredLimits, path: str, kind: str) -> frozenset[str] | None:
    limits = declared.streamed(path, Headers([(b"content-type", kind.encode())]))
    return limits.streamed if limits is not None else None


@pytest.mark.parametrize(
    ("path", "types"),
    [
        (RESTORATION, {"application/x-ndjson", "text/event-stream"}),
        (IMPORT, {"application/json", "application/yaml"}),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/csv"])
def test_a_route_of_streams_takes_its_own_types_alone(declared, path, types, kind):
    assert streamed(declared, path, kind) == types


def test_documents_come_in_their_own_formats_or_as_json(declared):
    assert "application/pdf" in streamed(declared, DOCUMENTS, "application/pdf; charset=utf-8")
    assert streamed(declared, DOCUMENTS, "application/json") is None
    assert streamed(declared, DOCUMENTS, "text/csv") is None


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/middleware/pii_redaction/invoke",
        RESTORATION + "/more",
        "/x" + IMPORT,
        "/api/v1/collections/a/b/documents",
        DOCUMENTS + "/1",
        "/mcp",
    ],
)
def test_every_other_route_takes_json(declared, path):
    assert streamed(declared, path, "application/pdf") is None
