"""The page of identities: whom tokens make callers, what a token would become, and issuers that operators add."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from app.core.access import SYSTEM_TENANT, Role
from app.core.identities import MappingRule, TrustedIssuer, issuer_id
from app.engines.tokens import JoseReader
from app.services.access.issuer_keys import IssuerKeys
from app.services.access.token_callers import TokenCallers
from app.upstream.issuers import IssuerClient
from tests.integration.console_app import Browser, Console, fields_of, navigation, open_console, text_of
from tests.integration.console_people import Clock, Company
from tests.integration.token_issuer import AUDIENCE, SECRET, Issuer, token_issuer

pytestmark = pytest.mark.in_turn("database_url")

PAGE = "/console/identities"
BOTH = (Role.OPERATOR, Role.KEY_CUSTODIAN)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with open_console(database_url) as opened:
        yield opened
        async with opened.rest.vault.database.system_transaction() as tx:
            await tx.execute(text("DELETE FROM trusted_issuer"))


def entry(console: Console, issuer: Issuer, **changed: Any) -> dict[str, Any]:
    rule = {"when": {"groups": "llm-users"}, "tenant": console.rest.tenant, "roles": ["invoker"]}
    asked = {"clientId": "sluice", "clientSecret": SECRET, "tokens": ["signed"]}
    return {"issuer": issuer.url, "audience": [AUDIENCE], "rules": [rule], "introspection": asked, **changed}


async def signed_in(console: Console, browser: Browser, *roles: Role, tenant: str = SYSTEM_TENANT) -> None:
    answer = await browser.sign_in(await console.rest.key(*roles, tenant=tenant))
    assert answer.status_code == 303


async def test_an_operator_of_the_installation_adds_tests_changes_and_removes_an_issuer(
    console: Console, issuer: Issuer
) -> None:
    place = f"{PAGE}/issuers/{issuer_id(issuer.url)}"
    async with console.browsing() as browser:
        await signed_in(console, browser, *BOTH)
        shown = await browser.open(PAGE)
        assert "No issuer is trusted yet." in text_of(shown) and "Add an issuer" in text_of(shown)
        rule = {"when": {"sub": "ada"}, "tenant": "acme", "roles": ["operator"]}
        refused = await browser.send(
            f"{PAGE}/issuers", {"settings": json.dumps(entry(console, issuer, rules=[rule]))}
        )
        assert refused.status_code == 422 and "Only the settings of the service" in text_of(refused)
        assert json.loads(fields_of(refused)["settings"])["rules"] == [rule], "what was typed stays"
        nonsense = await browser.send(f"{PAGE}/issuers", {"settings": "[1"})
        assert nonsense.status_code == 422 and "must be a JSON object" in text_of(nonsense)
        await browser.open(PAGE)
        added = await browser.send(f"{PAGE}/issuers", {"settings": json.dumps(entry(console, issuer))})
        assert (added.status_code, added.headers["location"]) == (303, place)
        page = await browser.open(place)
        assert "A secret is known for introspection" in text_of(page) and SECRET not in page.text
        tested = await browser.send(f"{place}/test")
        assert "It is ready: 1 key for ES256." in text_of(tested)
        form = fields_of(await browser.open(place))
        typed = {**json.loads(form["settings"]), "maxTokenAge": 60}
        late = await browser.send(place, {"settings": json.dumps(typed), "expected_version": "7"})
        assert late.status_code == 422 and "changed meanwhile" in text_of(late)
        sent = {"settings": json.dumps(typed), "expected_version": form["expected_version"]}
        assert (await browser.send(place, sent)).status_code == 303
        page = await browser.open(place)
        assert "Version 2" in text_of(page) and json.loads(fields_of(page)["settings"])["maxTokenAge"] == 60
        issuer.states[token := issuer.token()] = {"active": True, **issuer.claims()}
        bearer = {"authorization": f"Bearer {token}"}
        assert (await console.rest.http.get("/api/v1/middleware", headers=bearer)).status_code == 200
        listed = text_of(await browser.open(PAGE))
        assert f"{issuer.url} the database, version 2" in listed and "1 key" in listed
        await browser.open(place)
        gone = await browser.send(f"{place}/remove", {"expected_version": "2"})
        assert (gone.status_code, gone.headers["location"]) == (303, PAGE)
        assert (await console.rest.http.get("/api/v1/middleware", headers=bearer)).status_code == 401
        assert (await browser.open(place)).status_code == 404


async def test_whom_a_token_or_claims_would_make(console: Console, issuer: Issuer) -> None:
    other = {"when": {"groups": "others"}, "tenant": "elsewhere-c4nary", "roles": ["auditor"]}
    own = entry(console, issuer, introspection=None)
    body = {**own, "rules": [*own["rules"], other]}
    rest, tenant = console.rest, console.rest.tenant
    added = await rest.call("POST", "/api/v1/issuers", body, roles=BOTH, tenant=SYSTEM_TENANT)
    assert added.status_code == 201, added.text
    async with console.browsing(Role.KEY_CUSTODIAN) as browser:
        shown = await browser.open(PAGE)
        assert issuer.url in text_of(shown) and "groups: llm-users" in text_of(shown)
        assert "c4nary" not in shown.text and "Issuers of the installation" not in text_of(shown)
        taken = await browser.send(f"{PAGE}/try", {"token": issuer.token(sub="ada-of-payroll")})
        assert "A rule maps it." in text_of(taken) and "of-payroll" not in taken.text
        claims = {"issuer": issuer.url, "claims": '{"groups": ["others"], "sub": "of-payroll"}'}
        elsewhere = await browser.send(f"{PAGE}/try", claims)
        assert "A rule of another tenant decides." in text_of(elsewhere)
        assert "c4nary" not in elsewhere.text and "of-payroll" not in elsewhere.text
        assert "malformed" in text_of(await browser.send(f"{PAGE}/try", {"token": "x"}))
        wrong = await browser.send(f"{PAGE}/try", {"issuer": issuer.url, "claims": "[]"})
        assert wrong.status_code == 422 and "The claims must be a JSON object" in text_of(wrong)
    async with console.browsing() as browser:
        await signed_in(console, browser, Role.KEY_CUSTODIAN)
        whole = await browser.send(f"{PAGE}/try", {}) if await browser.open(PAGE) else None
        assert whole is not None and whole.status_code == 422
        everywhere = text_of(await browser.send(f"{PAGE}/try", claims))
        assert "elsewhere-c4nary" in everywhere and tenant in everywhere


async def test_roles_decide_what_is_there(console: Console, issuer: Issuer) -> None:
    body = {"settings": json.dumps(entry(console, issuer))}
    async with console.browsing(Role.AUDITOR) as browser:
        assert "Identities" not in navigation(await browser.open("/console/"))
        assert (await browser.open(PAGE)).status_code == 403
    async with console.browsing(*BOTH) as browser:
        page = await browser.open(PAGE)
        assert "Identities" in navigation(page) and "Add an issuer" not in text_of(page)
        assert (await browser.send(f"{PAGE}/issuers", body)).status_code == 403
        place = f"{PAGE}/issuers/{issuer_id(issuer.url)}"
        assert (await browser.open(place)).status_code == 403
        await browser.open(PAGE)
        assert (await browser.send(f"{place}/remove", {"expected_version": "1"})).status_code == 403
    listed = await console.rest.call("GET", "/api/v1/issuers", roles=BOTH, tenant=SYSTEM_TENANT)
    assert listed.json()["items"] == []


async def test_people_of_an_added_issuer_sign_in_until_it_is_removed(
    console: Console, issuer: Issuer
) -> None:
    own = {
        "clientId": "sluice",
        "clientSecret": SECRET,
        "redirectUri": "http://localhost:8000/console/sign-in/return",
        "name": "Example login",
    }
    body = {**entry(console, issuer, introspection=None), "console": own}
    company, call = Company(console, issuer, Clock()), console.rest.call
    async with console.browsing() as browser:
        assert (await browser.open(company.leaving)).status_code == 404
        added = await call("POST", "/api/v1/issuers", body, roles=BOTH, tenant=SYSTEM_TENANT)
        assert added.status_code == 201, added.text
        assert "Example login" in text_of(await browser.open("/console/sign-in"))
        await company.signed_in(browser)
        assert (await browser.open("/console/playground")).status_code == 200
        path = f"/api/v1/issuers/{added.json()['id']}?expected_version=1"
        assert (await call("DELETE", path, roles=BOTH, tenant=SYSTEM_TENANT)).status_code == 204
        assert (
            (await browser.open("/console/playground"))
            .headers["location"]
            .startswith("/console/sign-in?next=")
        )
        assert "Example login" not in text_of(await browser.open("/console/sign-in"))


async def test_the_mirror_is_counted(console: Console) -> None:
    rest = console.rest
    for number, active in enumerate((True, True, False)):
        person = {"userName": f"p{number}@c4nary.example", "active": active}
        answer = await rest.call("POST", "/scim/v2/Users", person, roles=[Role.PROVISIONER])
        assert answer.status_code == 201, answer.text
    group = {"displayName": "llm-users", "members": []}
    assert (await rest.call("POST", "/scim/v2/Groups", group, roles=[Role.PROVISIONER])).status_code == 201
    async with console.browsing(Role.KEY_CUSTODIAN) as browser:
        page = await browser.open(PAGE)
        assert "mirrors 2 active people here, 1 who are not active, and 1 groups" in text_of(page)
        assert "c4nary" not in page.text


async def test_issuers_and_the_rules_for_this_tenant_are_shown(console: Console) -> None:
    tenant, state = console.rest.tenant, console.rest.app.state
    hostile = "<script>alert(1)</script>"
    rules = (
        MappingRule({"groups": ("a", hostile), "admin": True}, tenant, frozenset({Role.INVOKER})),
        MappingRule({"groups": "c4nary"}, "another", frozenset({Role.AUDITOR})),
    )
    url = "https://login.example.com"
    trusted = TrustedIssuer(url, frozenset({"sluice"}), rules, tenants=(tenant,))
    client, reader = IssuerClient(development=True), JoseReader()
    access = console.rest.services.access
    keys = {url: IssuerKeys(trusted, client, reader)}
    tokens = TokenCallers(keys, {}, reader, access.database, access.audit)
    access = replace(access, authenticator=replace(access.authenticator, tokens=tokens))
    state.console_services = replace(state.console_services, access=access)
    state.route_services = replace(state.route_services, access=access)
    own = {"issuer": url, "when": {"scope": "chat"}, "roles": ["invoker"], "grants": ["guests"]}
    assert (await console.rest.put_policy({"identity": {"rules": [own]}})).status_code == 200
    listed = await console.rest.call("GET", "/api/v1/keys/identities", roles=[Role.KEY_CUSTODIAN])
    (issuer,) = listed.json()["issuers"]
    assert [(rule["source"], rule["grants"]) for rule in issuer["rules"]] == [
        ("settings", []),
        ("policy", ["guests"]),
    ]
    async with console.browsing(Role.KEY_CUSTODIAN) as browser:
        page = await browser.open(PAGE)
    assert f"groups: a, {hostile} admin: True invoker" in text_of(page)
    assert hostile not in page.text
    assert "c4nary" not in page.text + listed.text
