"""The OpenAPI document, over all routes: what generators of clients need."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from tests.integration.rest_app import document_of, open_rest

METHODS = {"get", "post", "put", "patch", "delete"}
FILES = {
    "application/octet-stream",
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}


@pytest.fixture
async def document(sqlite_database_url: str) -> Any:
    async with open_rest(sqlite_database_url) as rest:
        yield document_of(rest)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method in METHODS:
                yield f"{method.upper()} {path}", operation


def media(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for label, operation in operations(document):
        holders = {"body": operation.get("requestBody", {}), **operation["responses"]}
        for name, holder in holders.items():
            for kind, described in holder.get("content", {}).items():
                yield f"{label} {name}", kind, described


def examples(described: dict[str, Any]) -> list[Any]:
    if "example" in described:
        return [described["example"]]
    return [example["value"] for example in described.get("examples", {}).values()]


def faults(document: dict[str, Any]) -> list[str]:
    """Return the places of examples that are missing or do not fit their schema."""
    listed = []
    for label, kind, described in media(document):
        values = examples(described)
        if not values and kind not in FILES:
            listed.append(f"{label} {kind}: no example")
        for value in values:
            schema = {**described["schema"], "components": document["components"]}
            errors = jsonschema.Draft202012Validator(schema).iter_errors(value)
            listed += [f"{label} {kind}: {fault.json_path}: {fault.message[:80]}" for fault in errors]
    return listed


async def test_operations_have_short_names_of_their_own(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(ids) == len(set(ids)) > 60
    assert {"listKeys", "invokeMiddleware", "listPolicyVersions", "eraseScope"} <= set(ids)
    assert not [name for name in ids if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name) or len(name) > 30]


async def test_every_body_and_answer_has_an_example_that_fits(document: dict[str, Any]) -> None:
    assert faults(document) == []


async def test_an_example_that_does_not_fit_would_be_noticed(document: dict[str, Any]) -> None:
    answer = document["paths"]["/api/v1/keys/{key_id}"]["get"]["responses"]["200"]["content"][
        "application/json"
    ]
    answer["example"] = {**answer["example"], "roles": ["king"]}
    assert any("GET /api/v1/keys/{key_id} 200" in fault for fault in faults(document))
    del answer["example"]
    assert any("no example" in fault for fault in faults(document))


async def test_every_answer_that_has_a_body_describes_it(document: dict[str, Any]) -> None:
    empty = [
        f"{label} {status}"
        for label, operation in operations(document)
        for status, answer in operation["responses"].items()
        if status != "204" and not answer.get("content")
    ]
    assert not empty


async def test_an_open_object_may_have_members(document: dict[str, Any]) -> None:
    def closed(value: Any, place: str) -> Iterator[str]:
        if isinstance(value, dict):
            if value.get("type") == "object" and not {"properties", "additionalProperties"} & value.keys():
                yield place
            for name, member in value.items():
                yield from closed(member, f"{place}/{name}")
        elif isinstance(value, list):
            for index, member in enumerate(value):
                yield from closed(member, f"{place}/{index}")

    assert not [place for place in closed(document, "") if "/example" not in place]


async def test_records_of_streams_have_names(document: dict[str, Any]) -> None:
    route = document["paths"]["/api/v1/middleware/pii_restoration/stream"]["post"]
    events = route["responses"]["200"]["content"]["text/event-stream"]["schema"]["x-events"]
    named = {reference.rpartition("/")[2] for references in events.values() for reference in references}
    assert (
        named == {"RestoredText", "RestoredEnd", "RestoredError"} <= document["components"]["schemas"].keys()
    )
