"""Descriptions of tools over REST."""

from typing import Any

import pytest

from tests.integration.rest_app import Rest, open_rest

pytestmark = pytest.mark.in_turn("database_url")

PATH = "/api/v1/tool-descriptions"
WRITTEN = {
    "short": "Retrieves data from the system with filtering and pagination options.",
    "examples": [{"description": "Basic query", "input": {"query": "search term", "limit": 10}}],
    "usage_guidance": {"paging": ["first", {"then": "next"}]},
    "error_guidance": {},
}


@pytest.fixture
async def rest(database_url: str) -> Any:
    async with open_rest(database_url) as opened:
        yield opened


async def test_a_description_is_written_read_listed_and_removed(rest: Rest) -> None:
    put = await rest.call("PUT", f"{PATH}/data__get_data", WRITTEN, roles=["operator"])
    got = await rest.call("GET", f"{PATH}/data__get_data", roles=["operator"])
    listed = await rest.call("GET", PATH, roles=["operator"])
    removed = await rest.call("DELETE", f"{PATH}/data__get_data", roles=["operator"])
    gone = await rest.call("GET", f"{PATH}/data__get_data", roles=["operator"])

    assert put.status_code == 200
    assert got.json() == put.json() == listed.json()["items"][0]
    assert put.json()["name"] == "data__get_data"
    assert put.json()["description"] == {"description": None, **WRITTEN}
    assert put.json()["origin"] == "api"
    assert (removed.status_code, removed.text, gone.status_code) == (204, "", 404)


async def test_the_name_of_a_tool_may_hold_a_slash(rest: Rest) -> None:
    await rest.call("PUT", f"{PATH}/files__a/b", {"short": "Slash."}, roles=["operator"])

    got = await rest.call("GET", f"{PATH}/files__a/b", roles=["operator"])

    assert got.json()["name"] == "files__a/b"


async def test_pages_go_on_where_the_last_one_ended(rest: Rest) -> None:
    for name in ("c", "a", "b"):
        await rest.call("PUT", f"{PATH}/{name}", {"short": "Some."}, roles=["operator"])
    first = (await rest.call("GET", f"{PATH}?limit=2", roles=["operator"])).json()
    second = (await rest.call("GET", f"{PATH}?limit=2&cursor={first['next']}", roles=["operator"])).json()

    assert [one["name"] for one in first["items"] + second["items"]] == ["a", "b", "c"]
    assert second["next"] is None


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"short": ""}, "/short"),
        ({"short": "two\nlines"}, "/short"),
        ({"examples": [{"input": 1}]}, "/examples/0/input"),
        ({"inputSchema": {}}, ""),
    ],
)
async def test_a_wrong_description_is_refused_with_the_place(rest: Rest, body: Any, pointer: str) -> None:
    answer = await rest.call("PUT", f"{PATH}/a", body, roles=["operator"])

    assert answer.status_code == 422
    assert answer.json()["pointer"] == pointer


@pytest.mark.parametrize("role", ["invoker", "auditor", "key-custodian"])
async def test_only_operators_may(rest: Rest, role: str) -> None:
    answers = [
        await rest.call("GET", PATH, roles=[role]),
        await rest.call("GET", f"{PATH}/a", roles=[role]),
        await rest.call("PUT", f"{PATH}/a", {"short": "Some."}, roles=[role]),
        await rest.call("DELETE", f"{PATH}/a", roles=[role]),
    ]

    assert [answer.status_code for answer in answers] == [403] * 4
