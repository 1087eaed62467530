"""No custodian alone comes by a secret that restores: over REST, on both databases, on a clock that the test moves."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient, Response

from app.core.access import COMMAND_LINE, SYSTEM_TENANT, Caller, Role
from app.core.contracts.policy import CustodyPolicy, Policy
from app.edge.lifespan_state import Served
from app.services.access.access import HOST, AccessService
from tests.integration.rest_app import Rest, open_rest

pytestmark = pytest.mark.in_turn("database_url")

KEYS = "/api/v1/keys"
TEXT = "Write to odile.brandt@example.org"


@dataclass
class Custody:
    """The surface with a clock, and short words for what custodians do."""

    rest: Rest
    access: AccessService
    moment: datetime

    def now(self) -> datetime:
        return self.moment

    async def made(self, *roles: str, by: str | None = None, status: int | None = None) -> dict[str, Any]:
        """Return a new key; without ``by`` the host makes it."""
        if by is None:
            new = await self.access.create_key(HOST, roles, tenant=self.rest.tenant, override_unions=True)
            return {"id": new.key.id, "key": str(new.key)}
        body = {"roles": list(roles), "override_unions": True}
        answer = await self.send("POST", KEYS, by, body)
        assert answer.status_code == (status or 201), answer.text
        return dict(answer.json())

    async def send(self, method: str, path: str, key: str, body: Any = None) -> Response:
        headers = {"authorization": f"Bearer {key}"}
        return await self.rest.http.request(method, path, headers=headers, json=body)

    async def approve(self, key: dict[str, Any], by: str) -> Response:
        return await self.send("POST", f"{KEYS}/{key['id']}/approve", by)

    async def restores(self, key: str) -> bool:
        """Return whether ``key`` gets an original, from the middleware and from the list of entries alike."""
        context = [{"type": "text", "text": "[EMAIL_1]"}]
        body = {"context": context, "arguments": {"scope": "talk"}}
        answer = await self.send("POST", "/api/v1/middleware/pii_restoration/invoke", key, body)
        entries = await self.send("GET", "/api/v1/vault/scopes/talk/entries?originals=true", key)
        told = ["odile.brandt@example.org" in got.text for got in (answer, entries)]
        assert told in ([True, True], [False, False])
        assert answer.status_code == entries.status_code == (200 if told[0] else 403)
        return told[0]


@pytest.fixture
async def custody(database_url: str) -> AsyncIterator[Custody]:
    async with open_rest(database_url) as rest:
        await rest.invoke("pii_redaction", [{"type": "text", "text": TEXT}], {"scope": "talk"})
        made = Custody(rest, rest.services.access, datetime.now(UTC))
        authenticator = replace(rest.services.authenticator, now=made.now)
        made.access = replace(rest.services.access, authenticator=authenticator, now=made.now)
        rest.app.state.route_services = replace(
            rest.services,
            authenticator=authenticator,
            access=made.access,
            policies=replace(rest.services.policies, now=made.now),
        )
        guard = replace(rest.guard, served=Served(authenticator))
        transport = ASGITransport(guard, client=("127.0.0.1", 4711))
        async with AsyncClient(transport=transport, base_url="http://localhost:8000") as http:
            made.rest = replace(rest, guard=guard, http=http)
            yield made


async def custodian(custody: Custody, by: str | None = None) -> str:
    return str((await custody.made("key-custodian", by=by))["key"])


async def events(custody: Custody, action: str) -> list[dict[str, Any]]:
    answer = await custody.rest.call("GET", f"/api/v1/audit/events?action={action}", roles=["auditor"])
    return [event | event["details"] for event in answer.json()["items"]]


async def test_a_restorers_key_has_no_effect_until_another_custodian_approves(custody: Custody) -> None:
    ada, ben = await custodian(custody), await custodian(custody)
    key = await custody.made("restorer", "invoker", by=ada, status=202)
    assert (key["state"], key["roles"], key["pending_roles"]) == ("pending", ["invoker"], ["restorer"])
    assert datetime.fromisoformat(key["pending_until"]) == custody.moment + timedelta(hours=24)
    assert not await custody.restores(key["key"])
    assert (await custody.send("GET", "/api/v1/middleware", key["key"])).status_code == 200, "it may invoke"
    for wrong in (ada, key["key"]):
        assert (await custody.approve(key, wrong)).status_code == 403
    assert not await custody.restores(key["key"])
    approved = await custody.approve(key, ben)
    assert (approved.status_code, approved.json()["state"]) == (200, "live")
    assert approved.json()["roles"] == ["invoker", "restorer"]
    assert await custody.restores(key["key"])
    again = await custody.approve(key, ben)
    assert (again.status_code, again.json()["details"]["state"]) == (409, "live")
    (create,) = [event for event in await events(custody, "key.create") if event["key"] == key["id"]]
    assert (create["granted"], create["waits"], create["state"]) == (
        "invoker,restorer",
        "restorer",
        "pending",
    )
    outcomes = {event["outcome"]: event for event in await events(custody, "key.approve")}
    assert outcomes["ok"]["requested_by"] == key["pending_by"] == ada.split("_")[1]
    assert outcomes["refused"]["error_code"] == "forbidden"


async def test_other_keys_are_made_and_rotated_as_ever(custody: Custody) -> None:
    ada = await custodian(custody)
    for role in sorted(set(Role) - {Role.RESTORER, Role.OPERATOR}):
        key = await custody.made(role, by=ada)
        assert (key["state"], key["roles"], key["pending_roles"]) == ("live", [role], [])
        rotated = await custody.send("POST", f"{KEYS}/{key['id']}/rotate", ada)
        assert (rotated.status_code, rotated.json()["state"]) == (200, "rotating")


async def test_a_custodian_alone_makes_no_operator_who_could_send_originals_away(custody: Custody) -> None:
    """The way round a restorer's key: a server of one's own, and a passage that gives its tools originals."""
    ada, ben = await custodian(custody), await custodian(custody)
    key = await custody.made("operator", "invoker", by=ada, status=202)
    assert (key["state"], key["roles"], key["pending_roles"]) == ("pending", ["invoker"], ["operator"])
    passage = {"restore_arguments": True, "results": [{"name": "pii_redaction"}]}
    server = {"name": "mine", "settings": {"type": "http", "url": "https://collector.example/mcp"}}
    version = (await custody.rest.call("GET", "/api/v1/policies", roles=["operator"])).json()["version"]
    steps = (
        ("GET", "/api/v1/vault/scopes", None),
        ("POST", "/api/v1/servers", server),
        ("PATCH", f"/api/v1/policies?expected_version={version}", {"passages": [passage]}),
        ("PUT", "/api/v1/pipelines/away", {}),
    )
    for method, path, body in steps:
        assert (await custody.send(method, path, key["key"], body)).status_code == 403, path
    rotated = await custody.send("POST", f"{KEYS}/{key['id']}/rotate", ada, {"overlap_s": 0})
    assert (rotated.status_code, rotated.json()["pending_roles"]) == (202, ["operator"])
    assert (await custody.send("GET", "/api/v1/vault/scopes", rotated.json()["key"])).status_code == 403
    assert (await custody.approve(key, ada)).status_code == 403
    assert (await custody.approve(key, ben)).json()["roles"] == ["invoker", "operator"]
    for method, path, body in steps[:3]:
        allowed = await custody.send(method, path, rotated.json()["key"], body)
        assert allowed.status_code in {200, 201}, (path, allowed.text)


async def test_without_an_approval_the_delay_must_pass(custody: Custody) -> None:
    ada = await custodian(custody)
    key = await custody.made("restorer", by=ada, status=202)
    custody.moment += timedelta(hours=24) - timedelta(seconds=1)
    assert not await custody.restores(key["key"])
    custody.moment += timedelta(seconds=1)
    assert await custody.restores(key["key"])
    shown = (await custody.send("GET", f"{KEYS}/{key['id']}", ada)).json()
    assert (shown["state"], shown["roles"], shown["pending_by"]) == ("live", ["restorer"], None)
    assert await events(custody, "key.settle") == []
    for _ in range(2):
        await custody.access.settle_keys()
    (settled,) = await events(custody, "key.settle")
    assert (settled["key"], settled["granted"], settled["actor"]) == (key["id"], "restorer", "custody")
    assert await custody.restores(key["key"])


async def test_a_revoked_key_is_neither_approved_nor_ripens(custody: Custody) -> None:
    ada, ben = await custodian(custody), await custodian(custody)
    key = await custody.made("restorer", by=ada, status=202)
    assert (await custody.send("DELETE", f"{KEYS}/{key['id']}", ben)).json()["state"] == "revoked"
    assert (await custody.approve(key, ben)).status_code == 409
    custody.moment += timedelta(hours=25)
    await custody.access.settle_keys()
    assert await events(custody, "key.settle") == []
    assert (await custody.send("GET", "/api/v1/middleware", key["key"])).status_code == 401


async def test_a_custodian_who_makes_custodians_is_still_one(custody: Custody) -> None:
    ada = await custodian(custody)
    second = await custodian(custody, by=ada)
    third = await custodian(custody, by=second)
    key = await custody.made("restorer", by=ada, status=202)
    other = await custody.made("restorer", by=third, status=202)
    for wrong in (ada, second, third):
        for waiting in (key, other):
            assert (await custody.approve(waiting, wrong)).status_code == 403
    twin = await custodian(custody, by=ada)
    siblings = await custody.made("restorer", by=twin, status=202)
    assert (await custody.approve(siblings, second)).status_code == 403, "one hand made both"
    # Negative control: a custodian whom the host made is another hand, also for keys of the others.
    ben = await custodian(custody)
    assert (await custody.approve(other, ben)).status_code == 200
    # Whoever was made openly a whole delay ago is another hand, too.
    custody.moment += timedelta(hours=24)
    late = await custody.made("restorer", by=ada, status=202)
    assert (await custody.approve(late, second)).status_code == 200


async def test_rotating_a_custodians_key_does_not_make_a_second_hand(custody: Custody) -> None:
    ada, ben = await custodian(custody), await custody.made("key-custodian")
    eve = await custodian(custody)
    stolen = await custody.send("POST", f"{KEYS}/{ben['id']}/rotate", ada, {"overlap_s": 3600})
    key = await custody.made("restorer", by=ada, status=202)
    for secret in (stolen.json()["key"], ben["key"]):
        assert (await custody.approve(key, secret)).status_code == 403
    # A later rotation by somebody else does not wash the secret: it still works during the overlap.
    custody.moment += timedelta(hours=2)
    await custody.send("POST", f"{KEYS}/{ben['id']}/rotate", eve)
    assert (await custody.approve(key, stolen.json()["key"])).status_code == 403
    assert (await custody.approve(key, eve)).status_code == 200


async def test_a_rotated_secret_waits_while_the_old_one_restores_on(custody: Custody) -> None:
    ada, ben = await custodian(custody), await custodian(custody)
    key = await custody.made("restorer")
    assert await custody.restores(key["key"])
    rotated = await custody.send("POST", f"{KEYS}/{key['id']}/rotate", ada, {"overlap_s": 7200})
    assert (rotated.status_code, rotated.json()["state"]) == (202, "pending")
    fresh = rotated.json()["key"]
    assert [await custody.restores(secret) for secret in (key["key"], fresh)] == [True, False]
    assert (await custody.approve(key, ada)).status_code == 403
    assert (await custody.approve(key, ben)).status_code == 200
    assert [await custody.restores(secret) for secret in (key["key"], fresh)] == [True, True]
    custody.moment += timedelta(hours=2)
    assert await custody.restores(fresh)
    assert (await custody.send("GET", "/api/v1/middleware", key["key"])).status_code == 401


async def test_rotating_at_once_ends_the_old_secret_and_makes_the_new_one_wait(custody: Custody) -> None:
    ada = await custodian(custody)
    key = await custody.made("restorer", "invoker")
    rotated = await custody.send("POST", f"{KEYS}/{key['id']}/rotate", ada, {"overlap_s": 0})
    assert rotated.status_code == 202
    fresh = rotated.json()["key"]
    assert (await custody.send("GET", "/api/v1/middleware", key["key"])).status_code == 401
    assert (await custody.send("GET", "/api/v1/middleware", fresh)).status_code == 200
    assert not await custody.restores(fresh)
    custody.moment += timedelta(hours=24)
    assert await custody.restores(fresh)


async def test_an_approval_never_reaches_the_secret_that_its_maker_knows(custody: Custody) -> None:
    ada, ben = await custodian(custody), await custodian(custody)
    key = await custody.made("restorer", "invoker", by=ada, status=202)
    custody.moment += timedelta(hours=1)
    rotated = await custody.send("POST", f"{KEYS}/{key['id']}/rotate", ben, {"overlap_s": 90 * 24 * 3600})
    assert datetime.fromisoformat(rotated.json()["pending_until"]) == custody.moment + timedelta(hours=24)
    # Ben requested it now and Ada approves; only Ben's secret may gain, for Ada knows the older.
    assert (await custody.approve(key, ada)).status_code == 200
    assert [await custody.restores(secret) for secret in (key["key"], rotated.json()["key"])] == [False, True]
    custody.moment += timedelta(hours=48)
    assert not await custody.restores(key["key"])


async def test_a_shorter_delay_counts_only_after_the_longer_one(custody: Custody) -> None:
    ada = await custodian(custody)
    operator = Caller(custody.rest.tenant, "0000000a", frozenset({Role.OPERATOR}))
    policies = custody.rest.app.state.route_services.policies

    async def delay(hours: int) -> None:
        policy = Policy(custody=CustodyPolicy(delay_h=hours))
        await policies.put(operator, None, policy)

    async def waits() -> float:
        key = await custody.made("restorer", by=ada, status=202)
        until = datetime.fromisoformat(key["pending_until"])
        return (until - custody.moment) / timedelta(hours=1)

    await delay(1)
    assert await waits() == 24
    custody.moment += timedelta(hours=24)
    assert await waits() == 1
    await delay(100)
    assert await waits() == 100
    await delay(2)
    custody.moment += timedelta(hours=99)
    assert await waits() == 100
    custody.moment += timedelta(hours=1)
    assert await waits() == 2


async def test_the_host_is_exempt_and_on_record(custody: Custody) -> None:
    made = await custody.made("restorer")
    assert await custody.restores(made["key"])
    ada = await custodian(custody)
    waiting = await custody.made("restorer", by=ada, status=202)
    cli = Caller(SYSTEM_TENANT, COMMAND_LINE, frozenset(Role))
    assert (await custody.access.approve_key(cli, waiting["id"])).roles == {Role.RESTORER}
    rotated = await custody.access.rotate_key(cli, waiting["id"])
    assert await custody.restores(str(rotated.key))
    for action, key in (("key.create", made), ("key.approve", waiting), ("key.rotate", waiting)):
        (event,) = [one for one in await events(custody, action) if one["key"] == key["id"]]
        assert event["custody"] == "exempt"
    # A real key is no host, whatever tenant it has.
    root = await custody.access.create_key(HOST, ["key-custodian"], tenant=SYSTEM_TENANT)
    answer = await custody.send(
        "POST", KEYS, str(root.key), {"roles": ["restorer"], "tenant": custody.rest.tenant}
    )
    assert (answer.status_code, answer.json()["state"]) == (202, "pending")
    assert (await custody.approve(answer.json(), str(root.key))).status_code == 403
    assert (await custody.approve(answer.json(), ada)).status_code == 200


async def test_other_tenants_custodians_approve_nothing(custody: Custody) -> None:
    ada = await custodian(custody)
    key = await custody.made("restorer", by=ada, status=202)
    other = f"o-{custody.rest.tenant}"
    await custody.rest.services.tenants.create(HOST, other)
    stranger = await custody.access.create_key(HOST, ["key-custodian"], tenant=other)
    assert (await custody.approve(key, str(stranger.key))).status_code == 404
    operator = await custody.made("operator", "invoker", "eraser")
    assert (await custody.approve(key, operator["key"])).status_code == 403
    assert not await custody.restores(key["key"])


async def test_a_restorer_sees_a_scope_that_it_was_told_of_but_no_list(custody: Custody) -> None:
    restorer = await custody.made("restorer", "invoker")
    listed = await custody.send("GET", "/api/v1/vault/scopes", restorer["key"])
    assert (listed.status_code, listed.json()["code"]) == (403, "forbidden")
    assert (await custody.send("GET", "/api/v1/vault/scopes/talk", restorer["key"])).status_code == 200
    auditor = await custody.made("auditor")
    seen = (await custody.send("GET", "/api/v1/vault/scopes", auditor["key"])).json()["items"]
    assert [scope["id"] for scope in seen] == ["talk"]


async def test_of_a_delegate_only_what_restores_waits_for_a_second_person(custody: Custody) -> None:
    ada = await custodian(custody)
    key = await custody.made("delegate", "invoker", "restorer", by=ada, status=202)
    assert (key["roles"], key["pending_roles"]) == (["delegate", "invoker"], ["restorer"])
    assert not await custody.restores(key["key"])
