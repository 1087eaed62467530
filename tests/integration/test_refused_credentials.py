"""Refused credentials are on record as sums: of each network, reason and minute one event, whatever the flood."""

import random
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from app.core.access import SYSTEM_TENANT, ApiKey
from app.core.audit import AuditEvent
from app.core.errors import AuditUnavailableError, UnauthenticatedError
from app.services.access.access import HOST
from app.services.access.refused_credentials import MOST_SUMS, RefusedCredentials
from app.services.audit.export import moment_text
from app.store.database import Database
from tests.integration.access_setup import Replica, replica_on
from tests.integration.rest_app import Rest, open_rest

ACTION = "access.authenticate"


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
def network() -> str:
    """Return the beginning of addresses that no other test has."""
    return f"10.{random.randrange(256)}.{random.randrange(256)}"


async def refused(replica: Replica, bearer: str | None, address: str) -> None:
    with pytest.raises(UnauthenticatedError):
        await replica.access.authenticator.authenticate(bearer, address)


async def sums(replica: Replica, tenant: str) -> list[AuditEvent]:
    await replica.access.authenticator.record_refused()
    return await replica.events(tenant, action=ACTION)


async def test_a_flood_is_one_event_of_the_tenant_whose_key_it_names(
    replica: Replica, tenant: str, network: str
) -> None:
    await replica.tenants.create(HOST, tenant)
    made = await replica.key(tenant)
    guesses = [str(ApiKey(made.key.id, ApiKey.generate().secret)) for _ in range(300)]
    began = replica.clock.now()
    for number, guess in enumerate(guesses):
        await refused(replica, guess, f"{network}.{number % 256}")
    replica.clock.advance(30)
    await refused(replica, guesses[0], f"{network}.1")
    await refused(replica, guesses[0], "2001:db8:7::1")
    await replica.access.authenticator.authenticate(str(made.key), f"{network}.1")
    events = await sums(replica, tenant)
    assert await sums(replica, tenant) == events
    told = {event.details["network"]: event for event in events}
    assert set(told) == {f"{network}.0/24", "2001:db8:7::/48"}
    flood = told[f"{network}.0/24"]
    assert (flood.actor, flood.outcome, flood.error_code) == ("nobody", "refused", "unauthenticated")
    assert (dict(flood.counts), flood.address_class) == ({"attempts": 301}, "private")
    assert (flood.details["reason"], flood.details["key"]) == ("secret", made.key.id)
    first, last = str(flood.details["first"]), str(flood.details["last"])
    assert (first, last) == tuple(
        f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}" for moment in (began, began + timedelta(seconds=30))
    )
    for secret in (made.key.secret, *(guess[13:] for guess in guesses)):
        assert secret not in repr(events)


async def test_the_reason_is_on_record_and_not_in_the_answer(
    replica: Replica, tenant: str, network: str
) -> None:
    await replica.tenants.create(HOST, tenant)
    expiring = await replica.key(tenant, expires=replica.clock.now() + timedelta(seconds=10))
    revoked, near = await replica.key(tenant), await replica.key(tenant, cidrs=["192.0.2.0/24"])
    await replica.access.revoke_key(HOST, revoked.key.id)
    rotated = await replica.key(tenant)
    await replica.access.rotate_key(HOST, rotated.key.id, overlap_s=10)
    await replica.access.authenticator.authenticate(str(rotated.key), None)
    replica.clock.advance(11)
    for made in (expiring, revoked, near, rotated):
        await refused(replica, str(made.key), f"{network}.9")
    reasons = {str(event.details["key"]): event.details["reason"] for event in await sums(replica, tenant)}
    keys = [made.key.id for made in (expiring, revoked, near, rotated)]
    assert [reasons[key] for key in keys] == ["expired", "ended", "address", "secret"]
    for bearer in (None, "", "sk-of-somebody-else", str(ApiKey.generate())):
        await refused(replica, bearer, f"{network}.9")
    own = [
        event
        for event in await sums(replica, SYSTEM_TENANT)
        if event.details.get("network") == f"{network}.0/24"
    ]
    counted = {event.details["reason"]: event.counts["attempts"] for event in own}
    assert counted == {"missing": 2, "malformed": 1, "unknown": 1}
    assert "somebody" not in repr(own)


