"""API keys on both databases: who is let in, and who may make keys."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select

from app.core.access import SYSTEM_TENANT, ApiKey, Caller, Role
from app.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidArgumentsError,
    NotFoundError,
    ServiceError,
    StoreUnavailableError,
    UnauthenticatedError,
)
from app.engines.cipher import RecordKeys
from app.services.access.access import HOST
from app.services.audit.canonical import event_code
from app.store.database import Database
from app.store.tables import metadata
from tests.integration.access_setup import Replica, replica_on


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
async def acme(replica: Replica, tenant: str) -> str:
    await replica.tenants.create(HOST, tenant)
    return tenant


async def refused(replica: Replica, bearer: Any, address: str | None = None) -> bool:
    try:
        await replica.access.authenticator.authenticate(bearer, address)
    except UnauthenticatedError:
        return True
    return False


async def test_a_made_key_lets_its_caller_in(replica: Replica, acme: str) -> None:
    made = await replica.key(acme, Role.INVOKER, Role.RESTORER)
    caller = await replica.access.authenticator.authenticate(str(made.key), "10.0.0.1")
    assert caller == Caller(acme, made.key.id, frozenset({Role.INVOKER, Role.RESTORER}))


async def test_every_reason_for_refusal_looks_the_same(replica: Replica, acme: str) -> None:
    other = f"{acme}-x"
    await replica.tenants.create(HOST, other)
    soon = replica.clock.now() + timedelta(seconds=60)
    good = await replica.key(acme)
    expired = await replica.key(acme, expires=soon)
    revoked = await replica.key(acme)
    bound = await replica.key(acme, cidrs=["10.0.0.0/8"])
    closed = await replica.key(other)
    bearers = [str(key.key) for key in (expired, revoked, bound, closed)]
    # Negative control: each of them is good until its fault appears.
    assert [await refused(replica, bearer, "10.1.2.3") for bearer in bearers] == [False] * 4
    await replica.access.revoke_key(HOST, revoked.key.id)
    await replica.tenants.disable(HOST, other)
    replica.clock.advance(60)
    wrong_secret = ApiKey(good.key.id, ApiKey.generate().secret)
    faults = [None, "", "nonsense", str(ApiKey.generate()), str(wrong_secret), f"{good.key} ", *bearers]
    answers = set()
    for bearer in faults:
        with pytest.raises(UnauthenticatedError) as refusal:
            await replica.access.authenticator.authenticate(bearer, "192.168.0.1")
        answers.add((refusal.value.message, str(refusal.value.details), refusal.value.retry_after_s))
    assert len(answers) == 1
    assert not await refused(replica, str(good.key), "192.168.0.1")


async def test_a_known_key_is_checked_without_the_database(replica: Replica, acme: str) -> None:
    made = await replica.key(acme)
    await replica.access.authenticator.authenticate(str(made.key), None)
    replica.statements.clear()
    for _ in range(100):
        await replica.access.authenticator.authenticate(str(made.key), None)
    assert await refused(replica, str(ApiKey(made.key.id, ApiKey.generate().secret)))
    assert replica.statements == []


async def test_concurrent_first_uses_share_one_lookup(replica: Replica, acme: str) -> None:
    made = await replica.key(acme)
    replica.statements.clear()
    await asyncio.gather(*(replica.access.authenticator.authenticate(str(made.key), None) for _ in range(50)))
    assert len([one for one in replica.statements if "api_key" in one]) == 1


async def test_nobody_waits_long_behind_look_ups_that_get_no_answer(replica: Replica, acme: str) -> None:
    made = await replica.key(acme)
    for _ in range(4):
        await replica.access.authenticator.lookups.acquire()
    async with asyncio.timeout(2):
        with pytest.raises(StoreUnavailableError):
            await replica.access.authenticator.authenticate(str(made.key), None)
    for _ in range(4):
        replica.access.authenticator.lookups.release()
    assert not await refused(replica, str(made.key))


async def test_a_flood_of_invented_keys_neither_enters_nor_keeps_others_out(
    replica: Replica, acme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The last of the flood waits for all the others, however slow the machine is.
    monkeypatch.setattr("app.services.access.identity.lookups._WAIT_S", 30.0)
    made = await replica.key(acme)
    flood = [refused(replica, str(ApiKey.generate())) for _ in range(200)]
    results = await asyncio.gather(*flood, refused(replica, str(made.key)))
    assert results == [True] * 200 + [False]


async def test_a_revoked_key_is_refused_at_once_in_this_process(replica: Replica, acme: str) -> None:
    made = await replica.key(acme)
    await replica.access.authenticator.authenticate(str(made.key), None)
    first = await replica.access.revoke_key(HOST, made.key.id)
    assert await refused(replica, str(made.key))
    assert (await replica.access.revoke_key(HOST, made.key.id)).revoked == first.revoked
    revocations = [event for event in await replica.events(acme) if event.action == "key.revoke"]
    assert len(revocations) == 1


async def test_both_secrets_are_good_until_the_overlap_ends(replica: Replica, acme: str) -> None:
    made = await replica.key(acme)
    fresh = await replica.access.rotate_key(HOST, made.key.id, overlap_s=100)
    assert fresh.key.id == made.key.id
    assert not await refused(replica, str(made.key))
    assert not await refused(replica, str(fresh.key))
    with pytest.raises(ConflictError):
        await replica.access.rotate_key(HOST, made.key.id, overlap_s=100)
    replica.clock.advance(100)
    assert await refused(replica, str(made.key))
    assert not await refused(replica, str(fresh.key))


async def test_a_rotation_without_overlap_ends_every_older_secret(replica: Replica, acme: str) -> None:
    made = await replica.key(acme)
    second = await replica.access.rotate_key(HOST, made.key.id, overlap_s=100)
    third = await replica.access.rotate_key(HOST, made.key.id, overlap_s=0)
    assert await refused(replica, str(made.key))
    assert await refused(replica, str(second.key))
    assert not await refused(replica, str(third.key))


async def test_a_key_that_has_ended_is_not_rotated(replica: Replica, acme: str) -> None:
    made = await replica.key(acme)
    await replica.access.revoke_key(HOST, made.key.id)
    with pytest.raises(ConflictError):
        await replica.access.rotate_key(HOST, made.key.id, overlap_s=0)


async def test_only_a_custodian_makes_keys_and_the_refusal_is_on_record(replica: Replica, acme: str) -> None:
    operator = await replica.caller(acme, Role.OPERATOR)
    for attempt in (
        replica.access.create_key(operator, [Role.INVOKER]),
        replica.access.list_keys(operator),
        replica.access.revoke_key(operator, operator.key_id),
        replica.access.rotate_key(operator, operator.key_id),
        replica.access.get_key(operator, operator.key_id),
    ):
        with pytest.raises(ForbiddenError):
            await attempt
    refusals = [event for event in await replica.events(acme) if event.outcome == "refused"]
    assert [event.action for event in refusals] == [
        *("key.create", "key.list", "key.revoke", "key.rotate", "key.get")
    ]
    assert {event.error_code for event in refusals} == {"forbidden"}
    custodian = await replica.caller(acme, Role.KEY_CUSTODIAN)
    made = await replica.access.create_key(custodian, ["invoker"], name="bot")
    assert (made.info.tenant, made.info.name, made.info.created_by) == (acme, "bot", custodian.key_id)


@pytest.mark.parametrize(
    "union",
    [
        [Role.OPERATOR, Role.RESTORER],
        [Role.OPERATOR, Role.AUDITOR],
        [Role.KEY_CUSTODIAN, Role.RESTORER],
    ],
)
async def test_a_refused_union_needs_an_override_that_is_on_record(
    replica: Replica, acme: str, union: list[Role]
) -> None:
    with pytest.raises(InvalidArgumentsError):
        await replica.key(acme, *union)
    made = await replica.key(acme, *union, override_unions=True)
    ends = datetime(2030, 1, 2, tzinfo=UTC)
    plain = await replica.key(acme, Role.INVOKER, override_unions=True, expires=ends, cidrs=["10.0.0.0/8"])
    grants = {event.details["key"]: event for event in await replica.events(acme, action="key.create")}
    assert grants[made.key.id].details["override_unions"] is True
    assert grants[made.key.id].details["granted"] == ",".join(sorted(union))
    assert dict(grants[plain.key.id].details) == {
        "key": plain.key.id,
        "actor_tenant": SYSTEM_TENANT,
        "granted": "invoker",
        "expires": ends.isoformat(),
        "cidrs": "10.0.0.0/8",
    }


async def test_a_custodian_sees_and_changes_only_the_keys_of_their_tenant(
    replica: Replica, acme: str
) -> None:
    other = f"{acme}-x"
    await replica.tenants.create(HOST, other)
    theirs = await replica.key(other)
    custodian = await replica.caller(acme, Role.KEY_CUSTODIAN)
    own = {info.id for info in await replica.access.list_keys(custodian)}
    assert own == {custodian.key_id}
    for attempt in (
        replica.access.get_key(custodian, theirs.key.id),
        replica.access.revoke_key(custodian, theirs.key.id),
        replica.access.rotate_key(custodian, theirs.key.id),
        replica.access.list_keys(custodian, other),
        replica.access.create_key(custodian, [Role.INVOKER], tenant=other),
        replica.access.create_key(custodian, [Role.OPERATOR], tenant=SYSTEM_TENANT),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    assert not await refused(replica, str(theirs.key))


async def test_an_act_for_another_tenant_is_on_record_in_both(replica: Replica, acme: str) -> None:
    made = await replica.key(acme, Role.AUDITOR)
    grants = [await replica.events(name, action="key.create") for name in (acme, SYSTEM_TENANT)]
    there, here = ([e for e in events if e.details.get("key") == made.key.id] for events in grants)
    assert [e.details.get("actor_tenant") for e in there] == [SYSTEM_TENANT]
    assert [e.details.get("tenant") for e in here] == [acme]


async def test_a_key_for_a_tenant_that_does_not_exist_is_refused(replica: Replica, tenant: str) -> None:
    with pytest.raises(NotFoundError):
        await replica.key(tenant)
    with pytest.raises(NotFoundError):
        await replica.access.list_keys(HOST, tenant)


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"cidrs": ["10.0.0.0/8", "10.0.0.1/8"]}, "/cidrs/1"),
        ({"cidrs": ["everywhere"]}, "/cidrs/0"),
        ({"name": "line\nbreak"}, "/name"),
        ({"name": ""}, "/name"),
    ],
)
async def test_a_wrong_wish_is_pointed_at(
    replica: Replica, acme: str, options: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(InvalidArgumentsError) as refusal:
        await replica.key(acme, **options)
    assert refusal.value.details["pointer"] == pointer


async def test_unknown_roles_no_roles_and_a_past_end_are_refused(replica: Replica, acme: str) -> None:
    for roles in (["root"], []):
        with pytest.raises(InvalidArgumentsError):
            await replica.access.create_key(HOST, roles, tenant=acme)
    with pytest.raises(InvalidArgumentsError):
        await replica.key(acme, expires=replica.clock.now())


async def test_no_secret_lies_in_the_database(replica: Replica, acme: str) -> None:
    made = await replica.key(acme)
    fresh = await replica.access.rotate_key(HOST, made.key.id)
    stored = ""
    async with replica.database.system_transaction(write=False) as tx:
        for table in metadata.sorted_tables:
            stored += repr((await tx.execute(select(table))).all())
    assert made.key.id in stored
    assert made.key.secret not in stored
    assert fresh.key.secret not in stored


class Unsignable(RecordKeys):
    """Record keys of a service that cannot sign any more."""

    def mac(self, _tenant: str, _data: bytes) -> bytes:
        raise OSError("no key")


async def test_a_change_that_cannot_be_recorded_is_not_made(replica: Replica, acme: str) -> None:
    kept = await replica.key(acme)
    access = replica.access
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(replica.audit.writer, "code", partial(event_code, Unsignable(bytes(32))))
        for change in (
            lambda: access.create_key(HOST, [Role.INVOKER], tenant=acme),
            lambda: access.revoke_key(HOST, kept.key.id),
            lambda: access.rotate_key(HOST, kept.key.id, overlap_s=0),
            lambda: replica.tenants.disable(HOST, acme),
        ):
            with pytest.raises(StoreUnavailableError):
                await change()
    assert [info.id for info in await replica.access.list_keys(HOST, acme)] == [kept.key.id]
    assert not await refused(replica, str(kept.key))


async def test_a_refusal_never_repeats_the_key(replica: Replica, acme: str) -> None:
    made = await replica.key(acme)
    wrong = ApiKey(made.key.id, ApiKey.generate().secret)
    with pytest.raises(ServiceError) as refusal:
        await replica.access.authenticator.authenticate(str(wrong), None)
    assert wrong.secret not in repr(refusal.value) + str(refusal.value.details)
    assert made.key.secret not in repr(made)
    assert made.key.secret not in repr(replica.access.authenticator.memory.peek(made.key.id))
