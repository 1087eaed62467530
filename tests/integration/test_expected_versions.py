"""A change names the version it is based on: that one and no other, be it older or newer, lets it pass."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.access import Role
from tests.integration.pipelines_setup import PATH, open_pipelines
from tests.integration.rest_app import Rest

STEPS = {"name": "to_model", "steps": [{"name": "timestamp_injector"}]}


@pytest.fixture
async def rest(sqlite_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rest]:
    async with open_pipelines(sqlite_database_url, monkeypatch) as opened:
        yield opened


async def change(rest: Rest, method: str, path: str, expected: int | None, body: Any = None) -> Any:
    address = path if "?" in path else f"{path}?"
    query = "" if expected is None else f"expected_version={expected}"
    return await rest.call(method, f"{address}{query}", body, roles=[Role.OPERATOR])


@pytest.mark.parametrize(
    "path", ["/api/v1/policies?", "/api/v1/policies?tenant={tenant}&", f"{PATH}/to_model?"]
)
async def test_only_the_very_version_that_holds_lets_a_change_pass(rest: Rest, path: str) -> None:
    path = path.format(tenant=rest.tenant)
    body = STEPS if path.startswith(PATH) else {}
    for held in range(3):
        for wrong in {0, 1, 2, 3, 100} - {held}:
            refused = await change(rest, "PUT", path, wrong, body)
            assert (refused.status_code, refused.json()["details"]) == (409, {"version": held}), wrong
        made = await change(rest, "PUT", path, held, body)
        assert (made.status_code, made.json()["version"]) == (200, held + 1)
    unsaid = await change(rest, "PUT", path, None, body)
    if path.startswith(PATH):
        assert unsaid.json()["version"] == 4
    else:
        assert (unsaid.status_code, unsaid.json()["code"]) == (428, "precondition_required")
        assert unsaid.json()["details"] == {"parameter": "expected_version", "version": 3}


async def test_only_the_very_version_that_holds_is_deleted(rest: Rest) -> None:
    path = f"{PATH}/to_model"
    for _ in range(2):
        await change(rest, "PUT", path, None, STEPS)
    for wrong in (0, 1, 3):
        assert (await change(rest, "DELETE", path, wrong)).status_code == 409
    assert (await change(rest, "DELETE", path, 2)).status_code == 204
    for wrong in (1, 2, 3, 4):
        refused = await change(rest, "PUT", path, wrong, STEPS)
        assert (refused.status_code, refused.json()["details"]) == (409, {"version": 0}), "none holds now"
    assert (await change(rest, "PUT", path, 0, STEPS)).json()["version"] == 4
