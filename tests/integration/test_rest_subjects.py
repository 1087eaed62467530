"""A person's values are found by any spelling, within their tenant, for a reason, and never shown."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.content.handles import Handle
from app.core.contracts.middleware import VaultOptions
from app.engines.cipher import KeyKeeper
from tests.factories import as_owner, caller_of
from tests.integration.rest_app import Rest, open_rest

PATH = "/api/v1/subjects/search"
REASON = "Request for access 2026-114"


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


async def search(rest: Rest, *values: Any, **more: Any) -> Any:
    body = {"values": [each if isinstance(each, dict) else {"value": each} for each in values]}
    options = {name: more.pop(name) for name in ("params", "tenant") if name in more}
    answer = await rest.call("POST", PATH, {**body, "reason": REASON, **more}, roles=["eraser"], **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def store(rest: Rest, scope: str, *values: tuple[str, str], tenant: str | None = None) -> None:
    await rest.vault.store(caller_of(tenant or rest.tenant), scope, *values)


async def forget(rest: Rest, scope: str) -> None:
    """Leave a scope as a release without these digests stored it."""
    await as_owner(
        rest.vault.database,
        "UPDATE entry SET blind = NULL, blind_normal = NULL WHERE tenant = :tenant AND scope = :scope",
        tenant=rest.tenant,
        scope=scope,
    )


async def test_every_spelling_is_found_and_no_neighbour(rest: Rest) -> None:
    await store(rest, "talk-1", ("PERSON", "José García"), ("PHONE", "+1 (415) 555-2671"))
    await store(rest, "talk-2", ("PERSON", "JOSE  GARCIA"), ("CARD", "4111-1111-1111-1111"))
    await store(rest, "talk-3", ("PERSON", "Jose Garciaz"), ("PHONE", "+1 415 555 2672"))
    await store(rest, "talk-1", ("PERSON", "José García"), tenant=f"{rest.tenant}-x")
    exact = await search(rest, "José García", "jose garcia")
    assert (exact["scopes"], exact["counts"], exact["by_value"]) == (1, {"PERSON": 1}, [1, 0])
    wide = await search(rest, "jose garcia", "415.555.2671", "4111111111111111", variants=True)
    assert (wide["scopes"], wide["by_value"], wide["indexed"]) == (2, [2, 1, 1], True)
    assert wide["counts"] == {"CARD": 1, "PERSON": 2, "PHONE": 1}
    assert [(item["scope"], item["type"], item["count"]) for item in wide["items"]] == [
        *(("talk-1", "PERSON", 1), ("talk-1", "PHONE", 1)),
        *(("talk-2", "CARD", 1), ("talk-2", "PERSON", 1)),
    ]
    assert all(item["first"] == item["last"] for item in wide["items"])
    assert "Jos" not in json.dumps(wide) and "2671" not in json.dumps(wide)


async def test_a_type_narrows_and_an_ended_scope_is_not_shown(rest: Rest) -> None:
    await store(rest, "talk-1", ("PERSON", "Paris"), ("LOCATION", "Paris"))
    await rest.vault.store(caller_of(rest.tenant), "folded", "PARIS", options=VaultOptions(canonical=True))
    assert (await search(rest, "Paris"))["counts"] == {"LOCATION": 1, "PERSON": 2}
    typed = await search(rest, {"value": "Paris", "type": "PERSON"}, {"value": "Paris", "type": "EMAIL"})
    assert (typed["counts"], typed["by_value"]) == ({"PERSON": 2}, [2, 0])
    ended = {"expires": "2001-01-01T00:00:00Z"}
    await rest.call("PATCH", "/api/v1/vault/scopes/talk-1", ended, roles=["eraser"])
    assert (await search(rest, "Paris", variants=True))["counts"] == {"PERSON": 1}


async def test_pages_and_totals_hold_while_the_index_is_filled(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await store(rest, f"talk-{number}", ("EMAIL", "ada@example.com"), ("EMAIL", "bob@example.com"))
    for number in (1, 4):
        await forget(rest, f"talk-{number}")
    # One scope has entries of both kinds: its first was stored by an older release.
    await store(rest, "talk-4", ("CUSTOM", "ADA@example.com"))
    for variants in (False, True):
        seen: list[str] = []
        params: dict[str, Any] = {"limit": 2}
        while True:
            page = await search(rest, "ada@example.com", variants=variants, params=params)
            assert (page["indexed"], page["scopes"]) == (False, 5)
            assert page["counts"] == ({"CUSTOM": 1, "EMAIL": 5} if variants else {"EMAIL": 5})
            seen += [f"{item['scope']} {item['type']}" for item in page["items"]]
            if page["next"] is None:
                break
            params["cursor"] = page["next"]
        custom = ["talk-4 CUSTOM"] if variants else []
        assert seen == [*(f"talk-{number} EMAIL" for number in range(4)), *custom, "talk-4 EMAIL"]
    await rest.vault.service.index.fill()

    def refuse(*_given: Any) -> None:
        raise AssertionError("A data key was opened.")

    monkeypatch.setattr(KeyKeeper, "open", refuse)
    filled = await search(rest, "Ada@Example.com", variants=True)
    assert (filled["indexed"], filled["scopes"], filled["by_value"]) == (True, 5, [6])


async def test_what_cannot_be_opened_is_counted_and_not_called_absent(rest: Rest) -> None:
    await store(rest, "talk-1", ("EMAIL", "ada@example.com"))
    await forget(rest, "talk-1")
    broken = "UPDATE entry SET ciphertext = lookup WHERE tenant = :tenant"
    await as_owner(rest.vault.database, broken, tenant=rest.tenant)
    answer = await search(rest, "ada@example.com")
    assert (answer["indexed"], answer["unreadable"], answer["by_value"]) == (False, 1, [0])
    await as_owner(rest.vault.database, "DELETE FROM entry WHERE tenant = :tenant", tenant=rest.tenant)


@pytest.mark.in_turn("database_url")
async def test_a_search_needs_the_role_a_reason_and_values(rest: Rest) -> None:
    body: dict[str, Any] = {"values": [{"value": "ada@example.com"}], "reason": REASON}
    for roles in (["auditor"], ["restorer", "invoker"], ["operator"]):
        assert (await rest.call("POST", PATH, body, roles=roles)).status_code == 403
    wrong = [
        ({"values": body["values"]}, "/reason"),
        ({**body, "reason": "  "}, "/reason"),
        ({**body, "reason": "Erase ADA@example.com"}, "/reason"),
        ({**body, "values": []}, "/values"),
        ({**body, "values": [{"value": " "}]}, "/values"),
        ({**body, "values": [{"value": "a", "type": "person"}]}, "/values/0/type"),
        ({**body, "values": [{"value": str(number)} for number in range(61)]}, "/values"),
    ]
    for sent, pointer in wrong:
        answer = await rest.call("POST", PATH, sent, roles=["eraser"])
        assert answer.status_code == 422, sent
        assert (answer.json()["code"], answer.json()["pointer"]) == ("invalid_arguments", pointer)
    cursor = await rest.call("POST", PATH, body, roles=["eraser"], params={"cursor": "x"})
    assert cursor.json()["code"] == "invalid_arguments"


async def test_a_minute_has_sixty_values_of_a_tenant_and_each_search_is_on_record(rest: Rest) -> None:
    names = [f"name {number}" for number in range(59)]
    await store(rest, "talk-1", ("PERSON", "name 1"))
    assert sum((await search(rest, *names))["by_value"]) == 1
    assert (await search(rest, "name 1"))["by_value"] == [1]
    body = {"values": [{"value": "name 1"}], "reason": REASON}
    refused = await rest.call("POST", PATH, body, roles=["eraser"])
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert 0 < int(refused.headers["retry-after"]) <= 60
    events = await rest.call("GET", "/api/v1/audit/events?action=subject.search", roles=["auditor"])
    assert [(event["outcome"], event["details"].get("values")) for event in events.json()["items"]] == [
        *(("refused", None), ("ok", 1), ("ok", 59)),
    ]
    newest, oldest = events.json()["items"][1:]
    assert newest["details"]["reason"] == REASON and newest["in_hmac"] != oldest["in_hmac"]
    assert "name 1" not in events.text
    # Another tenant has a minute of its own, in which it finds nothing of this one.
    await rest.services.tenants.create(caller_of("system"), f"{rest.tenant}-x")
    assert (await search(rest, "name 1", variants=True, tenant=f"{rest.tenant}-x"))["scopes"] == 0


async def test_an_erased_value_is_found_no_more(rest: Rest) -> None:
    await store(rest, "talk-1", ("PERSON", "Ada"), ("PERSON", "Bob"))
    await rest.vault.service.erase_handle(caller_of(rest.tenant), "talk-1", Handle("PERSON", 1))
    assert (await search(rest, "ada", "bob", variants=True))["by_value"] == [0, 1]
