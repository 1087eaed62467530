"""Concerns over REST: shapes, places of faults, force, pages, preferences."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
from httpx2 import Response

from app.core.access import Role
from tests.integration.rest_app import Rest, open_rest

pytestmark = pytest.mark.in_turn("database_url")

CONCERNS = "/api/v1/concerns"
MAPPINGS = "/api/v1/concern-mappings"
SECURITY = {
    "name": "security",
    "description": "Security level required for the operation",
    "values": ["high", "medium", "low"],
    "default": "medium",
}
LATENCY = {
    "name": "latency",
    "description": "Seconds",
    "values": {"min": 1, "max": 60},
    "default": 10,
    "on_invalid": "clamp",
}
ENCRYPT = {"kind": "tool", "name": "crypto__encryptData", "concerns": {"security": "high"}}


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


async def call(rest: Rest, method: str, path: str, body: Any = None, **options: Any) -> Response:
    return await rest.call(method, path, body, roles=[Role.OPERATOR], **options)


async def test_a_concern_is_declared_read_replaced_and_deleted(rest: Rest) -> None:
    created = await call(rest, "PUT", f"{CONCERNS}/security", SECURITY)
    assert (created.status_code, created.json()["concern"]) == (201, {**SECURITY, "on_invalid": "ignore"})
    assert created.json()["origin"] == "api"
    changed = {**SECURITY, "default": "low", "on_invalid": "error"}
    replaced = await call(rest, "PUT", f"{CONCERNS}/security", changed)
    assert (replaced.status_code, replaced.json()["concern"]) == (200, changed)
    assert replaced.json()["created"] == created.json()["created"]
    assert (await call(rest, "GET", f"{CONCERNS}/security")).json() == replaced.json()
    assert (await call(rest, "DELETE", f"{CONCERNS}/security")).status_code == 204
    for method in ("GET", "DELETE"):
        assert (await call(rest, method, f"{CONCERNS}/security")).status_code == 404


async def test_concerns_and_mappings_are_listed_in_pages(rest: Rest) -> None:
    await call(rest, "PUT", f"{CONCERNS}/security", SECURITY)
    await call(rest, "PUT", f"{CONCERNS}/latency", LATENCY)
    for kind, name in (("tool", "b"), ("tool", "a"), ("prompt", "file:///x y?z#é")):
        await call(rest, "PUT", MAPPINGS, {"kind": kind, "name": name, "concerns": {}})

    async def names(path: str, member: str) -> list[str]:
        found, following = [], ""
        while following is not None:
            cursor = f"&cursor={quote(following)}" if following else ""
            answer = (await call(rest, "GET", f"{path}?limit=1{cursor}")).json()
            found += [one[member]["name"] for one in answer["items"]]
            following = answer["next"]
        return found

    assert await names(CONCERNS, "concern") == ["latency", "security"]
    assert await names(MAPPINGS, "mapping") == ["file:///x y?z#é", "a", "b"]
    assert (await call(rest, "GET", f"{MAPPINGS}?cursor=x")).status_code == 422


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({**SECURITY, "values": []}, "/values"),
        ({**SECURITY, "values": {"min": 2, "max": 1}}, "/values"),
        ({**SECURITY, "default": None}, "/default"),
        ({**SECURITY, "default": "extreme"}, ""),
        ({**SECURITY, "on_invalid": "clamp"}, ""),
        ({**SECURITY, "name": "other"}, "/name"),
        ({**SECURITY, "more": 1}, ""),
        ([], ""),
    ],
)
async def test_a_definition_that_makes_no_sense_is_422_with_a_pointer(
    rest: Rest, body: Any, pointer: str
) -> None:
    answer = await call(rest, "PUT", f"{CONCERNS}/security", body)
    assert (answer.status_code, answer.json()["pointer"]) == (422, pointer)


async def test_a_mapping_is_stored_read_by_its_name_and_deleted(rest: Rest) -> None:
    await call(rest, "PUT", f"{CONCERNS}/security", SECURITY)
    created = await call(rest, "PUT", MAPPINGS, ENCRYPT)
    assert (created.status_code, created.json()["mapping"]) == (201, ENCRYPT)
    assert (await call(rest, "PUT", MAPPINGS, ENCRYPT)).status_code == 200
    odd = {"kind": "resource", "name": "file:///a%20b/*?q=1#f", "concerns": {"security": ["high", "low"]}}
    await call(rest, "PUT", MAPPINGS, odd)
    path = f"{MAPPINGS}/resource/{quote(odd['name'], safe='/')}"
    assert (await call(rest, "GET", path)).json()["mapping"] == odd
    assert (await call(rest, "DELETE", path)).status_code == 204
    assert (await call(rest, "GET", path)).status_code == 404


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"concerns": {"cost": "minimal"}}, "/concerns/cost"),
        ({"concerns": {"security": "extreme"}}, "/concerns/security"),
        ({"concerns": {"security": ["high", "extreme"]}}, "/concerns/security/1"),
        ({"concerns": {"security": {"min": "high", "max": "extreme"}}}, "/concerns/security/max"),
        ({"concerns": {"security": {}}}, "/concerns/security"),
        ({"kind": "group"}, "/kind"),
    ],
)
async def test_a_mapping_outside_of_what_is_declared_is_422_with_a_pointer(
    rest: Rest, change: dict[str, Any], pointer: str
) -> None:
    await call(rest, "PUT", f"{CONCERNS}/security", SECURITY)
    answer = await call(rest, "PUT", MAPPINGS, {**ENCRYPT, **change})
    assert (answer.status_code, answer.json()["pointer"]) == (422, pointer)


async def test_what_mappings_use_goes_only_by_force(rest: Rest) -> None:
    await call(rest, "PUT", f"{CONCERNS}/security", SECURITY)
    await call(rest, "PUT", MAPPINGS, ENCRYPT)
    narrowed = {**SECURITY, "values": ["medium", "low"]}
    for method, body in (("PUT", narrowed), ("DELETE", None)):
        refused = await call(rest, method, f"{CONCERNS}/security", body)
        assert refused.status_code == 409
        assert refused.json()["details"] == {"mappings": 1, "named": ["tool crypto__encryptData"]}
    assert (await call(rest, "PUT", f"{CONCERNS}/security?force=true", narrowed)).status_code == 200
    mappings = (await call(rest, "GET", MAPPINGS)).json()["items"]
    assert [one["mapping"]["concerns"] for one in mappings] == [{}]


async def test_preferences_are_set_judged_and_removed(rest: Rest) -> None:
    await call(rest, "PUT", f"{CONCERNS}/security", SECURITY)
    await call(rest, "PUT", f"{CONCERNS}/latency", LATENCY)
    key_id = (await rest.key(Role.INVOKER)).split("_")[1]
    path = f"{CONCERNS}/preferences/{key_id}"
    wanted = {"security": "high", "latency": 3600, "colour": "red", "unset": None}
    own = await rest.call("PUT", path, {"concerns": wanted}, roles=[Role.INVOKER])
    assert own.status_code == 200
    assert own.json()["concerns"] == {"latency": 60, "security": "high"}
    assert [(one["concern"], one["code"]) for one in own.json()["warnings"]] == [
        ("latency", "clamped"),
        ("colour", "undeclared"),
        ("unset", "undeclared"),
    ]
    assert (await call(rest, "GET", path)).json()["concerns"] == {"latency": 60, "security": "high"}
    stopped = await call(rest, "PUT", path, {"concerns": {"security": None, "colour": None}})
    assert stopped.json()["concerns"] == {"security": None}
    assert (await call(rest, "GET", path)).json()["concerns"] == {"security": None}
    assert (await call(rest, "PUT", path, {"concerns": {}})).json()["concerns"] == {}
    strict = {**SECURITY, "on_invalid": "error"}
    await call(rest, "PUT", f"{CONCERNS}/security", strict)
    refused = await call(rest, "PUT", path, {"concerns": {"security": "extreme"}})
    assert (refused.status_code, refused.json()["pointer"]) == (422, "/concerns/security")
    assert "extreme" not in refused.text
