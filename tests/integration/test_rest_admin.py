"""Vault, record, keys, tenants and policies over REST: what changes, what is shown, what is on record."""

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.core.access import SYSTEM_TENANT
from app.core.contracts.policy import Limits
from app.services.access.traffic import Traffic
from tests.integration.rest_app import Rest, open_rest

pytestmark = pytest.mark.in_turn("database_url")

TEXT = "Jane Smith, jane@example.com, 123-45-6789; John Doe"


@pytest.fixture
async def rest(database_url: str) -> Any:
    async with open_rest(database_url) as opened:
        yield opened


async def redacted(rest: Rest, scope: str, text: str = TEXT) -> str:
    answer = await rest.invoke("pii_redaction", [{"type": "text", "text": text}], {"scope": scope})
    assert answer.status_code == 200
    return str(answer.json()["content"][0]["text"])


async def restored(rest: Rest, scope: str, text: str) -> str:
    answer = await rest.invoke("pii_restoration", [{"type": "text", "text": text}], {"scope": scope})
    return str(answer.json()["content"][0]["text"])


async def actions(rest: Rest) -> list[tuple[str, str]]:
    page = await rest.call("GET", "/api/v1/audit/events?limit=1000", roles=["auditor"])
    return [(event["action"], event["outcome"]) for event in page.json()["items"]]


async def test_a_scope_shows_counts_and_handles_and_originals_only_to_a_restorer(rest: Rest) -> None:
    await redacted(rest, "chat-1")
    scope = (await rest.call("GET", "/api/v1/vault/scopes/chat-1", roles=["operator"])).json()
    assert scope["counts"] == {"PERSON": 2, "EMAIL": 1, "SSN": 1}
    assert scope["state"] == "active"
    entries = "/api/v1/vault/scopes/chat-1/entries"
    plain = await rest.call("GET", entries, roles=["auditor"])
    assert {entry["handle"] for entry in plain.json()["items"]} == {
        "PERSON_1",
        "PERSON_2",
        "EMAIL_1",
        "SSN_1",
    }
    assert "Jane" not in plain.text
    full = await rest.call("GET", f"{entries}?originals=true", roles=["restorer"])
    assert {"handle": "EMAIL_1", "original": "jane@example.com"} in full.json()["items"]
    assert (await actions(rest))[:1] == [("vault.entries", "ok")]


