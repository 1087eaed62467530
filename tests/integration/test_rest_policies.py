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


LOOSER = {"default_arguments": {"pii_redaction": {"exclude": ["email"]}}}
MAIL = {"context": [{"type": "text", "text": "Mail jane.smith@example.com or call."}]}


async def preview(rest: Rest, body: Any, status: int = 200, role: str = "operator") -> Any:
    answer = await rest.call("POST", f"{PATH}/preview", body, roles=[role])
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_a_preview_says_what_a_change_would_do_to_a_sample_and_changes_nothing(rest: Rest) -> None:
    shown = await preview(rest, {"patch": LOOSER, "sample": MAIL})
    assert shown["version"] == 0
    assert shown["changes"] == [
        {
            "pointer": "/default_arguments/pii_redaction",
            "before": None,
            "after": {"exclude": ["email"]},
        }
    ]
    assert [each["pointer"] for each in shown["widened"]] == ["/default_arguments/pii_redaction/exclude"]
    now, then = shown["now"], shown["then"]
    assert (now["findings"], then["findings"]) == ({"EMAIL": 1}, {})
    assert now["content"][0]["text"] == "Mail [EMAIL_1] or call."
    assert then["content"] == MAIL["context"]
    assert now["steps"] == ["pii_redaction", "secret_redaction"]
    assert (await rest.call("GET", PATH, roles=["operator"])).json()["version"] == 0
    events = await rest.call("GET", "/api/v1/audit/events?action=policy.preview", roles=["auditor"])
    (event,) = events.json()["items"]
    assert event["details"] == {"version": 0, "door": "gateway", "now": 1, "then": 0}
    scopes = await rest.call("GET", "/api/v1/vault/scopes", roles=["operator", "restorer"])
    assert "preview-" not in scopes.text
    assert "jane" not in events.text


@pytest.mark.parametrize(
    ("policy", "sample", "now", "then"),
    [
        ({"gateway": {"mode": "observe"}}, {}, "[EMAIL_1]", "The gateway only observes"),
        (
            {"gateway": {"routes": [{"when": {"types": ["contact"]}, "refuse": True}]}},
            {},
            "[EMAIL_1]",
            "A route of the policy refuses it.",
        ),
        (
            {"gateway": {"routes": [{"when": {"types": ["contact"]}, "provider": "local"}]}},
            {},
            "[EMAIL_1]",
            "A route leads to the provider local.",
        ),
        (
            {"gateway": {"pipelines": [{"models": ["safe-*"], "outbound": []}]}},
            {"model": "safe-7"},
            "[EMAIL_1]",
            "jane.smith@example.com",
        ),
        (
            {"gateway": {"pipelines": [{"models": ["safe-*"], "outbound": []}]}},
            {"model": "other"},
            "[EMAIL_1]",
            "[EMAIL_1]",
        ),
        ({"allowed_middlewares": []}, {"door": "call"}, "[EMAIL_1]", "does not allow this middleware"),
        (
            {"fixed_arguments": {"pii_redaction": {"mode": "block"}}},
            {"door": "call"},
            "[EMAIL_1]",
            "",
        ),
        (
            {"passages": [{"servers": ["crm"], "results": [{"name": "pii_redaction"}]}]},
            {"door": "tool", "tool": "crm__find", "server": "crm"},
            "No tool hook looks at",
            "[EMAIL_1]",
        ),
        (
            {"passages": [{"servers": ["crm"], "results": [{"name": "pii_redaction"}]}]},
            {"door": "tool", "tool": "web__find", "server": "web"},
            "No tool hook looks at",
            "No tool hook looks at",
        ),
    ],
)
async def test_a_sample_comes_through_each_door(
    rest: Rest, policy: Any, sample: Any, now: str, then: str
) -> None:
    shown = await preview(rest, {"policy": policy, "sample": {**MAIL, **sample}})
    assert now in str(shown["now"])
    assert then in str(shown["then"])
    if then == "":
        assert shown["then"]["refused"]
        assert shown["then"]["content"] == []


async def test_a_preview_restores_nothing_and_refuses_what_put_refuses(rest: Rest) -> None:
    redacted = (await rest.invoke("pii_redaction", MAIL["context"], {"scope": "s"})).json()
    handle = redacted["content"][0]["text"]
    restoring = {"name": "pii_restoration", "arguments": {"scope": "s"}}
    policy = {"passages": [{"results": [restoring]}]}
    sample = {"context": [{"type": "text", "text": handle}], "door": "tool", "tool": "t", "server": "s"}
    shown = await preview(rest, {"policy": policy, "sample": sample})
    assert shown["then"]["refused"]
    assert "jane" not in str(shown)
    wrong = await preview(rest, {"policy": {"allowed_middlewares": ["nose"]}}, 422)
    assert wrong["pointer"] == "/allowed_middlewares/0"
    for body in ({}, {"policy": {}, "patch": {}}, {"patch": {"nose": 1}}):
        await preview(rest, body, 422)
    await preview(rest, {"patch": {}}, 403, "invoker")
    foreign = await rest.call("POST", f"{PATH}/preview?tenant=system", {"patch": {}}, roles=["operator"])
    assert foreign.status_code == 404


async def test_two_versions_are_compared_with_what_the_change_widened(rest: Rest) -> None:
    for number, policy in enumerate(({"limits": {"burst": 5}}, {"limits": {"burst": 7}}, LOOSER)):
        await change(rest, "PUT", policy, number)

    async def difference(query: str) -> Any:
        answer = await rest.call("GET", f"{PATH}/difference{query}", roles=["operator"])
        return answer.json() if answer.status_code == 200 else answer.status_code

    burst = await difference("?before=1&after=2")
    assert burst["changes"] == [{"pointer": "/limits/burst", "before": 5, "after": 7}]
    assert [each["pointer"] for each in burst["widened"]] == ["/limits/burst"]
    assert (await difference("?before=2&after=1"))["widened"] == []
    assert await difference("") == await difference("?before=2&after=3")
    assert [each["pointer"] for each in (await difference("?before=0&after=1"))["changes"]] == [
        "/limits/burst"
    ]
    assert await difference("?before=4&after=1") == 404