async def test_many_networks_are_few_events_and_none_is_lost_or_counted_twice(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[AuditEvent] = []
    down = True

    async def record(_audit: Any, *events: AuditEvent) -> None:
        if down:
            raise AuditUnavailableError("down")
        recorded.extend(events)

    monkeypatch.setattr(type(replica.audit), "record", record)
    refusals = RefusedCredentials()
    for number in range(3 * MOST_SUMS):
        refusals.note("unknown", f"2001:db8:{number:x}::1", replica.clock.now())
        if number == MOST_SUMS // 2:
            with pytest.raises(AuditUnavailableError):
                await refusals.record(replica.audit)
    down = False
    await refusals.record(replica.audit)
    await refusals.record(replica.audit)
    assert len(recorded) == MOST_SUMS + 1
    assert sum(event.counts["attempts"] for event in recorded) == 3 * MOST_SUMS


async def test_sums_that_could_not_be_stored_join_those_that_came_meanwhile(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, began, recorded = RefusedCredentials(), replica.clock.now(), list[AuditEvent]()
    moments = [began + timedelta(seconds=second) for second in (5, 0, 9, 2, 7)]

    async def fail(_audit: Any, *_events: AuditEvent) -> None:
        for moment in moments[3:]:  # while the others are being stored
            refusals.note("unknown", "192.0.2.7", moment)
        raise AuditUnavailableError("down")

    async def record(_audit: Any, *events: AuditEvent) -> None:
        recorded.extend(events)

    for moment in moments[:3]:
        refusals.note("unknown", "192.0.2.1", moment)
    monkeypatch.setattr(type(replica.audit), "record", fail)
    with pytest.raises(AuditUnavailableError):
        await refusals.record(replica.audit)
    monkeypatch.setattr(type(replica.audit), "record", record)
    await refusals.record(replica.audit)
    (event,) = recorded
    assert event.counts["attempts"] == len(moments)
    assert (event.details["first"], event.details["last"]) == (
        moment_text(moments[1]),
        moment_text(moments[2]),
    )


async def test_a_network_that_is_known_counts_by_itself_however_many_others_there_are(
    replica: Replica,
) -> None:
    refusals = RefusedCredentials()
    for number in range(MOST_SUMS):
        refusals.note("unknown", f"2001:db8:{number:x}::1", replica.clock.now())
    for network in ("2001:db8:7::9", "2001:db8:ffff::1"):
        refusals.note("unknown", network, replica.clock.now())
    counted = {attempt.network: own.number for attempt, own in refusals._sums.items()}
    assert (counted["2001:db8:7::/48"], counted[None], len(counted)) == (2, 1, MOST_SUMS + 1)


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as running:
        yield running


@pytest.mark.in_turn("database_url")
async def test_every_door_over_rest_counts_what_it_refuses(rest: Rest) -> None:
    made = await rest.services.access.create_key(HOST, ["invoker"], tenant=rest.tenant)
    wrong = str(ApiKey(made.key.id, ApiKey.generate().secret))
    doors = [
        ("GET", "/api/v1/middleware", "authorization"),
        ("POST", "/api/v1/middleware/timestamp_injector/invoke", "authorization"),
        ("GET", "/openai/v1/models", "authorization"),
        ("POST", "/anthropic/v1/messages", "x-api-key"),
        ("POST", "/integrations/litellm/beta/litellm_basic_guardrail_api", "x-api-key"),
    ]
    for method, path, header in doors:
        value = f"Bearer {wrong}" if header == "authorization" else wrong
        answer = await rest.http.request(method, path, headers={header: value}, json={})
        assert answer.status_code == 401, path
    await rest.services.authenticator.record_refused()
    page = await rest.call("GET", f"/api/v1/audit/events?action={ACTION}", roles=["auditor"])
    (event,) = page.json()["items"]
    assert (event["counts"], event["details"]["key"]) == ({"attempts": len(doors)}, made.key.id)
    assert wrong[13:] not in page.text
