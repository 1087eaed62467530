"""Providers over REST: one form, secrets that are never seen again, addresses that stay outside."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy import text

from app.core.access import Role
from app.services.access.access import HOST
from app.services.gateway.provider_sealing import SubmittedProvider
from app.services.gateway.providers import ProviderService
from app.upstream.providers.client import ProviderClient
from tests.factories import caller_of, with_schema
from tests.integration.canaries import files_of, hits
from tests.integration.rest_app import Rest, document_of, open_rest
from tests.upstreams.providing import Scripted, free_port, responding, scripted

pytestmark = pytest.mark.in_turn("database_url")

PROVIDERS = "/api/v1/providers"
KEY, HEADER = "sk-c4nary-Sesame-Open-91", "org-c4nary-of-the-tenant"
MAIN: dict[str, Any] = {
    "kind": "openai",
    "baseUrl": "https://api.openai.com/v1",
    "apiKey": KEY,
    "extraHeaders": {"OpenAI-Organization": HEADER},
    "models": ["gpt-*"],
    "aliases": {"fast": "gpt-5-mini"},
}
LISTING = json.dumps(
    {"data": [{"id": "gpt-5-mini"}, {"id": "whisper-1"}, {"id": "gpt-5"}, {"id": 7}]}
).encode()


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened
        async with opened.vault.database.transaction(opened.tenant) as tx:
            await tx.execute(text("DELETE FROM provider WHERE tenant = :tenant"), {"tenant": opened.tenant})


async def call(rest: Rest, method: str, path: str = "", body: Any = None, **options: Any) -> Response:
    return await rest.call(method, PROVIDERS + path, body, **{"roles": ["operator"], **options})


def listing(status: str = "200 OK", body: bytes = LISTING) -> Any:
    return responding(f"HTTP/1.1 {status}\nContent-Length: {len(body)}", body)


def inside(script: Scripted, **more: Any) -> dict[str, Any]:
    base = f"http://127.0.0.1:{script.port}/v1"
    return {**MAIN, "baseUrl": base, "allowedNetworks": ["127.0.0.0/8"], **more}


async def events(rest: Rest, action: str) -> list[dict[str, Any]]:
    answer = await rest.call("GET", f"/api/v1/audit/events?action={action}", roles=["auditor"])
    return answer.json()["items"]


async def test_a_provider_is_stored_read_changed_and_removed(rest: Rest) -> None:
    stored = await call(rest, "PUT", "/main", MAIN)
    assert stored.status_code == 200
    expected = {
        "name": "main",
        "kind": "openai",
        "baseUrl": "https://api.openai.com/v1",
        "hasApiKey": True,
        "extraHeaders": {"OpenAI-Organization": None},
        "models": ["gpt-*"],
        "aliases": {"fast": "gpt-5-mini"},
        "order": 10,
        "callerKey": False,
        "allowedNetworks": [],
        "description": None,
        "origin": "api",
    }
    assert stored.json() == stored.json() | expected
    assert stored.json()["limits"]["connectS"] == 10
    assert (await call(rest, "GET", "/main")).json() == stored.json()

    changed = await call(
        rest, "PUT", "/main", {**MAIN, "apiKey": None, "callerKey": True, "limits": {"idleS": 5}}
    )
    assert (
        changed.json()["hasApiKey"] and changed.json()["callerKey"] and changed.json()["limits"]["idleS"] == 5
    )
    assert changed.json()["order"] == 10 and changed.json()["created"] == stored.json()["created"]
    (endpoint,) = await rest.services.providers.of_tenant(rest.tenant)
    assert (endpoint.entry.api_key, endpoint.entry.extra_headers) == (KEY, {"OpenAI-Organization": HEADER})

    without = await call(rest, "PUT", "/main", {**MAIN, "apiKey": "", "extraHeaders": {}})
    assert (without.json()["hasApiKey"], without.json()["extraHeaders"]) == (False, {})
    assert (await call(rest, "DELETE", "/main")).status_code == 204
    assert (await call(rest, "GET", "/main")).status_code == 404
    assert (await call(rest, "DELETE", "/main")).status_code == 404
    assert await rest.services.providers.of_tenant(rest.tenant) == ()


async def test_the_examples_of_the_document_are_what_the_service_takes_and_gives(rest: Rest) -> None:
    document = document_of(rest)
    body = document["paths"]["/api/v1/providers/{name}"]["put"]["requestBody"]["content"]["application/json"]
    (example,) = (entry["value"] for entry in body["examples"].values())
    stored = await call(rest, "PUT", "/main", example)
    shown = document["components"]["schemas"]["StoredProviderAnswer"]["examples"][0]
    own = {"created": shown["created"], "created_by": shown["created_by"], "updated": shown["updated"]}
    # The document leaves out members that are null.
    assert {**stored.json(), **own} == {**shown, "description": None}


async def test_providers_are_listed_by_name_page_by_page_and_asked_in_their_order(rest: Rest) -> None:
    for name, order in (("beta", None), ("alpha", None), ("gamma", 3)):
        assert (await call(rest, "PUT", f"/{name}", {**MAIN, "order": order})).status_code == 200
    first = (await call(rest, "GET", "?limit=2")).json()
    assert [entry["name"] for entry in first["items"]] == ["alpha", "beta"]
    last = (await call(rest, "GET", f"?limit=2&cursor={first['next']}")).json()
    assert ([entry["name"] for entry in last["items"]], last["next"]) == (["gamma"], None)
    asked = await rest.services.providers.of_tenant(rest.tenant)
    assert [endpoint.entry.name for endpoint in asked] == ["gamma", "beta", "alpha"]


@pytest.mark.parametrize(
    "change",
    [
        {"baseUrl": "https://evil.example/v1"},
        {"baseUrl": "https://api.openai.com.evil.example/v1"},
        {"allowedNetworks": ["127.0.0.0/8"]},
    ],
)
@pytest.mark.parametrize(
    "kept", [{"apiKey": None}, {"extraHeaders": None}, {"extraHeaders": {"OpenAI-Organization": None}}]
)
async def test_another_address_asks_for_every_secret_again(rest: Rest, change: Any, kept: Any) -> None:
    await call(rest, "PUT", "/main", MAIN)
    refused = await call(rest, "PUT", "/main", {**MAIN, **change, **kept})
    assert refused.status_code == 422
    assert (refused.json()["code"], refused.json()["pointer"]) == ("invalid_arguments", "/baseUrl")
    assert "Supply the values" in refused.json()["detail"]
    (endpoint,) = await rest.services.providers.of_tenant(rest.tenant)
    assert endpoint.entry.base_url == MAIN["baseUrl"]
    assert (await call(rest, "PUT", "/main", {**MAIN, **change})).status_code == 200
    assert (await call(rest, "PUT", "/main", {**MAIN, **change, **kept, "models": ["*"]})).status_code == 200


@pytest.mark.parametrize(
    ("change", "pointer", "mending"),
    [
        ({"baseUrl": "api.openai.com"}, "/baseUrl", "https://"),
        ({"kind": "anthropic"}, "", "remove /v1"),
        ({"kind": "other"}, "/kind", "openai"),
        ({"models": "gpt-5"}, "/models", "list"),
        ({"aliases": {"fast": "claude"}}, "", "add that model"),
        ({"extraHeaders": {"X-A": None}}, "/extraHeaders", "supply the value"),
        ({"extraHeaders": ["X-A"]}, "/extraHeaders", "dictionary"),
        ({"apiKey": f"{KEY} {KEY}"}, "/apiKey", "one word"),
        ({"limits": {"idleS": -1}}, "/limits/idleS", "greater than 0"),
        ({"api_key": KEY}, "", "unknown member"),
        ({KEY: 1}, "", "unknown member"),
        ({"name": "other"}, "/name", "leave it out"),
        ({"baseUrl": None}, "/baseUrl", "string"),
    ],
)
async def test_a_wrong_provider_is_refused_by_member_and_without_its_values(
    rest: Rest, change: Any, pointer: str, mending: str
) -> None:
    refused = await call(rest, "PUT", "/main", {**MAIN, **change})
    assert (refused.status_code, refused.json().get("pointer", "")) == (422, pointer)
    assert mending in refused.json()["detail"]
    assert KEY not in refused.text and HEADER not in refused.text
    assert (await call(rest, "GET", "/main")).status_code == 404


async def test_networks_inside_are_for_whoever_runs_the_service_to_allow(rest: Rest) -> None:
    for network in ("10.0.0.0/8", "0.0.0.0/0", "::/0", "126.0.0.0/7"):
        refused = await call(rest, "PUT", "/local", {**MAIN, "allowedNetworks": ["127.0.0.1/32", network]})
        assert (refused.status_code, refused.json()["pointer"]) == (403, "/allowedNetworks/1")
        assert "SLUICE_UPSTREAMS__ALLOWED_NETWORKS" in refused.json()["detail"]
    assert (
        await call(rest, "PUT", "/local", {**MAIN, "allowedNetworks": ["127.0.0.1/32"]})
    ).status_code == 200
    (endpoint,) = await rest.services.providers.of_tenant(rest.tenant)
    assert endpoint.networks == ("127.0.0.1/32",)
    stricter = ProviderService(rest.vault.database, rest.vault.audit, ProviderClient())
    (endpoint,) = await stricter.of_tenant(rest.tenant)
    assert endpoint.networks == ()
    host = caller_of(rest.tenant, Role.OPERATOR)
    anywhere = SubmittedProvider({**MAIN, "allowedNetworks": ["10.0.0.0/8"]})
    await stricter.put(host, "wide", anywhere, host=True)
    assert (await call(rest, "GET", "/wide")).json()["origin"] == "host"
    assert (await call(rest, "PUT", "/wide", {**MAIN, "allowedNetworks": ["10.0.0.0/8"]})).status_code == 403


async def test_a_test_lists_models_with_the_sealed_key_and_says_why_it_fails(rest: Rest) -> None:
    async with scripted(listing()) as script:
        await call(rest, "PUT", "/main", inside(script))
        tried = await call(rest, "POST", "/main/test")
        assert tried.json() == {
            "ready": True,
            "status": 200,
            "models": ["gpt-5-mini", "gpt-5"],
            "error": None,
        }
        line, headers, _ = script.requests[0]
        assert (line, headers["authorization"]) == ("GET /v1/models HTTP/1.1", f"Bearer {KEY}")
        assert headers["openai-organization"] == HEADER
    async with scripted(listing()) as script:
        anthropic = {"kind": "anthropic", "aliases": {}, "baseUrl": f"http://127.0.0.1:{script.port}"}
        await call(rest, "PUT", "/claude", inside(script, **anthropic))
        assert (await call(rest, "POST", "/claude/test")).json()["ready"]
        line, headers, _ = script.requests[0]
        assert (line, headers["x-api-key"], headers["anthropic-version"]) == (
            "GET /v1/models HTTP/1.1",
            KEY,
            "2023-06-01",
        )
    for answer, status, reason in (
        (listing("401 Unauthorized", KEY.encode()), 401, "another apiKey"),
        (listing("404 Not Found"), 404, "check baseUrl"),
        (listing(body=b"<html>" + KEY.encode()), 200, "not with a list of models"),
    ):
        async with scripted(answer) as script:
            await call(rest, "PUT", "/main", inside(script))
            failed = (await call(rest, "POST", "/main/test")).json()
            assert (failed["ready"], failed["status"]) == (False, status)
            assert reason in failed["error"] and KEY not in failed["error"]
    down = {**MAIN, "baseUrl": f"http://127.0.0.1:{free_port()}", "allowedNetworks": ["127.0.0.0/8"]}
    await call(rest, "PUT", "/main", down)
    assert "refused" in (await call(rest, "POST", "/main/test")).json()["error"]
    away = {**down, "allowedNetworks": []}
    await call(rest, "PUT", "/main", away)
    assert "allowedNetworks" in (await call(rest, "POST", "/main/test")).json()["error"]
    recorded = await events(rest, "providers.test")
    assert [event["outcome"] for event in recorded].count("ok") == 2


REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "", None),
    ("GET", "/main", None),
    ("PUT", "/main", MAIN),
    ("POST", "/main/test", None),
    ("DELETE", "/main", None),
)


async def test_only_operators_of_the_tenant_reach_its_providers(rest: Rest) -> None:
    await call(rest, "PUT", "/main", MAIN)
    for role in set(Role) - {Role.OPERATOR}:
        for method, path, body in REQUESTS:
            assert (await call(rest, method, path, body, roles=[role])).status_code == 403, (
                role,
                method,
                path,
            )
    other = f"{rest.tenant}-other"
    await rest.services.tenants.create(HOST, other)
    foreign = [await call(rest, method, path, body, tenant=other) for method, path, body in REQUESTS]
    assert foreign[0].json()["items"] == []
    assert [answer.status_code for answer in foreign] == [200, 404, 200, 200, 204]
    assert foreign[3].json()["ready"] is False
    kept = (await call(rest, "GET", "/main")).json()
    assert (kept["hasApiKey"], kept["created"]) == (True, kept["updated"])


async def test_changes_are_recorded_by_name_and_no_secret_is_shown_logged_or_stored_plain(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = with_schema(f"sqlite:///{tmp_path}/sluice.db")
    async with open_rest(url) as rest:
        answers = [await call(rest, "PUT", "/main", MAIN)]
        answers.append(await call(rest, "PUT", "/main", {**MAIN, "models": ["gpt-5"], "aliases": {}}))
        answers += [await call(rest, "GET", path) for path in ("", "/main")]
        answers.append(await call(rest, "PUT", "/main", {**MAIN, "baseUrl": f"https://a.example/{KEY} "}))
        recorded = await events(rest, "providers.put")
        await call(rest, "PUT", "/kept", MAIN)
        answers.append(await call(rest, "DELETE", "/main"))
        assert len(await events(rest, "providers.remove")) == 1
    details = [event["details"] for event in recorded if event["outcome"] == "ok"]
    assert sorted(entry["changed"] for entry in details) == ["", "aliases,models"]
    assert {entry["provider"] for entry in details} == {"main"}
    shown = "".join(answer.text for answer in answers) + json.dumps(recorded) + "".join(capfd.readouterr())
    assert KEY not in shown and HEADER not in shown
    assert not hits(files_of(tmp_path), [KEY, HEADER])
    assert hits(files_of(tmp_path), ["api.openai.com"])  # the search sees what is stored in clear
