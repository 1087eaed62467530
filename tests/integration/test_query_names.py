"""An unknown query name is refused on every path, with the names that exist; those that exist pass."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.integration.rest_app import Rest, document_of, open_rest


@pytest.fixture
async def rest(sqlite_database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(sqlite_database_url) as opened:
        yield opened


def operations(rest: Rest) -> Iterator[tuple[str, str, list[str]]]:
    """Yield method, a path and the query names of every operation of the OpenAPI document."""
    yield "GET", "/api/v1/openapi.json", []
    for path, described in document_of(rest)["paths"].items():
        for method, operation in described.items():
            filled, names = path, []
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path":
                    filled = filled.replace(f"{{{parameter['name']}}}", parameter["schema"]["examples"][0])
                else:
                    names.append(parameter["name"])
            yield method.upper(), filled, sorted(names)


async def test_every_path_refuses_a_name_that_it_does_not_read(rest: Rest) -> None:
    seen = 0
    for method, path, names in operations(rest):
        # A misspelt name that another path has, beside the names that this one has.
        for unknown in ("expected_versoin", "tennant", "originals_"):
            query = "&".join([*(f"{name}=1" for name in names), f"{unknown}=7"])
            answer = await rest.call(method, f"{path}?{query}")
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (422, "invalid_arguments"), f"{method} {path}"
            assert problem["details"] == {"parameter": unknown, "known": names}, f"{method} {path}"
            assert all(name in problem["detail"] for name in (unknown, *names))
        seen += 1
    assert seen > 70


async def test_names_that_exist_pass_on_every_path(rest: Rest) -> None:
    for method, path, names in operations(rest):
        if method == "GET" and "{" not in path:
            answer = await rest.call(method, path, params=dict.fromkeys(names, "1"))
            assert "The query has no" not in answer.text, f"{method} {path}"
    assert (await rest.call("GET", "/api/v1/keys?limit=1&cursor=00000000")).status_code == 200
    assert (await rest.call("GET", "/api/v1/keys?")).status_code == 200
    missing = await rest.call("GET", "/api/v1/nothing?a=1")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "query",
    ["Jane-Canary=1", "%4aane%20Canary", "=Canary", "123456789", "limit=1&Canary%0a=1", "limit%5B%5D=Canary"],
)
async def test_what_does_not_look_like_a_name_is_refused_without_being_repeated(
    rest: Rest, query: str
) -> None:
    answer = await rest.call("GET", f"/api/v1/keys?{query}")
    assert answer.status_code == 422
    assert answer.json()["details"] == {"known": ["cursor", "limit", "tenant"]}
    assert "Canary" not in answer.text
    assert "123456789" not in answer.text


async def test_a_query_of_thousands_of_parameters_is_refused_unread(rest: Rest) -> None:
    answer: Any = await rest.call("GET", "/api/v1/keys?" + "limit=1&" * 300)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
