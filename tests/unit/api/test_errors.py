"""Problem details: one table, nothing missing, nothing of the input."""

import pytest
import structlog
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient
from pydantic import BaseModel, ConfigDict

from app.api.errors import install_error_handlers
from app.core.errors import (
    InvalidArgumentsError,
    RateLimitedError,
    ServiceError,
    UnauthenticatedError,
    all_errors,
)
from app.edge.guard import EdgeGuard
from app.edge.problems import PROBLEMS, problem, problem_response


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")
    count: int
    kind: str = "x"


def make_app() -> EdgeGuard:
    app = FastAPI()
    install_error_handlers(app)

    @app.post("/body")
    async def body(body: Body) -> int:
        return body.count

    @app.get("/query")
    async def query(limit: int) -> int:
        return limit

    @app.get("/bug")
    async def bug() -> None:
        raise RuntimeError("Jane-Canary")

    @app.get("/limited")
    async def limited() -> None:
        raise RateLimitedError("Wait.", retry_after_s=2.2)

    return EdgeGuard(app)


def client() -> AsyncClient:
    return AsyncClient(transport=ASGITransport(make_app()), base_url="http://localhost")


def test_every_code_has_a_status_and_a_title() -> None:
    assert set(PROBLEMS) == {error.code for error in all_errors()}
    for status, title in PROBLEMS.values():
        assert 400 <= status < 600
        assert title


@pytest.mark.parametrize("kind", all_errors())
def test_a_problem_document_has_all_members_of_the_standard(kind: type[ServiceError]) -> None:
    error = kind("A sentence.", details={"pointer": "/a", "limit": 3})
    body = problem(error, "request-1")
    assert body["type"] == f"urn:sluice:error:{kind.code}"
    assert body["code"] == kind.code
    assert body["detail"] == "A sentence."
    assert body["request_id"] == "request-1"
    assert body["pointer"] == "/a"
    assert body["details"] == {"limit": 3}
    response = problem_response(error, "request-1")
    assert response.status_code == body["status"]
    assert response.headers["content-type"] == "application/problem+json"


def test_waiting_and_authentication_are_said_in_headers() -> None:
    limited = problem_response(RateLimitedError("Wait.", retry_after_s=0.2), "r")
    assert limited.headers["retry-after"] == "1"
    assert "Bearer" in problem_response(UnauthenticatedError("Who?"), "r").headers["www-authenticate"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"count": "Jane-Canary"}, "/count"),
        ({"count": 1, "Jane-Canary": 2}, ""),
        ({"count": 1, "kind": ["Jane-Canary"]}, "/kind"),
        ({}, "/count"),
        (["Jane-Canary"], ""),
        ("Jane-Canary", ""),
    ],
)
async def test_a_wrong_body_is_located_and_not_repeated(body: object, pointer: str) -> None:
    async with client() as http:
        answer = await http.post("/body", json=body)
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_arguments"
    assert answer.json()["pointer"] == pointer
    assert "Jane-Canary" not in answer.text


async def test_a_wrong_parameter_is_named_and_not_repeated() -> None:
    async with client() as http:
        answer = await http.get("/query", params={"limit": "Jane-Canary"})
    assert answer.status_code == 422
    assert answer.json()["details"] == {"parameter": "limit"}
    assert "Jane-Canary" not in answer.text


async def test_a_bug_is_answered_by_its_id_alone_and_logged_without_its_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    structlog.reset_defaults()  # a service of an earlier test in this process may have sent the log elsewhere
    async with client() as http:
        answer = await http.get("/bug", headers={"x-request-id": "my-request-000001"})
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal_error"
    assert answer.json()["request_id"] == answer.headers["x-request-id"] != "my-request-000001"
    assert answer.headers["x-client-request-id"] == "my-request-000001"
    seen = capsys.readouterr()
    logged = seen.out + seen.err
    assert "Jane-Canary" not in logged + answer.text
    assert "RuntimeError" in logged
    assert "my-request-000001" in logged
    assert "test_errors.py" in logged


async def test_unknown_addresses_and_methods_are_problems_too() -> None:
    async with client() as http:
        missing = await http.get("/nothing/Jane-Canary")
        wrong = await http.put("/query")
        limited = await http.get("/limited")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "invalid_request")
    assert wrong.headers["allow"] == "GET"
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "3")
    for answer in (missing, wrong, limited):
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["x-request-id"] == answer.json()["request_id"]
        assert "Jane-Canary" not in answer.text


def test_details_never_lose_their_pointer_when_it_is_empty() -> None:
    assert problem(InvalidArgumentsError("No.", details={"pointer": ""}), "r")["pointer"] == ""
