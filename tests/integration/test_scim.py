"""SCIM 2.0 as identity providers push it: the mirror, its errors, and that whoever leaves is out at once."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy import select

from app.core.access import Role
from app.core.errors import UnauthenticatedError
from app.core.events import Changed
from app.core.identities import MappingRule, Provisioning, TrustedIssuer
from app.services.access.identity.ends import IDENTITY_ENDED
from app.services.access.identity.mirror import KEPT
from app.store.access.provisioned import remove_forgotten
from app.store.access.tables import provisioned
from app.store.changes import EVERYTHING
from tests.integration.console_app import open_console
from tests.integration.console_people import Clock, Company, trusted
from tests.integration.rest_app import Rest
from tests.integration.token_issuer import Issuer, token_issuer

pytestmark = pytest.mark.in_turn("database_url")

SCIM = "/scim/v2"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ADA = {
    "schemas": [USER],
    "userName": "Ada@Example.org",
    "externalId": "ada",
    "active": True,
    "name": {"givenName": "Ada", "familyName": "Byron"},
    "emails": [{"value": "ada@example.org", "primary": True}],
}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


@pytest.fixture
async def company(database_url: str, issuer: Issuer) -> AsyncIterator[Company]:
    clock, plain = Clock(), trusted(issuer)
    mirrored = Provisioning("sub", "externalId")
    async with open_console(
        database_url, trusted=lambda rest: replace(plain(rest), provisioning=mirrored), now=clock.now
    ) as console:
        yield Company(console, issuer, clock)


async def push(
    company: Company,
    method: str,
    path: str,
    body: Any = None,
    *,
    roles: tuple[Role, ...] = (Role.PROVISIONER,),
) -> Response:
    """Send what a provider sends."""
    rest = company.console.rest
    headers = {"authorization": f"Bearer {await rest.key(*roles)}", "content-type": "application/scim+json"}
    content = None if body is None else json.dumps(body).encode()
    return await rest.http.request(method, SCIM + path, content=content, headers=headers)


async def patch(company: Company, path: str, *operations: dict[str, Any]) -> dict[str, Any]:
    answer = await push(company, "PATCH", path, {"schemas": [PATCH], "Operations": list(operations)})
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


async def names(company: Company, query: str) -> list[str]:
    answer = await push(company, "GET", query)
    assert answer.status_code == 200, answer.text
    listed = answer.json()
    assert listed["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:ListResponse"]
    return [each.get("userName", each.get("displayName")) for each in listed["Resources"]]


async def test_a_provider_keeps_people_and_groups_up_to_date(company: Company) -> None:
    made = await push(company, "POST", "/Users", ADA)
    assert (made.status_code, made.headers["content-type"]) == (201, "application/scim+json")
    user = made.json()
    path = f"/Users/{user['id']}"
    assert made.headers["location"].endswith(SCIM + path) and user["meta"]["resourceType"] == "User"
    assert {name: user[name] for name in ("userName", "externalId", "active")} == {
        "userName": "Ada@Example.org",
        "externalId": "ada",
        "active": True,
    }
    assert "emails" not in user  # what is not needed is not kept
    assert (await push(company, "GET", path)).json() == user
    for query in ('userName eq "ada@example.ORG"', 'externalId EQ "ada"', f'{USER}:id eq "{user["id"]}"'):
        assert await names(company, f"/Users?filter={query}") == ["Ada@Example.org"], query
    for query in ('userName eq "grace"', 'externalId eq "ADA"', 'externalId eq "a\\"b"'):
        assert await names(company, f"/Users?filter={query}") == [], query
    okta = {"op": "replace", "value": {"active": False}}
    assert (await patch(company, path, okta))["active"] is False
    entra = {"op": "Replace", "path": "active", "value": "True"}
    assert (await patch(company, path, entra))["active"] is True
    other = {"op": "Add", "path": 'emails[type eq "work"].value', "value": "x@example.org"}
    assert await patch(company, path, other) == user | {"active": True}
    renamed = await patch(company, path, {"op": "replace", "path": f"{USER}:userName", "value": "lovelace"})
    assert renamed["userName"] == "lovelace"
    put = await push(company, "PUT", path, {"userName": "ada", "active": True})
    assert (put.json()["userName"], "externalId" in put.json()) == ("ada", False)
    assert (await push(company, "DELETE", path)).status_code == 204
    assert (await push(company, "GET", path)).status_code == 404
    assert await names(company, "/Users") == []
    assert (await push(company, "POST", "/Users", {"userName": "ada"})).status_code == 201


async def test_the_members_of_a_group_come_and_go(company: Company) -> None:
    made = await push(company, "POST", "/Groups", {"displayName": "LLM users", "members": [{"value": "1"}]})
    path = f"/Groups/{made.json()['id']}"
    added = await patch(
        company, path, {"op": "add", "path": "members", "value": [{"value": "2"}, {"value": "1"}]}
    )
    assert [each["value"] for each in added["members"]] == ["1", "2"]
    left = await patch(company, path, {"op": "remove", "path": 'members[value eq "1"]'})
    assert [each["value"] for each in left["members"]] == ["2"]
    await patch(
        company, path, {"op": "replace", "path": "members", "value": [{"value": "3"}, {"value": "4"}]}
    )
    left = await patch(company, path, {"op": "Remove", "path": "members", "value": [{"value": "3"}]})
    assert [each["value"] for each in left["members"]] == ["4"]
    assert (await patch(company, path, {"op": "remove", "path": "members"}))["members"] == []
    short = (await push(company, "GET", f"{path}?excludedAttributes=members")).json()
    assert "members" not in short and short["displayName"] == "LLM users"
    assert await names(company, '/Groups?filter=displayName eq "llm USERS"') == ["LLM users"]
    assert await names(company, "/Users") == []


MEMBER = ("urn:ietf:params:scim:schemas:core:2.0:Group:members", "Members", "members")
NO_PATHS = (
    "members[value eq '1']",
    'members[value eq "1" or value eq "2"]',
    'members[(value eq "1")]',
    'members[value sw "1"]',
    'members[$ref ew "a:1"]',
    'members[value eq "1"].value',
    'members[value eq "\\x"]',
    'members[value eq "\\ud800"]',
    'urn:ietf:params:scim:schemas:core:2.0:Group:members[display eq "a:1"]',
    "members.value",
    " members",
    "/members",
)


async def test_a_member_is_removed_by_any_path_that_is_answered_with_success(company: Company) -> None:
    group = {"displayName": "LLM users", "members": [{"value": "1"}, {"value": "2"}]}
    path = f"/Groups/{(await push(company, 'POST', '/Groups', group)).json()['id']}"
    for name in MEMBER:
        await push(company, "PUT", path, group)
        left = await patch(company, path, {"op": "remove", "path": f'{name}[ value EQ "1" ]'})
        assert [each["value"] for each in left["members"]] == ["2"], name
    whole = (await push(company, "PUT", path, group)).json()
    # A provider that is told of success would believe that somebody is out who is still in.
    operations = [{"op": "remove", "path": unknown} for unknown in NO_PATHS]
    operations += [{"op": "replace", "path": 'members[value eq "1"]', "value": {"value": "3"}}]
    nested = {"urn:ietf:params:scim:schemas:core:2.0:Group": {"members": []}}
    for operation in (*operations, {"op": "replace", "value": nested}):
        answer = await push(company, "PATCH", path, {"Operations": [operation]})
        assert (answer.status_code, answer.json().get("scimType")) == (400, "invalidPath"), operation
    assert (await push(company, "GET", path)).json() == whole


async def test_nobody_stays_active_by_a_path_that_is_answered_with_success(company: Company) -> None:
    path = f"/Users/{(await push(company, 'POST', '/Users', ADA)).json()['id']}"
    for unknown in ("active[value eq true]", "active.value", " active", "/active"):
        operation = {"op": "replace", "path": unknown, "value": False}
        answer = await push(company, "PATCH", path, {"Operations": [operation]})
        assert (answer.status_code, answer.json().get("scimType")) == (400, "invalidPath"), unknown
    nested = {"op": "replace", "value": {USER: {"active": False}}}
    assert (await push(company, "PATCH", path, {"Operations": [nested]})).status_code == 400
    extension = {"op": "replace", "value": {"urn:example:staff:2.0:User:active": False, USER: {"title": "x"}}}
    assert (await patch(company, path, extension))["active"] is True
    named = {"op": "replace", "path": f"{USER}:ACTIVE", "value": False}
    assert (await patch(company, path, named))["active"] is False


async def test_errors_are_those_of_scim_and_hold_no_name(company: Company) -> None:
    user = (await push(company, "POST", "/Users", ADA)).json()
    other = (await push(company, "POST", "/Users", {"userName": "grace"})).json()
    path = f"/Users/{user['id']}"
    cases: tuple[tuple[str, str, Any, int, str | None], ...] = (
        ("POST", "/Users", {"userName": "ADA@example.org"}, 409, "uniqueness"),
        ("PUT", f"/Users/{other['id']}", ADA, 409, "uniqueness"),
        ("POST", "/Users", {"externalId": "x"}, 400, "invalidValue"),
        ("POST", "/Users", {"userName": 7}, 400, "invalidValue"),
        ("POST", "/Users", {"userName": "x" * 600}, 400, "invalidValue"),
        ("POST", "/Users", {"userName": "x", "active": "perhaps"}, 400, "invalidValue"),
        ("POST", "/Users", [], 400, "invalidSyntax"),
        ("PATCH", path, {"Operations": []}, 400, "invalidSyntax"),
        ("PATCH", path, {"Operations": [{"op": "move"}]}, 400, "invalidSyntax"),
        ("PATCH", path, {"Operations": [{"op": "remove"}]}, 400, "noTarget"),
        ("PATCH", path, {"Operations": [{"op": "remove", "path": "userName"}]}, 400, "mutability"),
        ("GET", '/Users?filter=userName sw "a"', None, 400, "invalidFilter"),
        ("GET", '/Users?filter=displayName eq "a"', None, 400, "invalidFilter"),
        ("GET", '/Users?filter=id eq "%5Cud800"', None, 400, "invalidFilter"),
        ("GET", '/Users?filter=id eq "%5Cu0000"', None, 400, "invalidFilter"),
        ("GET", "/Users?count=x", None, 400, None),
        ("GET", f"/Users?startIndex={10**30}", None, 400, None),
        ("GET", "/Users/none", None, 404, None),
        ("DELETE", "/Groups/none", None, 404, None),
        ("GET", "/Bulk", None, 404, None),
        ("POST", "/Users", {"userName": "x", "more": "x" * 3_000_000}, 413, None),
    )
    for method, where, body, status, kind in cases:
        answer = await push(company, method, where, body)
        assert answer.status_code == status, (method, where, answer.text)
        error = answer.json()
        assert error["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
        assert (error["status"], error.get("scimType")) == (str(status), kind), answer.text
        assert "example" not in answer.text.lower()
    assert (await push(company, "GET", path)).json() == user


async def test_only_a_provisioner_of_the_tenant_reads_and_writes_it(company: Company) -> None:
    user = (await push(company, "POST", "/Users", ADA)).json()
    everything_else = tuple(role for role in Role if role != Role.PROVISIONER)
    for method, path in (("GET", "/Users"), ("POST", "/Users"), ("DELETE", f"/Users/{user['id']}")):
        answer = await push(company, method, path, {} if method == "POST" else None, roles=everything_else)
        assert (answer.status_code, answer.json()["status"]) == (403, "403")
    rest = company.console.rest
    credentials = (None, "Bearer slc_nothing", f"Bearer {company.issuer.token()}")
    for credential in credentials:
        headers = {"authorization": credential} if credential is not None else {}
        answer = await rest.http.get(f"{SCIM}/Users", headers=headers)
        assert answer.status_code == 401
        assert answer.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    far = await rest.key(Role.PROVISIONER, tenant="system")
    answer = await rest.http.get(f"{SCIM}/Users", headers={"authorization": f"Bearer {far}"})
    assert user["id"] not in answer.text
    seen = await rest.call("GET", "/api/v1/audit/events?action=directory.create", roles=[Role.AUDITOR])
    [event] = seen.json()["items"]
    assert event["details"] == {"kind": "User", "id": user["id"], "active": True}
    assert "example" not in json.dumps(event).lower()
    refused = await rest.call("GET", "/api/v1/audit/events?action=directory.access", roles=[Role.AUDITOR])
    assert {each["outcome"] for each in refused.json()["items"]} == {"refused"}


async def test_what_is_stored_names_nobody(company: Company) -> None:
    user = (await push(company, "POST", "/Users", ADA)).json()
    database = company.console.rest.services.access.database
    async with database.transaction(company.console.rest.tenant, write=False) as tx:
        stored = repr((await tx.execute(select(provisioned))).all())
    assert user["id"] in stored and "example" not in stored.lower()
    await push(company, "DELETE", f"/Users/{user['id']}")
    async with database.system_transaction() as tx:
        await remove_forgotten(tx, company.clock.now() - KEPT)
        assert user["id"] in repr((await tx.execute(select(provisioned))).all())
        await remove_forgotten(tx, company.clock.now())
        assert user["id"] not in repr((await tx.execute(select(provisioned))).all())


async def inside(company: Company, token: str) -> bool:
    try:
        await company.console.sessions.authenticator.authenticate(token, "127.0.0.1")
    except UnauthenticatedError:
        return False
    return True


async def hear(company: Company) -> None:
    """Let the door hear what was announced: nothing is subscribed in these applications."""
    callers = company.console.sessions.authenticator.tokens
    assert callers is not None
    person = callers._person(
        next(iter(callers.issuers.values())).issuer, company.console.rest.tenant, {"sub": "ada"}
    )
    company.console.sessions.authenticator.changed(
        Changed(IDENTITY_ENDED, company.console.rest.tenant, person)
    )


async def test_who_is_not_active_in_the_mirror_is_out_at_once(company: Company) -> None:
    token = company.issuer.token()
    assert not await inside(company, token)  # nobody has said that there is such a person
    path = f"/Users/{(await push(company, 'POST', '/Users', ADA)).json()['id']}"
    assert await inside(company, token)
    assert not await inside(company, company.issuer.token(sub="grace"))
    async with company.console.browsing() as browser:
        await company.signed_in(browser)
        for change, again in (("False", "True"), ("delete", "")):
            assert (await browser.open("/console/")).status_code == 200
            if again:
                await patch(company, path, {"op": "replace", "path": "active", "value": change})
            else:
                await push(company, "DELETE", path)
            assert await inside(company, token)  # remembered, until the announcement is heard
            await hear(company)
            assert not await inside(company, token)
            assert (await browser.open("/console/")).status_code == 303
            if again:
                await patch(company, path, {"op": "replace", "path": "active", "value": again})
                assert await inside(company, token)
                await company.signed_in(browser)


async def test_a_session_of_the_console_goes_by_the_groups_of_now(database_url: str, issuer: Issuer) -> None:
    def of(rest: Rest) -> TrustedIssuer:
        rules = (
            MappingRule({}, rest.tenant, frozenset({Role.AUDITOR}), groups=("auditors",)),
            MappingRule({"groups": "llm-users"}, rest.tenant, frozenset({Role.INVOKER}), groups=("staff",)),
        )
        return replace(trusted(issuer)(rest), rules=rules, provisioning=Provisioning("sub", "externalId"))

    async with open_console(database_url, trusted=of) as console:
        company = Company(console, issuer, Clock())
        gate = company.console.sessions.authenticator
        ada = (await push(company, "POST", "/Users", ADA)).json()["id"]
        staff = (await push(company, "POST", "/Groups", {"displayName": "staff"})).json()["id"]
        auditors = (await push(company, "POST", "/Groups", {"displayName": "auditors"})).json()["id"]

        async def members(group: str, action: str) -> None:
            change = {"op": action, "path": "members", "value": [{"value": ada}]}
            await patch(company, f"/Groups/{group}", change)
            gate.changed(Changed(EVERYTHING))  # nothing is subscribed in these applications

        async with console.browsing() as browser:
            asked = await company.asked(browser)
            assert (await company.back(browser, asked, company.id_token(asked))).status_code == 403
            await members(staff, "add")
            await company.signed_in(browser)
            statuses = []
            for group, action in ((auditors, "add"), (auditors, "remove"), (staff, "remove")):
                statuses.append((await browser.open("/console/audit")).status_code)
                await members(group, action)
            statuses.append((await browser.open("/console/audit")).status_code)
            assert statuses == [403, 200, 403, 303]


async def test_whom_the_mirror_does_not_know_may_be_let_in(database_url: str, issuer: Issuer) -> None:
    plain = trusted(issuer)
    mirrored = Provisioning("email", "userName", required=False)
    async with open_console(
        database_url, trusted=lambda rest: replace(plain(rest), provisioning=mirrored)
    ) as console:
        company = Company(console, issuer, Clock())
        assert await inside(company, issuer.token(email="ADA@example.org"))
        assert await inside(company, issuer.token())
        path = f"/Users/{(await push(company, 'POST', '/Users', ADA | {'active': False})).json()['id']}"
        assert not await inside(company, issuer.token(email="ADA@example.org", jti="2"))
        await push(company, "DELETE", path)
        assert not await inside(company, issuer.token(email="ada@example.org", jti="3"))
        assert await inside(company, issuer.token(email="grace@example.org"))


async def test_who_was_deleted_stays_out_whoever_has_the_name_now(database_url: str, issuer: Issuer) -> None:
    plain = trusted(issuer)
    mirrored = Provisioning("sub", "externalId", required=False)
    async with open_console(
        database_url, trusted=lambda rest: replace(plain(rest), provisioning=mirrored)
    ) as console:
        company = Company(console, issuer, Clock())
        first = (await push(company, "POST", "/Users", ADA)).json()["id"]
        other = (await push(company, "POST", "/Users", {"userName": "grace", "externalId": "grace"})).json()
        await push(company, "DELETE", f"/Users/{first}")
        await push(company, "DELETE", f"/Users/{other['id']}")
        again = await push(company, "POST", "/Users", ADA | {"externalId": "another"})
        assert again.status_code == 201
        renamed = ADA | {"userName": "grace", "externalId": "another"}
        assert (await push(company, "PUT", f"/Users/{again.json()['id']}", renamed)).status_code == 200
        for subject in ("ada", "grace"):
            assert not await inside(company, issuer.token(sub=subject)), subject
        assert await inside(company, issuer.token(sub="another"))
        assert await names(company, "/Users") == ["grace"]
        database = console.rest.services.access.database
        async with database.system_transaction() as tx:
            # Other tests leave some of theirs in the same database.
            assert await remove_forgotten(tx, company.clock.now() + KEPT) >= 2
        assert await inside(company, issuer.token(sub="ada", jti="2"))


async def test_a_person_is_found_in_any_spelling_of_the_name(database_url: str, issuer: Issuer) -> None:
    plain = trusted(issuer)
    mirrored = Provisioning("email", "userName", required=False)
    async with open_console(
        database_url, trusted=lambda rest: replace(plain(rest), provisioning=mirrored)
    ) as console:
        company = Company(console, issuer, Clock())
        gone = {"userName": "jose\u0301@example.org", "active": False}
        await push(company, "POST", "/Users", gone)
        for spelling in ("jos\u00e9@example.org", "JOS\u00c9@Example.org", "jose\u0301@example.org"):
            assert not await inside(company, issuer.token(email=spelling)), spelling
        assert await inside(company, issuer.token(email="jose@example.org"))


async def test_a_provider_finds_out_what_is_supported(company: Company) -> None:
    shown = (await push(company, "GET", "/ServiceProviderConfig")).json()
    parts = {name: part for name, part in shown.items() if isinstance(part, dict)}
    supported = {name: part["supported"] for name, part in parts.items() if "supported" in part}
    assert supported == {
        "patch": True,
        "bulk": False,
        "filter": True,
        "changePassword": False,
        "sort": False,
        "etag": False,
    }
    types = (await push(company, "GET", "/ResourceTypes")).json()["Resources"]
    assert [(each["name"], each["endpoint"]) for each in types] == [("User", "/Users"), ("Group", "/Groups")]
