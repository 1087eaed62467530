"""Groups over REST: shapes, places of faults, documents in both formats, pages."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from httpx2 import Response

from app.core.access import Role
from tests.integration.rest_app import Rest, open_rest

pytestmark = pytest.mark.in_turn("database_url")

GROUPS = "/api/v1/groups"
EMAIL = {
    "name": "email",
    "title": "E-mail",
    "_meta": {"dev.example/owner": "mail team"},
    "members": [{"kind": "tool", "name": "mail__*"}],
}
WORK = {"name": "work", "members": [{"kind": "group", "name": "email"}]}


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


async def call(rest: Rest, method: str, path: str = "", body: Any = None, **options: Any) -> Response:
    return await rest.call(method, GROUPS + path, body, roles=[Role.OPERATOR], **options)


async def import_yaml(rest: Rest, text: str, query: str = "") -> Response:
    headers = {"content-type": "application/yaml; charset=utf-8"}
    return await call(rest, "POST", f"/import{query}", content=text.encode(), headers=headers)


async def test_a_group_is_created_read_replaced_and_deleted(rest: Rest) -> None:
    created = await call(rest, "PUT", "/email", EMAIL)
    assert (created.status_code, created.json()["group"], created.json()["warnings"]) == (201, EMAIL, [])
    assert (await call(rest, "PUT", "/work", WORK)).status_code == 201
    found = (await call(rest, "GET", "/email")).json()
    assert (found["group"], found["parents"], found["origin"]) == (EMAIL, ["work"], "api")
    assert (await call(rest, "PUT", "/email", {"name": "email"})).status_code == 200
    assert (await call(rest, "GET", "/email")).json()["group"] == {"name": "email", "members": []}
    assert (await call(rest, "DELETE", "/email")).status_code == 204
    gone = await call(rest, "GET", "/email")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")


async def test_a_name_with_spaces_stands_encoded_in_the_address(rest: Rest) -> None:
    made = await call(rest, "PUT", "/Pull%20Requests", {"name": "Pull Requests"})

    assert made.status_code == 201
    assert (await call(rest, "GET", "/Pull%20Requests")).json()["group"]["name"] == "Pull Requests"


async def test_members_are_changed_by_themselves(rest: Rest) -> None:
    await call(rest, "PUT", "/email", EMAIL)
    change = {"add": [{"kind": "prompt", "name": "mail__reply"}], "remove": EMAIL["members"]}

    answer = await call(rest, "PATCH", "/email/members", change)

    assert answer.json()["group"]["members"] == change["add"]


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({"name": "other"}, 422, "/name"),
        ({"name": "email", "colour": "red"}, 422, ""),
        ({"name": "email", "members": [{"kind": "group", "name": "email"}]}, 409, "/members"),
        ({"name": "email", "members": [{"kind": "group", "name": "none"}]}, 422, "/members/0/name"),
        (
            {"name": "email", "members": [{"kind": "tool", "name": "x", "server": "none"}]},
            422,
            "/members/0/server",
        ),
        ({"name": "email", "members": [{"kind": "toll", "name": "x"}]}, 422, "/members/0/kind"),
        ({"name": "email", "icons": [{"src": "file:///etc/passwd"}]}, 422, "/icons/0/src"),
    ],
)
async def test_a_fault_is_answered_with_its_place(rest: Rest, body: Any, status: int, pointer: str) -> None:
    answer = await call(rest, "PUT", "/email", body)

    assert (answer.status_code, answer.json()["pointer"]) == (status, pointer)
    assert (await call(rest, "GET")).json()["items"] == []


async def test_groups_are_listed_in_pages_by_name(rest: Rest) -> None:
    for name in ("c", "a", "b"):
        await call(rest, "PUT", f"/{name}", {"name": name})

    first = (await call(rest, "GET", "?limit=2")).json()
    assert [one["group"]["name"] for one in first["items"]] == ["a", "b"]
    second = (await call(rest, "GET", f"?limit=2&cursor={first['next']}")).json()
    assert ([one["group"]["name"] for one in second["items"]], second["next"]) == (["c"], None)


@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_an_export_goes_into_an_empty_tenant_and_comes_out_the_same(rest: Rest, form: str) -> None:
    for one in (EMAIL, WORK):
        await call(rest, "PUT", f"/{one['name']}", one)
    exported = await call(rest, "GET", f"/export?format={form}")
    assert exported.headers["content-type"].startswith(f"application/{form}")
    read = exported.json() if form == "json" else yaml.safe_load(exported.text)
    assert read == {"groups": [EMAIL, WORK]}
    for name in ("work", "email"):
        await call(rest, "DELETE", f"/{name}")

    headers = {"content-type": f"application/{form}"}
    answer = await call(rest, "POST", "/import", content=exported.content, headers=headers)

    assert answer.json() == {
        "created": ["email", "work"],
        "updated": [],
        "removed": [],
        "unchanged": [],
        "warnings": [],
    }
    assert (await call(rest, "GET", f"/export?format={form}")).text == exported.text


async def test_a_dry_run_shows_the_plan_and_prune_removes_the_rest(rest: Rest) -> None:
    await call(rest, "PUT", "/old", {"name": "old"})
    text = "groups:\n- name: new\n"
    plan = (await import_yaml(rest, text, "?dry_run=true&prune=true")).json()
    assert (plan["created"], plan["removed"]) == (["new"], ["old"])
    assert [one["group"]["name"] for one in (await call(rest, "GET")).json()["items"]] == ["old"]

    assert (await import_yaml(rest, text, "?prune=true")).json() == plan

    assert [one["group"]["name"] for one in (await call(rest, "GET")).json()["items"]] == ["new"]


@pytest.mark.parametrize(
    ("text", "status", "where"),
    [
        ("groups:\n- name: a\n  name: b\n", 400, {"line": 2, "column": 3}),
        ("a: &x [1]\nb: *x\n", 400, {"line": 2, "column": 4}),
        ("groups: !!python/object/apply:os.getcwd []\n", 400, {"line": 1, "column": 9}),
        ("groups: [", 400, None),
        ("", 422, ""),
        ("groups: {}\n", 422, "/groups"),
        ("groups:\n- name: a\n  members:\n  - {kind: tool}\n", 422, "/groups/0/members/0/name"),
        ("groups: []\nmcpServers: {}\n", 422, "/mcpServers"),
        ("groups:\n- {name: a, members: [{kind: group, name: z}]}\n", 422, "/groups/0/members/0/name"),
    ],
)
async def test_a_document_that_cannot_be_read_says_where(
    rest: Rest, text: str, status: int, where: Any
) -> None:
    answer = await import_yaml(rest, text)

    body = answer.json()
    assert answer.status_code == status, body
    assert where in (None, body.get("pointer"), body.get("details"))


async def test_an_import_takes_json_and_yaml_and_nothing_else(rest: Rest) -> None:
    answer = await call(
        rest, "POST", "/import", content=b"name,members", headers={"content-type": "text/csv"}
    )

    assert answer.status_code == 415


async def test_a_large_yaml_document_is_refused_by_its_size(rest: Rest) -> None:
    answer = await import_yaml(rest, "# " + "x" * (1024 * 1024) + "\ngroups: []\n")

    assert (answer.status_code, answer.json()["details"]["limit"]) == (413, "yaml_bytes")
