"""Issuers that operators of the tenant system add over REST: one form, sealed secrets, and what they may not give."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy import make_url, text

from app.core.access import SYSTEM_TENANT, Role
from app.core.contracts.issuers import IssuerSettings
from app.core.identities import issuer_id
from app.services.access.identity.stored_issuers import _ALL
from tests.factories import with_schema
from tests.integration.canaries import files_of, hits
from tests.integration.rest_app import Rest, open_rest
from tests.integration.token_issuer import AUDIENCE, SECRET, Issuer, send, token_issuer

pytestmark = pytest.mark.in_turn("database_url")

ISSUERS = "/api/v1/issuers"
OF_SETTINGS = "https://settings.example.com"
BOTH = ("operator", "key-custodian")
CONSOLE = {
    "clientId": "console",
    "clientSecret": "c4nary-of-the-console",
    "redirectUri": "https://sluice.example.com/console/sign-in/return",
}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    own = IssuerSettings.model_validate({"issuer": OF_SETTINGS, "audience": [AUDIENCE], "tenants": ["acme"]})
    async with open_rest(database_url, issuers=[own]) as opened:
        yield opened
        async with opened.vault.database.system_transaction() as tx:
            await tx.execute(text("DELETE FROM trusted_issuer"))


async def call(rest: Rest, method: str, path: str = "", body: Any = None, **options: Any) -> Response:
    return await rest.call(
        method, ISSUERS + path, body, **{"roles": BOTH, "tenant": SYSTEM_TENANT, **options}
    )


def entry(rest: Rest, issuer: Issuer, **changed: Any) -> dict[str, Any]:
    rule = {"when": {"groups": "llm-users"}, "tenant": rest.tenant, "roles": ["invoker"]}
    return {"issuer": issuer.url, "audience": [AUDIENCE], "rules": [rule], **changed}


def introspection(**changed: Any) -> dict[str, Any]:
    return {"clientId": "sluice", "clientSecret": SECRET, "tokens": ["signed"], **changed}


async def events(rest: Rest, action: str) -> list[dict[str, Any]]:
    path = f"/api/v1/audit/events?action={action}&limit=1000"
    answer = await rest.call("GET", path, roles=["auditor"], tenant=SYSTEM_TENANT)
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_an_issuer_is_added_read_changed_and_removed(rest: Rest, issuer: Issuer) -> None:
    added = await call(rest, "POST", "", entry(rest, issuer))
    assert added.status_code == 201, added.text
    shown = added.json()
    assert (shown["id"], shown["source"], shown["version"]) == (issuer_id(issuer.url), "stored", 1)
    assert shown["settings"]["maxTokenAge"] == 600 and shown["state"]["keys"] == 0
    path = f"/{shown['id']}"
    assert (await call(rest, "GET", path)).json() == shown
    listed = (await call(rest, "GET")).json()["items"]
    assert [(one["issuer"], one["source"]) for one in listed] == [
        (issuer.url, "stored"),
        (OF_SETTINGS, "settings"),
    ]
    paged = (await call(rest, "GET", "?limit=1")).json()
    following = (await call(rest, "GET", f"?limit=1&cursor={paged['next']}")).json()
    assert [*paged["items"], *following["items"]] == listed and following["next"] is None
    again = await call(rest, "POST", "", entry(rest, issuer))
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    changed = {**shown["settings"], "maxTokenAge": 60}
    missing = await call(rest, "PUT", path, changed)
    assert (missing.status_code, missing.json()["details"]["version"]) == (428, 1)
    stored = await call(rest, "PUT", f"{path}?expected_version=1", changed)
    assert (stored.status_code, stored.json()["version"]) == (200, 2), stored.text
    assert stored.json()["settings"]["maxTokenAge"] == 60
    late = await call(rest, "PUT", f"{path}?expected_version=1", changed)
    assert (late.status_code, late.json()["details"]["version"]) == (409, 2)
    renamed = await call(
        rest, "PUT", f"{path}?expected_version=2", {**changed, "issuer": "https://x.example"}
    )
    assert (renamed.status_code, renamed.json()["pointer"]) == (422, "/issuer")
    assert (await call(rest, "DELETE", path)).status_code == 428
    assert (await call(rest, "DELETE", f"{path}?expected_version=2")).status_code == 204
    assert (await call(rest, "GET", path)).status_code == 404
    done = [await events(rest, f"issuers.{act}") for act in ("add", "put", "remove")]
    told = [next(event["details"] for event in listed if event["outcome"] == "ok") for listed in done]
    assert told == [
        {"issuer": issuer.url, "version": 1, "rules": 1},
        {"issuer": issuer.url, "version": 2, "changed": "maxTokenAge", "rules": 1},
        {"issuer": issuer.url, "version": 2},
    ]


async def test_a_token_opens_the_door_until_its_issuer_is_removed(rest: Rest, issuer: Issuer) -> None:
    bearer = {"authorization": f"Bearer {issuer.token()}"}

    async def status() -> int:
        return (await rest.http.get("/api/v1/middleware", headers=bearer)).status_code

    assert await status() == 401
    await call(rest, "POST", "", entry(rest, issuer))
    assert await status() == 200
    path = f"/{issuer_id(issuer.url)}"
    state = (await call(rest, "GET", path)).json()["state"]
    assert (state["keys"], state["error"]) == (1, None) and state["fetched"] >= state["asked"]
    rule = {"when": {"groups": "nobody"}, "tenant": rest.tenant, "roles": ["invoker"]}
    asked = issuer.asked["/keys"]
    await call(rest, "PUT", f"{path}?expected_version=1", entry(rest, issuer, rules=[rule]))
    assert await status() == 403
    issuer.answer = lambda request: send(request, b"{}", status=500)
    await call(rest, "PUT", f"{path}?expected_version=2", entry(rest, issuer))
    assert await status() == 200 and issuer.asked["/keys"] == asked, "known keys serve on after a change"
    await call(rest, "DELETE", f"{path}?expected_version=3")
    assert await status() == 401


async def test_a_secret_under_the_name_of_the_settings_counts_and_under_both_is_refused(
    rest: Rest, issuer: Issuer
) -> None:
    own = introspection()
    by_field = {"client_id": own["clientId"], "client_secret": own["clientSecret"]}
    console = {"client_secret" if name == "clientSecret" else name: value for name, value in CONSOLE.items()}
    both = {**own, "client_secret": "another"}
    refused = await call(rest, "POST", "", entry(rest, issuer, introspection=both))
    assert refused.status_code == 422
    assert "clientSecret is there twice" in refused.json()["detail"]
    assert "another" not in refused.text
    added = await call(rest, "POST", "", entry(rest, issuer, introspection=by_field, console=console))
    assert added.json()["secrets"] == ["introspection", "console"]


async def test_who_asks_when_another_has_just_read_the_issuers_trusts_what_was_read(
    rest: Rest, issuer: Issuer
) -> None:
    tokens = rest.services.authenticator.tokens
    assert tokens is not None and tokens.stored is not None
    await call(rest, "POST", "", entry(rest, issuer))
    await tokens.ready()
    assert tokens.keys_of(issuer.url) is not None
    await call(rest, "DELETE", f"/{issuer_id(issuer.url)}?expected_version=1")
    # The other one's turn comes later: so far only the memory knows.
    await tokens.stored.memory.get(_ALL, tokens.stored._load)
    await tokens.ready()
    assert tokens.keys_of(issuer.url) is None


async def test_secrets_are_sealed_and_never_shown(rest: Rest, issuer: Issuer, database_url: str) -> None:
    body = entry(rest, issuer, introspection=introspection(), console=CONSOLE)
    added = await call(rest, "POST", "", body)
    shown, path = added.json(), f"/{issuer_id(issuer.url)}"
    assert shown["secrets"] == ["introspection", "console"]
    assert shown["settings"]["introspection"]["clientSecret"] is None
    stored = await call(rest, "PUT", f"{path}?expected_version=1", shown["settings"])
    assert stored.json()["secrets"] == ["introspection", "console"], "what is not repeated stays"
    issuer.states[token := issuer.token()] = {"active": True, **issuer.claims()}
    bearer = {"authorization": f"Bearer {token}"}
    assert (await rest.http.get("/api/v1/middleware", headers=bearer)).status_code == 200
    elsewhere = {**shown["settings"]["introspection"], "uri": "https://elsewhere.example.com/introspect"}
    moved = await call(
        rest, "PUT", f"{path}?expected_version=2", {**shown["settings"], "introspection": elsewhere}
    )
    assert (moved.status_code, moved.json()["pointer"]) == (422, "/introspection/clientSecret")
    public = {**shown["settings"], "console": {**CONSOLE, "clientSecret": ""}}
    assert (await call(rest, "PUT", f"{path}?expected_version=2", public)).json()["secrets"] == [
        "introspection"
    ]
    answers = [added, stored, await call(rest, "GET", path), await call(rest, "GET")]
    record = json.dumps([await events(rest, f"issuers.{act}") for act in ("add", "put")])
    for secret in (SECRET, CONSOLE["clientSecret"]):
        assert not any(secret in answer.text for answer in answers) and secret not in record
    if database_url.startswith("sqlite"):
        assert not hits(
            files_of(Path(make_url(with_schema(database_url)).database or "").parent),
            [SECRET, CONSOLE["clientSecret"]],
        )


REFUSED: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "restorer": ({"roles": ["invoker", "restorer"]}, 422, "/rules/0/roles", "Only the settings"),
    "operator": ({"roles": ["operator"]}, 422, "/rules/0/roles", "Only the settings"),
    "key custodian": ({"roles": ["key-custodian"]}, 422, "/rules/0/roles", "Only the settings"),
    "union": ({"roles": ["operator", "auditor"]}, 422, "/rules/0/roles", "auditor + operator"),
    "system": ({"tenant": "system"}, 422, "/rules/0/tenant", "only the settings"),
    "no role": ({"roles": []}, 422, "/rules/0/roles", "at least 1"),
    "no claim": ({"when": {}}, 422, "/rules/0", "it would map everybody"),
}


@pytest.mark.parametrize("fault", REFUSED)
async def test_a_stored_rule_gives_no_more_than_one_person_may_grant(
    rest: Rest, issuer: Issuer, fault: str
) -> None:
    changed, status, pointer, words = REFUSED[fault]
    rule = {"when": {"groups": "llm-users"}, "tenant": rest.tenant, "roles": ["invoker"], **changed}
    answer = await call(rest, "POST", "", entry(rest, issuer, rules=[rule]))
    assert (answer.status_code, answer.json()["pointer"]) == (status, pointer)
    assert words in answer.json()["detail"], answer.text
    assert [one["issuer"] for one in (await call(rest, "GET")).json()["items"]] == [OF_SETTINGS]


async def test_what_an_entry_may_not_be(rest: Rest, issuer: Issuer) -> None:
    async def refused(status: int, pointer: str | None, **changed: Any) -> str:
        answer = await call(rest, "POST", "", {**entry(rest, issuer), **changed})
        assert (answer.status_code, answer.json().get("pointer")) == (status, pointer), answer.text
        detail: str = answer.json()["detail"]
        return detail

    assert "stands in the settings" in await refused(409, "/issuer", issuer=OF_SETTINGS)
    await refused(422, "/tenants/1", tenants=["acme", "system"])
    await refused(422, "/issuer", issuer="http://login.example.com")
    await refused(422, "/issuer", issuer="https://" + "a" * 500 + ".example.com")
    await refused(422, "/issuer", jwksUri="http://10.0.0.1/keys")
    await refused(422, "/algorithms/0", algorithms=["none"])
    assert "unknown member" in await refused(422, "", secrets={})
    assert SECRET not in await refused(
        422, "/introspection/tokens/0", introspection=introspection(tokens=[SECRET])
    )
    opaque = entry(rest, issuer, introspection=introspection(tokens=["opaque"]))
    assert (await call(rest, "POST", "", opaque)).status_code == 201
    second = {**opaque, "issuer": "https://second.example.com"}
    answer = await call(rest, "POST", "", second)
    assert (answer.status_code, answer.json()["pointer"]) == (409, "/introspection/tokens")


async def test_an_issuer_of_the_settings_is_shown_and_not_changed(rest: Rest) -> None:
    path = f"/{issuer_id(OF_SETTINGS)}"
    shown = (await call(rest, "GET", path)).json()
    assert (shown["source"], shown["version"]) == ("settings", None)
    for method, body in (("PUT", shown["settings"]), ("DELETE", None)):
        answer = await call(rest, method, f"{path}?expected_version=1", body)
        assert answer.status_code == 409 and "stands in the settings" in answer.json()["detail"]


async def test_who_may_change_issuers(rest: Rest, issuer: Issuer) -> None:
    body, path = entry(rest, issuer), f"/{issuer_id(issuer.url)}"
    for roles, tenant in (
        (["operator"], SYSTEM_TENANT),
        (["key-custodian"], SYSTEM_TENANT),
        (BOTH, rest.tenant),
    ):
        answer = await call(rest, "POST", "", body, roles=roles, tenant=tenant)
        assert answer.status_code == 403, (roles, tenant)
    assert (await call(rest, "POST", "", body)).status_code == 201
    assert (
        await call(rest, "PUT", f"{path}?expected_version=1", body, roles=["operator"])
    ).status_code == 403
    for method, ending in (("GET", ""), ("POST", "/test"), ("DELETE", "?expected_version=1")):
        assert (await call(rest, method, path + ending, roles=BOTH, tenant=rest.tenant)).status_code == 403
        assert (await call(rest, method, path + ending, roles=["operator"])).status_code in {200, 204}


async def test_a_test_fetches_what_is_needed_through_the_gate(rest: Rest, issuer: Issuer) -> None:
    path = f"/{issuer_id(issuer.url)}"
    await call(rest, "POST", "", entry(rest, issuer))
    good = (await call(rest, "POST", f"{path}/test")).json()
    assert good == {"ready": True, "keys": 1, "algorithms": ["ES256"], "error": None}
    await call(rest, "PUT", f"{path}?expected_version=1", entry(rest, issuer, algorithms=["RS256"]))
    assert "no key for an algorithm" in (await call(rest, "POST", f"{path}/test")).json()["error"]
    del issuer.documents["/.well-known/openid-configuration"]["introspection_endpoint"]
    await call(rest, "PUT", f"{path}?expected_version=2", entry(rest, issuer, introspection=introspection()))
    assert "no introspection_endpoint" in (await call(rest, "POST", f"{path}/test")).json()["error"]
    # Addresses that serve the secrets of a cloud machine, and private ones, are not asked.
    for uri in ("https://169.254.169.254/keys", "https://10.0.0.1/keys"):
        version = (await call(rest, "GET", path)).json()["version"]
        await call(rest, "PUT", f"{path}?expected_version={version}", entry(rest, issuer, jwksUri=uri))
        trial = (await call(rest, "POST", f"{path}/test")).json()
        assert not trial["ready"] and "its address is refused" in trial["error"]
    tried = [event for event in await events(rest, "issuers.test") if issuer.url in json.dumps(event)]
    outcomes = [event["outcome"] for event in tried]
    assert outcomes[-1:] == ["ok"] and set(outcomes[:-1]) == {"failed"}


async def test_a_dry_run_says_whom_a_token_or_claims_would_make(rest: Rest, issuer: Issuer) -> None:
    other = {"when": {"groups": "others"}, "tenant": "elsewhere", "roles": ["invoker"]}
    body = entry(rest, issuer)
    await call(rest, "POST", "", {**body, "rules": [*body["rules"], other]})

    async def tried(sent: dict[str, Any], **options: Any) -> dict[str, Any]:
        answer = await call(rest, "POST", "/explain", sent, **{"roles": ["key-custodian"], **options})
        assert answer.status_code == 200, answer.text
        assert "of-payroll" not in answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    token = {"token": issuer.token(sub="ada-of-payroll")}
    shown = await tried(token)
    assert (shown["taken"], [rule["maps"] for rule in shown["rules"]]) == (True, [True, False])
    assert shown["rules"][1]["missing"] == ["groups"]
    claims = {"issuer": issuer.url, "claims": {"groups": ["others"], "sub": "of-payroll", "iat": "x"}}
    assert (await tried(claims))["reason"] == "ended", "the tenant elsewhere does not exist"
    own = await tried(claims, tenant=rest.tenant)
    assert (own["reason"], [rule["tenant"] for rule in own["rules"]]) == ("elsewhere", [rest.tenant])
    assert (await tried(token, tenant=rest.tenant))["taken"]
    assert (await tried({"token": "x"}))["reason"] == "token"
    assert (await tried({"issuer": "https://unknown.example.com", "claims": {}}))["reason"] == "issuer"
    for wrong in ({}, {"token": "x", "claims": {}}, {"issuer": issuer.url}, {**token, **claims}):
        answer = await call(rest, "POST", "/explain", wrong, roles=["key-custodian"])
        assert answer.status_code == 422, wrong
    assert (await call(rest, "POST", "/explain", token, roles=[Role.INVOKER])).status_code == 403


async def test_what_was_stored_and_is_no_issuer_any_more_lets_nobody_in(rest: Rest, issuer: Issuer) -> None:
    await call(rest, "POST", "", entry(rest, issuer, introspection=introspection()))
    async with rest.vault.database.system_transaction() as tx:
        await tx.execute(text("UPDATE trusted_issuer SET secrets = :lost"), {"lost": b"lost"})
    rest.services.authenticator.tokens.forget_issuer(None)  # type: ignore[union-attr]
    bearer = {"authorization": f"Bearer {issuer.token()}"}
    assert (await rest.http.get("/api/v1/middleware", headers=bearer)).status_code == 401
    path = f"/{issuer_id(issuer.url)}"
    shown = (await call(rest, "GET", path)).json()
    assert shown["settings"] is None and "cannot be read" in shown["state"]["error"]
    assert (await call(rest, "POST", f"{path}/test")).json()["ready"] is False
    mended = await call(rest, "PUT", f"{path}?expected_version=1", entry(rest, issuer))
    assert mended.status_code == 200, mended.text
    assert (await rest.http.get("/api/v1/middleware", headers=bearer)).status_code == 200
