"""The hostile corpus against the whole service: no 5xx, every 4xx with a stable code, nothing repeated."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from httpx2 import Response

from app.core.errors import all_errors
from tests.conftest import ENGINES
from tests.integration.hostile import JSON, MARK, MCP, Hostile, corpus
from tests.integration.service import Service, running_service

CODES = {error.code for error in all_errors()}
CORPUS = list(corpus())


@pytest.fixture(params=ENGINES)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """Run the service on each database: what one swallows, the other may refuse in the middle of a request."""
    with ExitStack() as stack:
        url = None
        if request.param == "postgresql":
            url = request.getfixturevalue("own_postgres_url")
        yield stack.enter_context(running_service(tmp_path, database_url=url, warm=True))


def send(service: Service, request: Hostile) -> Response:
    headers = {"content-type": JSON, **request.headers}
    if request.path == MCP:
        headers.setdefault("accept", "application/json, text/event-stream")
    return service.http.request(request.method, request.path, content=request.body, headers=headers)


def fault_of(request: Hostile, answer: Response) -> str | None:
    """Return what is wrong with the answer, None where nothing is."""
    status = answer.status_code
    if status >= 500:
        return f"{status}: {answer.text[:200]}"
    if request.refused and status < 400:
        return f"passed with {status}: {answer.text[:200]}"
    if status < 400:
        return None
    if MARK in answer.text:
        return f"repeats the content: {answer.text[:300]}"
    if not answer.headers.get("x-request-id"):
        return "has no request id"
    return None if code_of(answer) in CODES else f"{status} without a stable code: {answer.text[:200]}"


def code_of(answer: Response) -> str | None:
    try:
        body = json.loads(answer.content)
    except ValueError:
        return None
    if "jsonrpc" in body:
        return str(body["error"]["data"]["code"])
    is_problem = answer.headers["content-type"] == "application/problem+json"
    return str(body["code"]) if is_problem and body["status"] == answer.status_code else None


def test_the_corpus_has_more_than_three_hundred_requests() -> None:
    assert len({request.name for request in CORPUS}) == len(CORPUS) >= 300


def test_no_hostile_request_breaks_the_service_or_gets_an_unstable_answer(service: Service) -> None:
    faults = {}
    for request in CORPUS:
        fault = fault_of(request, send(service, request))
        if fault is not None:
            faults[request.name] = fault
    assert faults == {}
    assert service.http.get("/readyz").json()["status"] == "ready"
    assert "bug" not in {json.loads(line)["event"] for line in service.log.getvalue().splitlines()}
    assert MARK not in service.log.getvalue()


def test_the_judge_notices_a_server_error_and_a_repeated_content() -> None:
    """Negative control: the three kinds of fault are found where they are."""
    request = Hostile("control", "/")
    headers = {"content-type": "application/problem+json", "x-request-id": "r"}
    good = {"code": "not_found", "status": 404}
    assert fault_of(request, Response(404, headers=headers, json=good)) is None
    assert fault_of(request, Response(500, headers=headers, json={**good, "status": 500}))
    assert fault_of(request, Response(200, headers=headers, json={}))
    assert fault_of(request, Response(404, headers=headers, json={**good, "detail": MARK}))
    assert fault_of(request, Response(404, headers=headers, json={**good, "code": "odd"}))
    assert fault_of(request, Response(404, headers={"content-type": "text/plain"}, text="x"))
