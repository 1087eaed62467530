"""Policies over REST: one family of paths, versions that must be named, patches, and what a change widens."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.access import SYSTEM_TENANT
from tests.integration.rest_app import Rest, open_rest

pytestmark = pytest.mark.in_turn("database_url")

PATH = "/api/v1/policies"


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


async def change(rest: Rest, method: str, body: Any, version: int, **options: Any) -> Any:
    path = f"{PATH}?expected_version={version}"
    answer = await rest.call(method, path, body, roles=["operator"], **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_change_must_name_the_version_on_which_it_is_based(rest: Rest) -> None:
    for method in ("PUT", "PATCH"):
        unsaid = await rest.call(method, PATH, {"scope_ttl_s": 60}, roles=["operator"])
        assert (unsaid.status_code, unsaid.json()["code"]) == (428, "precondition_required")
        assert "expected_version" in unsaid.json()["detail"]
        stale = await rest.call(method, f"{PATH}?expected_version=3", {}, roles=["operator"])
        assert (stale.status_code, stale.json()["details"]) == (409, {"version": 0})
        # The role comes first: nobody learns a version by asking wrongly.
        stranger = await rest.call(method, PATH, {}, roles=["invoker"])
        assert stranger.status_code == 403
    assert (await rest.call("GET", PATH, roles=["operator"])).json()["version"] == 0
    for gone in (f"{PATH}/{rest.tenant}", f"{PATH}/{rest.tenant}/versions"):
        assert (await rest.call("GET", gone, roles=["operator"])).status_code == 404


async def test_a_patch_changes_what_it_names_and_nothing_else(rest: Rest) -> None:
    whole = {
        "limits": {"burst": 50, "in_flight": 7},
        "fixed_arguments": {"pii_redaction": {"aggressiveness": "strict", "scope": "a"}},
        "grants": [{"groups": ["sales"]}],
    }
    await change(rest, "PUT", whole, 0)
    patch = {
        "limits": {"burst": 40},
        "fixed_arguments": {"pii_redaction": {"scope": None}},
        "grants": None,
        "scope_ttl_s": 600,
    }
    patched = await change(rest, "PATCH", patch, 1)
    policy = patched["policy"]
    assert (patched["version"], policy["limits"]["burst"], policy["limits"]["in_flight"]) == (2, 40, 7)
    assert policy["fixed_arguments"] == {"pii_redaction": {"aggressiveness": "strict"}}
    assert (policy["grants"], policy["scope_ttl_s"]) == (None, 600)
    assert {found["pointer"] for found in patched["widened"]} == {
        "/grants",
        "/fixed_arguments/pii_redaction/scope",
    }
    assert (await change(rest, "PATCH", {}, 2))["policy"] == policy
    stored = (await rest.call("GET", PATH, roles=["operator"])).json()
    assert (stored["version"], stored["policy"]) == (3, policy)
    events = await rest.call("GET", "/api/v1/audit/events?action=policy.patch", roles=["auditor"])
    details = [event["details"] for event in events.json()["items"]]
    assert details[1]["widened"] == "fixed_arguments,grants"
    assert "widened" not in details[0]


@pytest.mark.parametrize(
    ("patch", "pointer"),
    [
        ({"limits": {"burst": 0}}, "/limits/burst"),
        ({"limits": {"brust": 5}}, "/limits"),
        ({"Canary-4711": 5}, ""),
        ({"grants": [{"keys": "Canary-4711"}]}, "/grants/0/keys"),
        ({"allowed_middlewares": ["Canary-4711"]}, "/allowed_middlewares/0"),
        ({"passages": [{"restore_arguments": True}]}, "/passages/0"),
        ([{"op": "replace"}], ""),
    ],
)
async def test_a_patch_to_something_that_is_no_policy_is_pointed_at_and_not_made(
    rest: Rest, patch: Any, pointer: str
) -> None:
    answer = await rest.call("PATCH", f"{PATH}?expected_version=0", patch, roles=["operator"])
    assert (answer.status_code, answer.json()["pointer"]) == (422, pointer)
    assert "Canary" not in answer.text
    assert (await rest.call("GET", PATH, roles=["operator"])).json()["version"] == 0


async def test_an_operator_of_the_tenant_system_names_the_tenant_in_the_query(rest: Rest) -> None:
    async def system(method: str, path: str, body: Any = None) -> Any:
        return await rest.call(method, path, body, roles=["operator"], tenant=SYSTEM_TENANT)

    there = f"tenant={rest.tenant}"
    made = await system("PUT", f"{PATH}?{there}&expected_version=0", {"scope_ttl_s": 61})
    patched = await system("PATCH", f"{PATH}?{there}&expected_version=1", {"scope_ttl_s": 62})
    assert [made.status_code, patched.status_code] == [200, 200]
    versions = (await system("GET", f"{PATH}/versions?{there}")).json()["items"]
    assert [version["policy"]["scope_ttl_s"] for version in versions] == [62, 61]
    own = (await rest.call("GET", PATH, roles=["operator"])).json()
    assert (own["version"], own["policy"]["scope_ttl_s"]) == (2, 62)
    assert (await rest.call("GET", f"{PATH}?tenant=system", roles=["operator"])).status_code == 404
    assert (await system("GET", f"{PATH}?tenant=t-nobody")).status_code == 404


async def test_narrowing_widens_nothing_and_says_so(rest: Rest) -> None:
    narrow = {
        "allowed_middlewares": ["pii_redaction"],
        "fixed_arguments": {"pii_redaction": {"aggressiveness": "strict"}},
        "limits": {"burst": 5},
        "grants": [],
    }
    assert (await change(rest, "PUT", narrow, 0))["widened"] == []
    assert [found["pointer"] for found in (await change(rest, "PUT", {}, 1))["widened"]] == [
        "/allowed_middlewares",
        "/fixed_arguments/pii_redaction/aggressiveness",
        "/limits/burst",
        "/grants",
    ]


async def test_the_gateways_part_is_stored_patched_and_its_steps_are_checked(rest: Rest) -> None:
    route = {"when": {"types": ["health"]}, "provider": "local"}
    stored = await change(rest, "PUT", {"gateway": {"routes": [route], "sharedScopes": ["team-*"]}}, 0)
    gateway = stored["policy"]["gateway"]
    assert gateway["routes"] == [{**route, "model": None, "refuse": False}]
    assert (gateway["shared_scopes"], gateway["mode"]) == (["team-*"], "enforce")
    patched = await change(rest, "PATCH", {"gateway": {"mode": "observe", "sharedScopes": ["a"]}}, 1)
    assert patched["policy"]["gateway"]["shared_scopes"] == ["a"]
    assert {change["pointer"] for change in patched["widened"]} == {"/gateway/mode", "/gateway/shared_scopes"}
    for gateway, pointer in (
        ({"pipelines": [{"outbound": [{"name": "nope"}]}]}, "/gateway/pipelines/0/outbound/0/name"),
        (
            {"pipelines": [{}, {"inbound": [{"name": "pii_restoration", "arguments": {"x": 1}}]}]},
            "/gateway/pipelines/1/inbound/0/arguments/x",
        ),
        ({"routes": [{"when": {"types": ["health"]}}]}, "/gateway/routes/0"),
        ({"routes": [{**route, "refused": True}]}, "/gateway/routes/0"),
    ):
        refused = await rest.call(
            "PUT", f"{PATH}?expected_version=2", {"gateway": gateway}, roles=["operator"]
        )
        assert refused.status_code == 422, refused.text
        assert refused.json()["pointer"].startswith(pointer)
