"""Storing pipelines: what is refused, who may set what, versions, and what other processes hear."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from app.core.access import Role
from app.core.contracts.pipelines import PIPELINES_CHANGED
from app.core.events import Changed
from app.services.caching import ShortMemory
from app.store.changes import Changes
from app.store.database import Database
from tests.integration.pipelines_setup import PATH, events, open_pipelines, put, run
from tests.integration.rest_app import Rest

PENDING = SimpleNamespace(version=0)


@pytest.fixture
async def rest(sqlite_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rest]:
    async with open_pipelines(sqlite_database_url, monkeypatch) as opened:
        yield opened


@pytest.fixture
async def each(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rest]:
    """Return the same on each database in turn."""
    async with open_pipelines(database_url, monkeypatch) as opened:
        yield opened


@pytest.mark.parametrize(
    ("steps", "code", "pointer"),
    [
        ([{"name": "pii_redaction", "on_error": "skip"}], 422, "/steps/0/on_error"),
        (["nothing"], 422, "/steps/0/name"),
        (["to_model"], 422, "/steps/0/name"),
        ([{"name": "tell", "arguments": {"colour": 1}}], 422, "/steps/0/arguments/colour"),
        (["pii_redaction", "pii_restoration"], 422, "/steps/1/name"),
        ([], 422, "/steps"),
    ],
)
async def test_what_could_not_run_is_refused_when_it_is_saved(
    rest: Rest, steps: list[Any], code: int, pointer: str
) -> None:
    await put(rest, "tell")
    assert (await put(rest, *steps, code=code))["pointer"] == pointer
    assert (await put(rest, "tell", name="pii_redaction", code=409))["pointer"] == "/name"


async def test_the_address_names_a_pipeline_and_the_body_may(rest: Rest) -> None:
    steps = {"steps": [{"name": "tell"}]}
    for body in (steps, {**steps, "name": "to_model"}):
        made = await rest.call("PUT", f"{PATH}/to_model", body, roles=["operator"])
        assert (made.status_code, made.json()["pipeline"]["name"]) == (200, "to_model")
    refused = await rest.call("PUT", f"{PATH}/to_model", {**steps, "name": "other"}, roles=["operator"])
    assert (refused.status_code, refused.json()["pointer"]) == (422, "/name")


async def test_callers_choose_what_the_pipeline_and_the_policy_leave_open(rest: Rest) -> None:
    await put(rest, {"name": "pii_redaction", "arguments": {"exclude": ["ssn"]}}, "tell")
    listed = await rest.call("GET", "/api/v1/middleware", roles=["invoker"])
    (mine,) = [one for one in listed.json()["middleware"] if one["name"] == "to_model"]
    assert set(mine["inputSchema"]["properties"]) == {"scope", "strict", "dryRun", "pii_redaction", "tell"}
    assert "exclude" not in mine["inputSchema"]["properties"]["pii_redaction"]["properties"]
    made = await run(rest, ["Jane Smith 123-45-6789"], {"tell": {"text": "Look: "}})
    assert made["content"] == ["Look: [PERSON_1] 123-45-6789"]

    async def refused(arguments: Any) -> tuple[str, str]:
        answer = await rest.invoke("to_model", ["x"], arguments, roles=[Role.INVOKER])
        return answer.json()["code"], answer.json()["pointer"]

    at = "/arguments/pii_redaction"
    assert await refused({"pii_redaction": {"exclude": []}}) == ("blocked_by_policy", f"{at}/exclude")
    assert await refused({"pii_redaction": {"colour": 1}}) == ("invalid_arguments", at)
    assert await refused({"pii_redaction": 1}) == ("invalid_arguments", at)
    assert await refused({"timestamp_injector": {}}) == ("invalid_arguments", "/arguments")
    assert await refused({"scope": "a b"}) == ("invalid_arguments", "/arguments/scope")
    fixed = {"fixed_arguments": {"tell": {"text": "Fixed: "}, "pii_redaction": {"return_mapping": False}}}
    await rest.put_policy(fixed, roles=["operator"])
    assert (await run(rest, ["x"]))["content"] == ["Fixed: x"]
    assert await refused({"tell": {"text": "Mine"}}) == ("blocked_by_policy", "/arguments/tell/text")
    mapping = {"pii_redaction": {"returnMapping": True}}
    assert await refused(mapping) == ("blocked_by_policy", f"{at}/returnMapping")


async def test_the_policy_allows_a_pipeline_by_its_own_name(each: Rest) -> None:
    await put(each, "pii_redaction")
    policy = {"allowed_middlewares": ["to_model"]}
    assert (await each.put_policy(policy, roles=["operator"])).status_code == 200
    assert (await run(each, ["Jane Smith"]))["content"] == ["[PERSON_1]"]
    step = await each.invoke("pii_redaction", ["x"], roles=[Role.INVOKER])
    assert step.json()["code"] == "blocked_by_policy"
    policy = {"allowed_middlewares": ["pii_redaction"]}
    await each.put_policy(policy, roles=["operator"])
    refused = await each.invoke("to_model", ["x"], roles=[Role.INVOKER])
    assert refused.json()["code"] == "blocked_by_policy"
    unknown = {"allowed_middlewares": ["to_nobody"]}
    assert (await each.put_policy(unknown, roles=["operator"])).status_code == 422


async def test_versions_count_on_and_a_stale_change_is_refused(each: Rest) -> None:
    async def call(method: str, path: str = "", body: Any = None) -> Any:
        return await each.call(method, f"{PATH}/to_model{path}", body, roles=[Role.OPERATOR])

    assert (await put(each, "tell"))["version"] == 1
    body = {"name": "to_model", "steps": [{"name": "pii_redaction"}]}
    assert (await call("PUT", "?expected_version=0", body)).status_code == 409
    assert (await call("PUT", "?expected_version=1", body)).json()["version"] == 2
    assert (await call("DELETE", "?expected_version=1")).status_code == 409
    assert (await call("DELETE")).status_code == 204
    assert (await call("GET")).status_code == 404
    gone = await each.invoke("to_model", ["x"], roles=[Role.INVOKER])
    assert gone.json()["code"] == "not_found" and "to_model" not in gone.json()["details"]["known"]
    assert (await call("PUT", "?expected_version=0", body)).json()["version"] == 4
    versions = (await call("GET", "/versions?limit=2")).json()
    assert [(one["version"], one["state"]) for one in versions["items"]] == [(4, "active"), (3, "removed")]
    unknown = await each.call("GET", f"{PATH}/never_made/versions", roles=[Role.OPERATOR])
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    older = (await call("GET", f"/versions?cursor={versions['next']}")).json()
    assert [one["version"] for one in older["items"]] == [2, 1]
    listed = await each.call("GET", PATH, roles=[Role.OPERATOR])
    assert [one["pipeline"] for one in listed.json()["items"]] == [{**body, "phase": "outbound"}]
    refused = await each.call("PUT", f"{PATH}/to_model", body, roles=[Role.INVOKER])
    assert refused.status_code == 403
    stored = [event["details"] for event in await events(each, "pipelines.put") if event["outcome"] == "ok"]
    assert stored == [{"name": "to_model", "version": version, "steps": 1} for version in (4, 2, 1)]
    kept = [(one["action"], one["outcome"]) for one in await events(each, "pipelines.put")]
    assert kept.count(("pipelines.put", "ok")) == 3 and kept.count(("pipelines.put", "refused")) == 2


async def test_a_change_makes_one_tenant_s_pipelines_be_read_again(rest: Rest) -> None:
    await put(rest, "tell")
    service = rest.services.pipelines
    held = await service.of(rest.tenant)
    await service.memory.get("elsewhere", lambda _tenant: asyncio.sleep(0, held))
    service.changed(Changed(PIPELINES_CHANGED, "elsewhere"))
    assert service.memory.peek("elsewhere") is None
    assert service.memory.peek(rest.tenant) is not None, "the control: only that tenant's are forgotten"


async def test_the_examples_of_the_page_can_be_stored(rest: Rest) -> None:
    page = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text()
    examples = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    assert [one["name"] for one in examples] == ["to_model", "from_model"]
    for one in examples:
        answer = await rest.call("PUT", f"{PATH}/{one['name']}", one, roles=[Role.OPERATOR])
        assert answer.status_code == 200, answer.text


async def test_every_process_follows_a_change(database_url: str, each: Rest) -> None:
    second = Database(database_url)
    other = replace(each.services.pipelines, database=second, memory=ShortMemory(ttl_s=3600, size=10))
    source = each.vault.database if second.embedded else second
    changes = Changes(source)
    changes.subscribe(other.changed)
    async with changes.running():
        assert await other.of(each.tenant) == {}
        held = await put(each, "tell")
        await put(each, "pii_redaction")
        async with asyncio.timeout(20):
            while (await other.of(each.tenant)).get("to_model", PENDING).version != held["version"] + 1:
                await asyncio.sleep(0.02)
    await second.close()
