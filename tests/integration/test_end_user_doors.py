"""Mirrored groups and rules for end users at every door: REST, MCP in both revisions, the gateway."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Client, Response

from app.settings.auth import IssuerSettings
from tests.integration.service import Service, running_service
from tests.integration.test_doors import DISCOVER, INITIALIZE, MODERN
from tests.integration.test_token_doors import DOORS, INSIDE, MCP, ask
from tests.integration.token_issuer import AUDIENCE, Issuer, token_issuer

TEXT = "Please call John Doe."
Wired = tuple[Service, Issuer, "Desk"]


class Desk:
    """A service that names end users, and the identity provider that pushes them."""

    def __init__(self, service: Service, http: Client) -> None:
        self.service, self.http = service, http
        self.key = self._key("invoker", "restorer", "delegate")
        self.provisioner = self._key("provisioner")

    def _key(self, *roles: str) -> str:
        made = self.service.http.post("/api/v1/keys", json={"roles": [*roles]}).json()
        if made["state"] == "pending":
            self.service.http.post(f"/api/v1/keys/{made['id']}/approve")
        key: str = made["key"]
        return key

    def push(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = self.http.request(
            *(method, f"/scim/v2{path}"),
            content=json.dumps(body).encode(),
            headers={"authorization": f"Bearer {self.provisioner}", "content-type": "application/scim+json"},
        )
        assert answer.status_code in {200, 201, 204}, answer.text
        pushed: dict[str, Any] = answer.json() if answer.content else {}
        return pushed

    def members(self, group: str, action: str, *people: str) -> None:
        value = [{"value": person} for person in people]
        self.push(
            *("PATCH", f"/Groups/{group}"),
            {"Operations": [{"op": action, "path": "members", "value": value}]},
        )

    def invoke(self, door: str, user: str | None, name: str, text: str, scope: str) -> tuple[int, str]:
        """Return status and text of an invocation at a door, for an end user."""
        arguments = {"scope": scope}
        headers = {"authorization": f"Bearer {self.key}", **({"x-sluice-user": user} if user else {})}
        if door == "REST":
            body = {"context": [{"type": "text", "text": text}], "arguments": arguments}
            answer = self.http.post(f"/api/v1/middleware/{name}/invoke", json=body, headers=headers)
            return answer.status_code, answer.text
        params: dict[str, Any] = {"name": name, "context": [text], "arguments": arguments}
        called = {"jsonrpc": "2.0", "id": 2, "method": "middleware/invoke", "params": params}
        if door == "MCP 2025-11-25":
            opened = self.http.post("/mcp", json=INITIALIZE, headers={**MCP, **headers})
            if opened.status_code != 200:
                return opened.status_code, opened.text
            handshake = {
                "mcp-session-id": opened.headers["mcp-session-id"],
                "mcp-protocol-version": "2025-11-25",
            }
            answer = self.http.post("/mcp", json=called, headers={**MCP, **headers, **handshake})
        else:
            params |= DISCOVER["params"]  # type: ignore[arg-type]
            modern = {**MODERN, "mcp-method": "middleware/invoke"}
            answer = self.http.post("/mcp", json=called, headers={**MCP, **headers, **modern})
        failed = answer.json().get("error")
        return (403 if failed and failed["data"]["code"] == "forbidden" else answer.status_code), answer.text


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    """Yield a service whose issuer mirrors its people, the issuer, and a service that names end users."""
    with token_issuer() as issuer:
        settings = IssuerSettings.model_validate(
            {
                "issuer": issuer.url,
                "audience": [AUDIENCE],
                "rules": [
                    {"directory": {"groups": ["LLM users"]}, "tenant": "default", "roles": ["invoker"]}
                ],
                "tenants": ["default"],
                "provisioning": {"claim": "sub", "attribute": "externalId"},
            }
        )
        with (
            running_service(Path(tmp_path_factory.mktemp("people")), issuers=[settings]) as service,
            Client(base_url=f"http://127.0.0.1:{service.port}", timeout=30) as http,
        ):
            yield service, issuer, Desk(service, http)


@pytest.mark.parametrize("door", DOORS)
def test_a_member_of_a_mirrored_group_comes_in_and_is_out_with_the_group(wired: Wired, door: str) -> None:
    _, issuer, desk = wired
    name = re.sub(r"\W", "-", door)
    token = issuer.token(sub=name, groups=["LLM users"])  # what the token says of groups is another matter
    person = desk.push("POST", "/Users", {"userName": f"{name}@example.org", "externalId": name})["id"]
    assert ask(desk.http, door, token).status_code == 403
    group = desk.push("POST", "/Groups", {"displayName": "LLM users"})["id"]
    assert ask(desk.http, door, token).status_code == 403
    desk.members(group, "add", person)
    assert ask(desk.http, door, token).status_code == INSIDE.get(door, 200)
    desk.members(group, "remove", person)
    assert ask(desk.http, door, token).status_code == 403
    desk.members(group, "add", person)
    assert ask(desk.http, door, token).status_code == INSIDE.get(door, 200)
    desk.push("DELETE", f"/Groups/{group}")
    assert ask(desk.http, door, token).status_code == 403


RULES: list[dict[str, Any]] = [
    {"users": ["mallory@*"], "refuse": True},
    {"directory": {"groups": ["support"]}, "roles": ["invoker", "restorer"]},
    {"users": ["*@example.org"], "roles": ["invoker"]},
    {"users": ["nobody@*"], "roles": ["auditor"]},
]


@pytest.fixture
def bounded(wired: Wired) -> Iterator[Desk]:
    service, _, desk = wired
    end_users = {"provisioning": {"required": False}, "rules": RULES}
    assert service.put_policy({"identity": {"end_users": end_users}}).status_code == 200
    yield desk
    service.put_policy({}).raise_for_status()


def asked_for(desk: Desk, door: str, user: str | None) -> Response:
    return ask(desk.http, door, desk.key, **({"x-sluice-user": user} if user else {}))


@pytest.mark.parametrize("door", DOORS)
def test_nothing_is_done_for_who_is_refused_at_any_door(wired: Wired, bounded: Desk, door: str) -> None:
    inside = INSIDE.get(door, 200)
    for user, status in (
        ("mallory@example.org", 403),
        ("Mallory@Elsewhere.example", 403),
        ("ada@example.org", inside),
        ("somebody", inside),
        (None, inside),
    ):
        answer = asked_for(bounded, door, user)
        assert answer.status_code == status, (user, answer.text)
        assert "allory" not in answer.text
    # With no role that both have, the door stays shut as to a key without one.
    assert asked_for(bounded, door, "nobody@elsewhere.example").status_code == 403
    wired[0].put_policy({}).raise_for_status()
    assert asked_for(bounded, door, "mallory@example.org").status_code == inside


@pytest.mark.parametrize("door", ["REST", "MCP 2025-11-25", "MCP 2026-07-28"])
def test_a_service_restores_for_nobody_who_may_not(bounded: Desk, door: str) -> None:
    name = re.sub(r"\W", "-", door).lower()
    scope, user = f"desk-{name}", f"restored-{name}@example.org"  # other tests leave people of their own
    status, redacted = bounded.invoke(door, user, "pii_redaction", TEXT, scope)
    assert (status, "John" in redacted, "[PERSON_1]" in redacted) == (200, False, True), redacted

    def restored(whom: str | None) -> int:
        status, text = bounded.invoke(door, whom, "pii_restoration", "Call [PERSON_1].", scope)
        assert ("John Doe" in text) is (status == 200), text
        return status

    assert [restored(whom) for whom in (user, "somebody", None)] == [403, 200, 200]
    person = bounded.push("POST", "/Users", {"userName": user.upper()})["id"]
    assert restored(user) == 403
    group = bounded.push("POST", "/Groups", {"displayName": "Support", "members": [{"value": person}]})["id"]
    assert restored(user) == 200
    bounded.members(group, "remove", person)
    assert restored(user) == 403
    bounded.members(group, "add", person)
    assert restored(user) == 200
    bounded.push("DELETE", f"/Users/{person}")
    assert restored(user) == 403  # out, whatever the group says
    bounded.push("DELETE", f"/Groups/{group}")


def test_secrets_are_restored_where_a_list_names_service_and_end_user(wired: Wired) -> None:
    service, _, desk = wired
    key_id = desk.key.split("_")[1]
    rules = [{"users": ["ada@*"], "grants": ["support"]}, {"users": ["bob@*"], "grants": []}]
    scope = "desk-of-secrets"
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    status, redacted = desk.invoke("REST", None, "secret_redaction", f"token {secret}", scope)
    assert (status, secret in redacted) == (200, False), redacted
    handle = re.findall(r"\[[A-Z_]+_1\]", redacted)[0]

    def shown(*keys: str) -> list[bool]:
        policy = {"identity": {"end_users": {"rules": rules}}, "secrets": {"keys": [*keys]}}
        assert service.put_policy(policy).status_code == 200
        answers = [
            desk.invoke("REST", whom, "pii_restoration", f"token {handle}", scope)[1]
            for whom in (None, "cy@example.org", "ada@example.org", "bob@example.org")
        ]
        return [secret in answer for answer in answers]

    try:
        assert shown(key_id) == [True, True, False, False]
        assert shown("support") == [False, False, False, False]
        assert shown(key_id, "support") == [True, True, True, False]
    finally:
        service.put_policy({}).raise_for_status()


def test_a_custodian_sees_the_rules_for_end_users_and_the_groups_that_rules_name(bounded: Desk) -> None:
    shown = bounded.service.http.get("/api/v1/keys/identities").json()
    assert [rule["groups"] for issuer in shown["issuers"] for rule in issuer["rules"]] == [["LLM users"]]
    assert [
        (rule["users"], rule["groups"], rule["roles"], rule["refuse"]) for rule in shown["end_users"]
    ] == [
        (["mallory@*"], [], None, True),
        ([], ["support"], ["invoker", "restorer"], False),
        (["*@example.org"], [], ["invoker"], False),
        (["nobody@*"], [], ["auditor"], False),
    ]
    assert {rule["source"] for rule in shown["end_users"]} == {"policy"}
    other = bounded.http.get("/api/v1/keys/identities", headers={"authorization": f"Bearer {bounded.key}"})
    assert other.status_code == 403