async def test_lists_are_paged_to_the_end_without_gaps(rest: Rest) -> None:
    for number in range(5):
        await redacted(rest, f"page-{number}")
    seen: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = (await rest.call("GET", "/api/v1/vault/scopes", params=params)).json()
        seen += [scope["id"] for scope in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [f"page-{number}" for number in range(5)]


async def test_an_original_is_revealed_with_a_reason_that_is_on_record_first(rest: Rest) -> None:
    await redacted(rest, "team/chat")
    path = "/api/v1/vault/scopes/team/chat/entries/EMAIL_1/reveal"
    said = {"reason": "Complaint 2026-114"}
    shown = await rest.call("POST", path, said, roles=["restorer"])
    assert shown.json() == {"handle": "EMAIL_1", "original": "jane@example.com"}
    for body, roles, status in (
        ({}, ["restorer"], 422),
        ({"reason": "  "}, ["restorer"], 422),
        (said, ["auditor", "eraser", "operator"], 403),
    ):
        answer = await rest.call("POST", path, body, roles=roles)
        assert (answer.status_code, "jane@" in answer.text) == (status, False), body
    nobody = await rest.call("POST", path.replace("EMAIL_1", "EMAIL_2"), said, roles=["restorer"])
    assert nobody.status_code == 404
    page = await rest.call(
        "GET", "/api/v1/audit/events?action=vault.reveal&scope=team/chat", roles=["auditor"]
    )
    events = [(event["outcome"], event["details"].get("reason")) for event in page.json()["items"]]
    assert ("ok", said["reason"]) in events
    assert ("refused", said["reason"]) in events
    assert "jane@" not in page.text


async def test_scopes_are_sought_by_the_beginning_of_their_names(rest: Rest) -> None:
    for name in ("case-1", "case-2", "Case-3", "c_se-4", "other"):
        await redacted(rest, name)
    for prefix, names in (("case", ["case-1", "case-2"]), ("c_", ["c_se-4"]), ("", 5), ("ase", [])):
        page = await rest.call("GET", "/api/v1/vault/scopes", params={"prefix": prefix}, roles=["eraser"])
        listed = [scope["id"] for scope in page.json()["items"]]
        assert (listed if prefix else len(listed)) == names


async def test_an_expiry_can_be_moved_and_one_that_has_passed_ends_the_scope(rest: Rest) -> None:
    text = await redacted(rest, "chat-2")
    path = "/api/v1/vault/scopes/chat-2"
    later = (datetime.now(UTC) + timedelta(days=400)).isoformat()
    moved = await rest.call("PATCH", path, {"expires": later}, roles=["operator"])
    assert datetime.fromisoformat(moved.json()["expires"]) == datetime.fromisoformat(later)
    assert (await rest.call("PATCH", path, {"expires": None}, roles=["eraser"])).json()["expires"] is None
    assert (await rest.call("PATCH", path, {"expires": "2001-01-01T00:00:00Z"})).status_code == 200
    assert (await rest.call("GET", path)).status_code == 404
    assert await restored(rest, "chat-2", text) == text


async def test_erasing_a_handle_a_value_and_a_scope_gives_receipts_and_forgets(rest: Rest) -> None:
    text = await redacted(rest, "chat-3")
    await redacted(rest, "chat-4", "John Doe again")
    handle = await rest.call("DELETE", "/api/v1/vault/scopes/chat-3/entries/SSN_1", roles=["eraser"])
    assert (handle.status_code, handle.json()["counts"], handle.json()["kind"]) == (200, {"SSN": 1}, "handle")
    value = await rest.call("POST", "/api/v1/vault/erasures", {"value": "John Doe"}, roles=["eraser"])
    assert (value.status_code, value.json()["counts"], value.json()["scope"]) == (201, {"PERSON": 2}, None)
    assert "John" not in value.text
    after = await restored(rest, "chat-3", text)
    assert after == "Jane Smith, jane@example.com, [SSN_1]; [PERSON_2]"
    scope = await rest.call("DELETE", "/api/v1/vault/scopes/chat-3", roles=["eraser"])
    assert scope.json()["kind"] == "scope"
    assert await restored(rest, "chat-3", text) == text
    assert (await rest.call("DELETE", "/api/v1/vault/scopes/chat-3", roles=["eraser"])).status_code == 404
    for kind in ("handle", "value", "scope"):
        assert (f"vault.erase_{kind}", "ok") in await actions(rest)
    assert ("vault.erase_scope", "refused") in await actions(rest)


async def test_events_are_filtered_paged_and_exported(rest: Rest) -> None:
    for number in range(5):
        await redacted(rest, f"audited-{number % 2}")
    query = "/api/v1/audit/events?action=middleware.invoke&limit=2"
    first = (await rest.call("GET", query, roles=["auditor"])).json()
    second = (await rest.call("GET", f"{query}&cursor={first['next']}", roles=["auditor"])).json()
    third = (await rest.call("GET", f"{query}&cursor={second['next']}", roles=["auditor"])).json()
    ids = [event["id"] for page in (first, second, third) for event in page["items"]]
    assert len(ids) == len(set(ids)) == 5 and third["next"] is None
    assert ids == sorted(ids, reverse=True)
    scoped = await rest.call("GET", "/api/v1/audit/events?scope=audited-1", roles=["auditor"])
    assert len(scoped.json()["items"]) == 2
    future = await rest.call("GET", "/api/v1/audit/events?since=2100-01-01T00:00:00Z", roles=["auditor"])
    assert future.json() == {"items": [], "next": None, "since": "2100-01-01T00:00:00.000000Z"}
    lines = await rest.call("GET", "/api/v1/audit/export?action=middleware.invoke", roles=["auditor"])
    assert [json.loads(line)["id"] for line in lines.text.splitlines()] == ids
    table = await rest.call(
        "GET", "/api/v1/audit/export?format=csv&action=middleware.invoke", roles=["auditor"]
    )
    assert [row["id"] for row in csv.DictReader(io.StringIO(table.text))] == ids
    assert 'filename="audit.csv"' in table.headers["content-disposition"]


async def test_events_tell_who_what_and_how_much_but_no_content(rest: Rest) -> None:
    answer = await rest.invoke("pii_redaction", [{"type": "text", "text": TEXT}], {"scope": "s-1"})
    query = f"/api/v1/audit/events?request_id={answer.headers['x-request-id']}"
    page = await rest.call("GET", query, roles=["auditor"])
    (event,) = page.json()["items"]
    assert event["tenant"] == rest.tenant
    assert event["counts"] == {"PERSON": 2, "EMAIL": 1, "SSN": 1}
    assert event["blocks"] == 1 and event["bytes_in"] > len(TEXT)
    assert len(event["in_hmac"]) == len(event["out_hmac"]) == 64
    assert not any(word in page.text for word in ("Jane", "example.com", "6789", '"s-1"'))


async def test_a_key_is_shown_once_rotated_with_overlap_and_revoked(rest: Rest) -> None:
    made = await rest.call(
        "POST", "/api/v1/keys", {"roles": ["invoker"], "name": "a"}, roles=["key-custodian"]
    )
    old, key_id = made.json()["key"], made.json()["id"]

    async def works(key: str) -> bool:
        answer = await rest.http.get("/api/v1/middleware", headers={"authorization": f"Bearer {key}"})
        return answer.status_code == 200

    async def custody(method: str, path: str = "", body: Any = None) -> Any:
        return (await rest.call(method, f"/api/v1/keys/{key_id}{path}", body, roles=["key-custodian"])).json()

    assert await works(old)
    shown = await custody("GET")
    assert shown["name"] == "a" and "key" not in shown
    new = (await custody("POST", "/rotate"))["key"]
    assert new != old and await works(old) and await works(new)
    newest = (await custody("POST", "/rotate", {"overlap_s": 0}))["key"]
    assert [await works(key) for key in (old, new, newest)] == [False, False, True]
    assert (await custody("DELETE"))["revoked"] is not None
    assert not await works(newest)
    listed = await rest.call("GET", "/api/v1/keys", roles=["key-custodian"])
    assert key_id in {key["id"] for key in listed.json()["items"]}
    assert not any(secret in listed.text for secret in (old, new, newest))


async def test_a_key_with_networks_works_from_there_only(rest: Rest) -> None:
    for cidr, status in (("127.0.0.0/8", 200), ("10.0.0.0/8", 401)):
        body = {"roles": ["invoker"], "cidrs": [cidr]}
        made = await rest.call("POST", "/api/v1/keys", body, roles=["key-custodian"])
        headers = {"authorization": f"Bearer {made.json()['key']}"}
        assert (await rest.http.get("/api/v1/middleware", headers=headers)).status_code == status


async def test_another_tenants_things_look_as_if_they_were_not_there(rest: Rest) -> None:
    await redacted(rest, "private")
    own = await rest.key("invoker")
    other = f"o-{rest.tenant}"
    made = await rest.call(
        "POST", "/api/v1/tenants", {"name": other}, roles=["operator"], tenant=SYSTEM_TENANT
    )
    assert made.status_code == 201
    key_id = own.split("_")[1]
    for method, path, body in (
        ("GET", "/api/v1/vault/scopes/private", None),
        ("GET", "/api/v1/vault/scopes/private/entries?originals=true", None),
        ("PATCH", "/api/v1/vault/scopes/private", {"expires": None}),
        ("DELETE", "/api/v1/vault/scopes/private", None),
        ("DELETE", "/api/v1/vault/scopes/private/entries/PERSON_1", None),
        ("GET", f"/api/v1/keys/{key_id}", None),
        ("DELETE", f"/api/v1/keys/{key_id}", None),
        ("POST", f"/api/v1/keys/{key_id}/rotate", None),
        ("GET", f"/api/v1/policies?tenant={rest.tenant}", None),
        ("GET", f"/api/v1/policies/versions?tenant={rest.tenant}", None),
        ("PUT", f"/api/v1/policies?tenant={rest.tenant}&expected_version=0", {}),
        ("PATCH", f"/api/v1/policies?tenant={rest.tenant}&expected_version=0", {}),
    ):
        answer = await rest.call(method, path, body, tenant=other)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
    events = await rest.call("GET", "/api/v1/audit/events?limit=1000", tenant=other)
    assert {event["tenant"] for event in events.json()["items"]} == {other}
    assert (await rest.call("GET", "/api/v1/vault/scopes", tenant=other)).json()["items"] == []


async def test_the_tenant_system_administers_others_and_sees_nothing_that_they_store(rest: Rest) -> None:
    await redacted(rest, "private")
    key_id = (await rest.key("invoker")).split("_")[1]
    for path in ("/api/v1/vault/scopes/private", "/api/v1/vault/scopes/private/entries?originals=true"):
        assert (await rest.call("GET", path, tenant=SYSTEM_TENANT)).status_code == 404
    scopes = await rest.call("GET", "/api/v1/vault/scopes?limit=1000", tenant=SYSTEM_TENANT)
    events = await rest.call("GET", "/api/v1/audit/events?limit=1000", tenant=SYSTEM_TENANT)
    assert "private" not in {scope["id"] for scope in scopes.json()["items"]}
    assert {event["tenant"] for event in events.json()["items"]} == {SYSTEM_TENANT}
    seen = await rest.call("GET", f"/api/v1/keys/{key_id}", roles=["key-custodian"], tenant=SYSTEM_TENANT)
    assert (seen.status_code, seen.json()["tenant"]) == (200, rest.tenant)
    off = {"disabled": True}
    closed = await rest.call("PATCH", "/api/v1/tenants/system", off, roles=["operator"], tenant=SYSTEM_TENANT)
    assert closed.status_code == 409


async def test_a_disabled_tenant_is_refused_until_it_is_enabled_again(rest: Rest) -> None:
    async def switch(*, disabled: bool) -> None:
        path = f"/api/v1/tenants/{rest.tenant}"
        body = {"disabled": disabled}
        answer = await rest.call("PATCH", path, body, roles=["operator"], tenant=SYSTEM_TENANT)
        assert (answer.json()["disabled"] is not None) == disabled

    await rest.key("invoker")
    await switch(disabled=True)
    assert (await rest.call("GET", "/api/v1/middleware", roles=["invoker"])).status_code == 401
    await switch(disabled=False)
    assert (await rest.call("GET", "/api/v1/middleware", roles=["invoker"])).status_code == 200


async def test_policies_have_versions_and_a_change_that_was_overtaken_is_refused(rest: Rest) -> None:
    path = "/api/v1/policies"
    assert (await rest.call("GET", path, roles=["operator"])).json()["version"] == 0
    first = await rest.call("PUT", f"{path}?expected_version=0", {"scope_ttl_s": 60}, roles=["operator"])
    assert first.json()["version"] == 1
    late = await rest.call("PUT", f"{path}?expected_version=0", {}, roles=["operator"])
    assert (late.status_code, late.json()["details"]) == (409, {"version": 1})
    assert (await rest.call("PUT", f"{path}?expected_version=1", {}, roles=["operator"])).json()[
        "version"
    ] == 2
    versions = await rest.call("GET", f"{path}/versions?limit=1", roles=["operator"])
    assert versions.json()["items"][0]["version"] == 2
    older = await rest.call("GET", f"{path}/versions?tenant={rest.tenant}&cursor=2", roles=["operator"])
    assert [version["policy"]["scope_ttl_s"] for version in older.json()["items"]] == [60]
    wrong = await rest.call(
        "PUT", f"{path}?expected_version=2", {"allowed_middlewares": ["nothing"]}, roles=["operator"]
    )
    assert (wrong.status_code, wrong.json()["pointer"]) == (422, "/allowed_middlewares/0")


async def test_administration_is_held_to_a_rate_that_neither_policy_nor_invocations_touch(rest: Rest) -> None:
    few = Traffic(plain=Limits(requests_per_second=0.01, burst=2))
    rest.app.state.route_services = replace(rest.services, requests=few)
    await rest.put_policy({"limits": {"requests_per_second": 0.01, "burst": 1}})
    assert (await rest.call("GET", "/api/v1/policies")).status_code == 200
    for path in ("keys", "vault/scopes", "audit/events", "audit/export", "tenants", "middleware"):
        answer = await rest.call("GET", f"/api/v1/{path}")
        assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited"), path
        assert int(answer.headers["retry-after"]) >= 1
    item = [{"type": "text", "text": "hello"}]
    assert (await rest.invoke("timestamp_injector", item)).status_code == 200
    assert (await rest.invoke("timestamp_injector", item)).status_code == 429
    assert (await rest.call("GET", "/api/v1/keys", tenant=SYSTEM_TENANT)).status_code == 200
