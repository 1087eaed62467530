"""Tokens of issuers at every door: REST, MCP in both revisions, the gateway; and the attacks that come there."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Client, Response

from app.settings.auth import IssuerSettings
from tests.integration.service import Service, running_service
from tests.integration.test_doors import DISCOVER, INITIALIZE, MODERN
from tests.integration.token_issuer import AUDIENCE, Issuer, new_key, token_issuer

INVOKE = "/api/v1/middleware/timestamp_injector/invoke"
CALL = {"context": [{"type": "text", "text": "Ada Byron called."}]}
MCP = {"accept": "application/json, text/event-stream"}
DOORS: dict[str, tuple[str, str, Any, dict[str, str]]] = {
    "REST": ("POST", INVOKE, CALL, {}),
    "REST without a body": ("GET", "/api/v1/middleware", None, {}),
    "MCP 2025-11-25": ("POST", "/mcp", INITIALIZE, MCP),
    "MCP 2026-07-28": ("POST", "/mcp", DISCOVER, {**MCP, **MODERN}),
    "gateway": ("GET", "/openai/v1/models", None, {}),
}
INSIDE = {"gateway": 404}
"""What a door answers to whoever may enter, where that is not 200: no provider is configured."""
METADATA = "/.well-known/oauth-protected-resource"
ORIGIN = "https://sluice.example.com"
Trusted = tuple[Service, Issuer, Client]


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusted]:
    """Yield a service, an issuer that it trusts, and a client without a credential."""
    with token_issuer() as issuer, token_issuer() as other:
        other.key = issuer.key  # whoever signs: a token belongs to the issuer that it names
        rules = [
            {"when": {"scope": ["use", "see"]}, "tenant": "default", "roles": ["invoker", "restorer"]},
            {"when": {"scope": "use"}, "tenant": "default", "roles": ["invoker"]},
            {"when": {"groups": "auditors"}, "tenant": "default", "roles": ["auditor"]},
            {"when": {"groups": "llm-users"}, "tenant": "default", "roles": ["invoker"]},
            {"when": {"groups": "backends"}, "tenant": "default", "roles": ["invoker", "delegate"]},
            {
                "when": {"groups": "far"},
                "tenant": "default",
                "roles": ["invoker"],
                "cidrs": ["203.0.113.0/24"],
            },
            {"when": {"groups": "nobody"}, "tenant": "no-such-tenant", "roles": ["invoker"]},
            {"when": {"groups": "others"}, "tenant": "other", "roles": ["invoker", "operator"]},
        ]
        settings = IssuerSettings.model_validate(
            {
                "issuer": issuer.url,
                "audience": [AUDIENCE, f"{ORIGIN}/api/v1"],
                "rules": rules,
                "tenants": ["other"],
            }
        )
        folder = Path(tmp_path_factory.mktemp("tokens"))
        with running_service(folder, issuers=[settings]) as service:
            service.http.post("/api/v1/tenants", json={"name": "other"}).raise_for_status()
            with Client(base_url=f"http://127.0.0.1:{service.port}", timeout=30) as http:
                yield service, issuer, http


def ask(http: Client, door: str, token: str | None, **headers: str) -> Response:
    method, path, body, own = DOORS[door]
    sent = {**own, **headers, **({"authorization": f"Bearer {token}"} if token else {})}
    return http.request(method, path, json=body, headers=sent)


def challenge(answer: Response) -> dict[str, str]:
    """Return the parameters of the one challenge of an answer."""
    scheme, _, parameters = answer.headers["www-authenticate"].partition(" ")
    assert scheme == "Bearer"
    pairs = (part.partition("=") for part in parameters.split(", "))
    return {name: json.loads(value) for name, _, value in pairs}


@pytest.mark.parametrize("door", DOORS)
def test_a_token_opens_every_door_beside_keys(trusted: Trusted, door: str) -> None:
    service, issuer, http = trusted
    for credential in (issuer.token(), service.key):
        assert ask(http, door, credential).status_code == INSIDE.get(door, 200)
    assert ask(http, door, None).status_code == 401


@pytest.mark.parametrize("door", DOORS)
def test_who_has_no_valid_token_is_told_where_to_get_one(trusted: Trusted, door: str) -> None:
    _, issuer, http = trusted
    path = DOORS[door][1]
    expected = {"realm": "sluice", "scope": "use"}
    known = {"/mcp": METADATA + "/mcp", "/api": METADATA + "/api/v1"}.get(path[:4], METADATA)
    expected["resource_metadata"] = ORIGIN + known
    bare = ask(http, door, None)
    assert (bare.status_code, challenge(bare)) == (401, expected)
    wrong = ask(http, door, issuer.token(aud="https://other.example.com"))
    assert (wrong.status_code, challenge(wrong)) == (401, {**expected, "error": "invalid_token"})


def test_the_metadata_names_each_resource_and_its_issuers(trusted: Trusted) -> None:
    _, issuer, http = trusted
    expected = {
        "authorization_servers": [issuer.url],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["use", "see"],
        "resource_name": "Sluice",
    }
    for path, resource in (
        ("", f"{ORIGIN}/api/v1"),
        ("/mcp", AUDIENCE),
        ("/mcp/groups/any", AUDIENCE),
        ("/api/v1", f"{ORIGIN}/api/v1"),
    ):
        answer = http.get(METADATA + path)
        assert (answer.status_code, answer.json()) == (200, {"resource": resource, **expected})
    assert http.get(METADATA + "/openai").status_code == 404
    assert http.get(METADATA + "/mcpx").status_code == 404


ATTACKS: dict[str, Callable[[Issuer], str]] = {
    "wrong audience": lambda issuer: issuer.token(aud="https://other.example.com/mcp"),
    "foreign issuer": lambda issuer: issuer.token(iss="https://evil.example.com"),
    "no issuer": lambda issuer: issuer.token(iss=None),
    "expired": lambda issuer: issuer.token(exp=int(time.time()) - 60),
    "not yet": lambda issuer: issuer.token(nbf=int(time.time()) + 600),
    "of tomorrow": lambda issuer: issuer.token(iat=int(time.time()) + 600),
    "too old": lambda issuer: issuer.token(iat=int(time.time()) - 3600, exp=int(time.time()) + 3600),
    "foreign key": lambda issuer: issuer.token(key=new_key("first")),
    "unknown key": lambda issuer: issuer.token(key=new_key("../../dev/null")),
    "own key set": lambda issuer: issuer.token(
        key=new_key("first"), header={"jku": "http://127.0.0.1:9/keys", "x5u": "http://127.0.0.1:9/chain"}
    ),
    "no signature": lambda issuer: issuer.token().rpartition(".")[0] + ".",
    "changed claims": lambda issuer: "a".join(issuer.token().rsplit("e", 1)),
    "tenant unknown": lambda issuer: issuer.token(groups=["nobody"]),
    "from elsewhere": lambda issuer: issuer.token(groups=["far"]),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_token_that_is_not_for_us_opens_no_door(trusted: Trusted, attack: str) -> None:
    _, issuer, http = trusted
    token = ATTACKS[attack](issuer)
    for door in DOORS:
        answer = ask(http, door, token)
        assert answer.status_code == 401, (door, answer.text)
        assert token not in answer.text


def test_a_valid_token_that_no_rule_maps_is_forbidden(trusted: Trusted) -> None:
    _, issuer, http = trusted
    for claims in ({"groups": ["strangers"]}, {"groups": None}, {"groups": {"llm-users": True}}):
        for door in DOORS:
            answer = ask(http, door, issuer.token(**claims))
            assert answer.status_code == 403, (door, answer.text)
            assert challenge(answer)["error"] == "insufficient_scope"


def test_a_token_in_the_address_opens_nothing_and_is_refused_beside_a_header(trusted: Trusted) -> None:
    service, issuer, http = trusted
    token = issuer.token(sub="in-the-address")
    for method, path, body, own in DOORS.values():
        alone = http.request(method, path, params={"access_token": token}, json=body, headers=own)
        assert alone.status_code in {400, 401, 422}, path
        headers = {**own, "authorization": f"Bearer {token}"}
        both = http.request(method, path, params={"access_token": token}, json=body, headers=headers)
        assert both.status_code in {400, 422}, (path, both.text)
        assert token not in alone.text + both.text
    assert token not in service.log.getvalue()


def test_a_role_that_is_missing_is_told_with_all_scopes_at_once(trusted: Trusted) -> None:
    service, issuer, http = trusted
    body = {"context": [{"type": "text", "text": "Call [PERSON_1]."}], "arguments": {"scope": "s"}}
    path = "/api/v1/middleware/pii_restoration/invoke"
    for token, status in ((issuer.token(scope="use"), 403), (issuer.token(scope="see use"), 200)):
        answer = http.post(path, json=body, headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == status, answer.text
    poor = http.post(path, json=body, headers={"authorization": f"Bearer {issuer.token(scope='use')}"})
    assert challenge(poor) == {
        "realm": "sluice",
        "error": "insufficient_scope",
        "scope": "use see",
        "resource_metadata": f"{ORIGIN}{METADATA}/api/v1",
    }
    # Before its body is read, and for a key as ever.
    audit = http.post("/api/v1/keys", json={}, headers={"authorization": f"Bearer {issuer.token()}"})
    assert audit.status_code == 403 and "www-authenticate" not in audit.headers
    key = service.http.post("/api/v1/keys", json={"roles": ["invoker"]}).json()["key"]
    plain = http.post("/api/v1/keys", json={}, headers={"authorization": f"Bearer {key}"})
    assert plain.status_code == 403 and "www-authenticate" not in plain.headers


def test_a_token_of_one_tenant_sees_nothing_of_another(trusted: Trusted) -> None:
    service, issuer, http = trusted
    version = service.http.get("/api/v1/policies").json()["version"]
    policy = {"limits": {"burst": 299}}
    service.http.put(f"/api/v1/policies?expected_version={version}", json=policy).raise_for_status()
    headers = {"authorization": f"Bearer {issuer.token(groups=['others'])}"}
    assert http.get("/api/v1/policies", headers=headers).json()["policy"]["limits"]["burst"] == 300
    assert http.get("/api/v1/policies?tenant=default", headers=headers).status_code in {403, 404}
    assert http.get("/api/v1/audit/events", headers=headers).status_code == 403


def test_the_subject_is_on_record_as_a_digest_and_nowhere_else(trusted: Trusted) -> None:
    service, issuer, http = trusted
    for subject in ("grace-of-payroll", "grace-of-payroll", "linus-of-sales"):
        assert ask(http, "REST", issuer.token(sub=subject)).status_code == 200
    auditor = {"authorization": f"Bearer {issuer.token(groups=['auditors'])}"}
    path = "/api/v1/audit/events?action=middleware.invoke&limit=3"
    linus, grace, again = http.get(path, headers=auditor).json()["items"]
    assert grace["actor"] == again["actor"] != linus["actor"]
    assert grace["actor"].startswith("sub-") and grace["on_behalf_of"] not in {None, linus["on_behalf_of"]}
    by_user = http.get(path + "&user=grace-of-payroll", headers=auditor).json()["items"]
    assert [event["id"] for event in by_user] == [grace["id"], again["id"]]
    assert "payroll" not in json.dumps([linus, grace, by_user])
    written = b"".join(file.read_bytes() for file in service.directory.iterdir() if file.is_file())
    assert b"payroll" not in written and "payroll" not in service.log.getvalue()


def test_a_service_with_a_token_may_name_an_end_user_where_its_rule_allows_it(trusted: Trusted) -> None:
    _, issuer, http = trusted
    named = {"x-sluice-user": "ada"}
    assert ask(http, "REST", issuer.token(groups=["backends"]), **named).status_code == 200
    assert ask(http, "REST", issuer.token(), **named).status_code == 403


def test_a_token_of_ours_never_goes_to_a_provider(trusted: Trusted) -> None:
    service, issuer, http = trusted
    answer = http.post(
        "/openai/v1/chat/completions",
        json={"model": "gpt-5-mini", "messages": []},
        headers={"x-sluice-key": service.key, "authorization": f"Bearer {issuer.token()}"},
    )
    assert answer.status_code == 400 and "never sent to a provider" in answer.text
    own = ask(http, "gateway", None, **{"x-sluice-key": issuer.token()})
    assert own.status_code == INSIDE["gateway"]


def test_a_session_goes_on_with_a_new_token_of_the_same_person_alone(trusted: Trusted) -> None:
    _, issuer, http = trusted
    opened = ask(http, "MCP 2025-11-25", issuer.token(sub="linus"))
    headers = {
        **MCP,
        "mcp-session-id": opened.headers["mcp-session-id"],
        "mcp-protocol-version": "2025-11-25",
    }
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    statuses = [
        http.post("/mcp", json=ping, headers={**headers, "authorization": f"Bearer {token}"}).status_code
        for token in (issuer.token(sub="linus", jti="new"), issuer.token(sub="grace"))
    ]
    assert statuses == [200, 404]


def test_the_policy_of_a_tenant_maps_tokens_to_it(trusted: Trusted) -> None:
    service, issuer, http = trusted
    token = issuer.token(groups=["contractors"])
    assert {ask(http, door, token).status_code for door in DOORS} == {403}
    rule = {"issuer": issuer.url, "when": {"groups": "contractors"}, "roles": ["invoker", "auditor"]}
    path = "/api/v1/policies?tenant=other"
    version = service.http.get(path).json()["version"]
    change = service.http.patch(f"{path}&expected_version={version}", json={"identity": {"rules": [rule]}})
    assert [entry["pointer"] for entry in change.json()["widened"]] == ["/identity/rules/0"]
    for door in DOORS:
        assert ask(http, door, token).status_code == INSIDE.get(door, 200), door
    for roles in (["operator"], ["restorer"], ["key-custodian"]):
        wrong = {"identity": {"rules": [{**rule, "roles": roles}]}}
        refused = service.http.patch(f"{path}&expected_version={version + 1}", json=wrong)
        assert (refused.status_code, "only the settings" in refused.text) == (422, True)
    for nothing in ([], ""):
        everybody = {"identity": {"rules": [{**rule, "when": {"groups": nothing}}]}}
        refused = service.http.patch(f"{path}&expected_version={version + 1}", json=everybody)
        assert (refused.status_code, "/identity/rules/0/when" in refused.text) == (422, True), nothing
    operator = {"authorization": f"Bearer {issuer.token(groups=['others'])}"}
    own = f"/api/v1/policies?expected_version={version + 1}"
    assert http.patch(own, json={"identity": {"rules": []}}, headers=operator).status_code == 403
    service.http.patch(f"{path}&expected_version={version + 1}", json={"identity": None}).raise_for_status()
    assert {ask(http, door, token).status_code for door in DOORS} == {403}


def test_a_disabled_tenant_takes_no_token_at_once(trusted: Trusted) -> None:
    service, issuer, http = trusted
    token = issuer.token(groups=["others"])
    assert ask(http, "REST", token).status_code == 200
    service.http.patch("/api/v1/tenants/other", json={"disabled": True}).raise_for_status()
    assert ask(http, "REST", token).status_code == 401
    service.http.patch("/api/v1/tenants/other", json={"disabled": False}).raise_for_status()
    assert ask(http, "REST", token).status_code == 200
