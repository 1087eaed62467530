"""What the Python client takes from its environment, and what it administers, against a running service."""

import asyncio
import json
import ssl
import time
import typing

import httpx2
import pytest

from sluice_client import (
    AsyncSluice,
    InvalidArgumentsError,
    NotFoundError,
    Sluice,
    SluiceError,
    UnauthenticatedError,
)
from sluice_client.arguments import RedactArguments, RestoreArguments
from tests.e2e.running import Service


@pytest.fixture
def at_hand(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_URL", service.url)
    monkeypatch.setenv("SLUICE_API_KEY", service.key)


def test_the_environment_names_address_and_key(at_hand: None, scope: str) -> None:
    with Sluice() as sluice:
        assert sluice.redact("I am John Doe.", scope=scope).text == "I am [PERSON_1]."
        assert sluice.restore("[PERSON_1]", scope=scope).text == "John Doe"
    with Sluice(key="slc_00000000_none") as other, pytest.raises(UnauthenticatedError):
        other.list_middleware()


def test_an_http_client_of_the_caller_sends_and_stays_open(service: Service) -> None:
    sent: list[str] = []
    hooks = {"request": [lambda request: sent.append(request.url.path)]}
    with httpx2.Client(event_hooks=hooks, trust_env=False) as own:
        for _ in range(2):
            with Sluice(service.url, service.key, http_client=own) as sluice:
                sluice.list_middleware()
        assert not own.is_closed
    assert sent == ["/api/v1/middleware"] * 2


def test_a_context_of_certificates_is_the_one_that_is_used(service: Service) -> None:
    context = ssl.create_default_context()
    with Sluice(service.url, service.key, verify=context) as sluice:
        assert sluice._options.trust is context
        assert sluice.health().ready
    with Sluice(service.url, verify=False) as sluice:
        assert sluice._options.trust is not None
        assert sluice._options.trust.verify_mode is ssl.CERT_NONE


def test_the_typed_arguments_are_those_of_the_service(at_hand: None) -> None:
    with Sluice() as sluice:
        schemas = {one.name: one.input_schema["properties"] for one in sluice.list_middleware()}
    assert set(typing.get_type_hints(RedactArguments)) == set(schemas["pii_redaction"])
    assert {"scope", *typing.get_type_hints(RestoreArguments)} == set(schemas["pii_restoration"])


def test_messages_are_there_for_a_conversation_and_for_nothing_else(at_hand: None, scope: str) -> None:
    with Sluice() as sluice:
        safe = sluice.redact([{"role": "user", "content": "I am John Doe."}], scope=scope)
        assert safe.messages == [{"role": "user", "content": "I am [PERSON_1]."}]
        with pytest.raises(ValueError, match="messages"):
            _ = safe.text
        with pytest.raises(ValueError, match="no messages"):
            _ = sluice.redact("I am John Doe.", scope=scope).messages


def test_keys_are_made_used_rotated_and_revoked(service: Service) -> None:
    with Sluice(service.url, service.key) as sluice:
        made = sluice.keys.create(["invoker"], name="chat")
        assert sluice.keys.get(made["id"])["name"] == "chat"
        with Sluice(service.url, made["key"]) as chat:
            assert chat.list_middleware()
        rotated = sluice.keys.rotate(made["id"], overlap_s=0)
        with Sluice(service.url, rotated["key"]) as chat:
            assert chat.list_middleware()
        sluice.keys.revoke(made["id"])
        assert made["id"] in {key["id"] for key in sluice.keys.list() if key["revoked"]}
        with Sluice(service.url, rotated["key"]) as chat, pytest.raises(UnauthenticatedError):
            chat.list_middleware()
        with pytest.raises(NotFoundError):
            sluice.keys.get("00000000")


def test_what_was_erased_is_not_restored_and_the_log_has_it(service: Service, scope: str) -> None:
    with Sluice(service.url, service.key) as sluice:
        sluice.redact("I am John Doe and this is Jane Smith.", scope=scope)
        sluice.erasures.handle(scope, "PERSON_1")
        assert sluice.restore("[PERSON_1] [PERSON_2]", scope=scope).text == "[PERSON_1] Jane Smith"
        sluice.erasures.scope(scope)
        assert sluice.restore("[PERSON_2]", scope=scope).text == "[PERSON_2]"
        events = sluice.audit.events(scope=scope, most=50)
        assert {"middleware.invoke"} < {event["action"] for event in events}
        assert len(sluice.audit.events(most=3)) == 3


async def test_a_person_is_found_previewed_and_erased_with_a_receipt(service: Service, scope: str) -> None:
    values, reason = ["JOHN  doe", {"value": "Jane Smith", "type": "PERSON"}], "Request 2026-114"
    async with AsyncSluice(service.url, service.key) as sluice:
        await sluice.redact("I am John Doe and this is Jane Smith.", scope=scope)
        assert (await sluice.subjects.search(values, reason))["by_value"][0] == 0, "another spelling"
        page = await sluice.subjects.search(values, reason, variants=True, limit=1000)
        assert next(group for group in page["items"] if group["scope"] == scope)["count"] == 2
        assert {group["type"] for group in page["items"]} == {"PERSON"}
        seen = await sluice.erasures.preview(reason, values=values, variants=True)
        assert (seen["total"], seen["by_value"]) == (sum(page["by_value"]), page["by_value"])
        assert (await sluice.restore("[PERSON_1]", scope=scope)).text == "John Doe", (
            "a preview erases nothing"
        )
        job = await sluice.erasures.order(reason, values=values, variants=True)
        assert (job["state"], job["total"]) == ("running", seen["total"])
        until = time.monotonic() + 45
        while job["state"] != "done" and time.monotonic() < until:
            await asyncio.sleep(0.2)
            job = await sluice.erasures.get(job["id"])
        assert job["counts"] == {"PERSON": seen["total"]}
        assert job["receipt"].startswith("sluice erasure receipt 1\n")
        assert (await sluice.restore("[PERSON_1]", scope=scope)).text == "[PERSON_1]"
        with pytest.raises(NotFoundError):
            await sluice.erasures.get("0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11")
        with pytest.raises(InvalidArgumentsError, match="one of values, scopes and tenant"):
            await sluice.erasures.order(reason, values=values, scopes=[scope])


def test_the_log_gives_its_keys_checkpoints_proofs_and_counts(service: Service, scope: str) -> None:
    with Sluice(service.url, service.key) as sluice:
        sluice.redact("I am John Doe.", scope=scope)
        event = sluice.audit.events(most=1)[0]["id"]
        until = time.monotonic() + 45
        # What was stored a moment ago is not sealed yet.
        while True:
            try:
                proofs = sluice.audit.proofs([event])
                break
            except SluiceError:
                assert time.monotonic() < until
                time.sleep(0.2)
        head, *lines = map(json.loads, proofs.splitlines())
        assert [json.loads(line["event"])["id"] for line in lines] == [event.replace("-", "")], head
        name, size, *_ = sluice.audit.checkpoint().splitlines()
        assert sluice.audit.keys()["items"][-1]["key"].startswith(f"{name}+")
        assert name in sluice.audit.checkpoint(old=int(size))
        rows = sluice.audit.counts(by=["action", "outcome"])["items"]
        assert {"action", "outcome", "events"} <= set(rows[0])
        with pytest.raises(NotFoundError):
            sluice.audit.content(event, "Complaint 2026-114")
        with pytest.raises(NotFoundError):
            sluice.audit.end_user(event, "Complaint 2026-114")


async def test_policies_change_over_the_version_that_was_read(service: Service) -> None:
    async with AsyncSluice(service.url, service.key, transport="mcp") as sluice:
        before = await sluice.policies.get()
        changed = await sluice.policies.change({"limits": {}}, expected_version=before["version"])
        assert changed["version"] == before["version"] + 1
        versions = [one["version"] for one in await sluice.policies.versions()]
        assert changed["version"] in versions
        replaced = await sluice.policies.replace(before["policy"], expected_version=changed["version"])
        assert replaced["policy"] == before["policy"]
        assert await sluice.keys.list()
        assert await sluice.audit.events(most=1)
