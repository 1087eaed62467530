"""Rules for end users: a service has the rights that it and its end user have, and none for who is refused."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.contracts.policy import Policy
from app.core.errors import ForbiddenError, StoreUnavailableError
from app.core.identities import EndUserRule, EndUserRules
from app.services.access.access import HOST
from app.services.access.identity.end_users import EndUsers
from app.store.database import Database
from tests.integration.test_mirror_groups import INVOKER, REQUEST, Office, opened_office
from tests.integration.token_issuer import Issuer, token_issuer

SERVICE = frozenset({Role.INVOKER, Role.RESTORER, Role.DELEGATE})
BOTH = frozenset({Role.INVOKER, Role.RESTORER})
RULES: list[dict[str, Any]] = [
    {"users": ["mallory@*", "eve@example.org"], "refuse": True},
    {"directory": {"groups": ["support"]}, "roles": ["invoker", "restorer"], "grants": ["support"]},
    {"users": ["*@partner.example"], "roles": ["invoker", "auditor"], "grants": []},
]


@dataclass
class Backend:
    """A service with a key that names end users, at every process of an office."""

    office: Office
    key: str

    async def bounded(self, user: str) -> list[Caller | None]:
        """Return in each process whom the service is for an end user, None where it is refused."""
        callers: list[Caller | None] = []
        for process in self.office.processes:
            service = await process.door.authenticate(self.key, "127.0.0.1")
            try:
                callers.append(await process.door.acting(service, [user.encode()], REQUEST))
            except ForbiddenError:
                callers.append(None)
        return callers

    async def roles(self, user: str) -> list[frozenset[Role] | None]:
        return [caller and caller.roles for caller in await self.bounded(user)]

    async def becomes(self, user: str, roles: frozenset[Role] | None) -> None:
        await self.office.until(lambda: self.roles(user), roles)

    async def put(self, rules: list[dict[str, Any]], provisioning: dict[str, Any] | None) -> None:
        end_users = {"provisioning": provisioning, "rules": rules}
        policy = Policy.model_validate({"identity": {"end_users": end_users}})
        operator = replace(HOST, tenant=self.office.tenant)
        await self.office.processes[0].replica.policies.put(operator, None, policy)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


@pytest.fixture
async def backend(
    database: Database, database_url: str, tenant: str, issuer: Issuer
) -> AsyncIterator[Backend]:
    async with opened_office(database, database_url, tenant, issuer) as office:
        made = await office.processes[0].replica.access.create_key(
            HOST, [*SERVICE], tenant=tenant, override_unions=True
        )
        yield Backend(office, str(made.key))


def all_of(backend: Backend, roles: frozenset[Role] | None) -> list[frozenset[Role] | None]:
    return [roles] * len(backend.office.processes)


async def test_the_service_has_the_rights_that_both_have(backend: Backend) -> None:
    assert await backend.roles("eve@example.org") == all_of(backend, SERVICE)  # no rule, as ever
    await backend.put(RULES, {"required": False})
    await backend.becomes("eve@example.org", None)
    await backend.becomes("MALLORY@anywhere.example", None)
    await backend.becomes("max@partner.example", INVOKER)  # the service is no auditor
    await backend.becomes("somebody@example.org", SERVICE)
    (caller, *_) = await backend.bounded("max@partner.example")
    assert caller is not None and caller.user_grants == frozenset()
    ada = await backend.office.person("ada")
    assert await backend.roles("ada@example.org") == all_of(backend, SERVICE)
    group = await backend.office.group("Support", ada)
    await backend.becomes("ADA@example.org", BOTH)
    (caller, *_) = await backend.bounded("ada@example.org")
    assert caller is not None and (caller.user_grants, caller.end_user) == (
        frozenset({"support"}),
        "ada@example.org",
    )
    await backend.office.members(group, "remove", ada)
    await backend.becomes("ada@example.org", SERVICE)
    await backend.office.members(group, "add", ada)
    await backend.becomes("ada@example.org", BOTH)
    await backend.put([], None)
    await backend.becomes("ada@example.org", SERVICE)


async def test_whom_the_mirror_does_not_have_as_active_is_refused_where_it_is_required(
    backend: Backend,
) -> None:
    ada = await backend.office.person("ada")
    await backend.put([], {"attribute": "externalId", "required": True})
    await backend.becomes("grace", None)
    assert await backend.roles("ada") == all_of(backend, SERVICE)
    assert await backend.roles("ADA") == all_of(backend, None)  # ids of others count as they are
    await backend.office.change("User", ada, {"op": "replace", "path": "active", "value": False})
    await backend.becomes("ada", None)
    await backend.office.change("User", ada, {"op": "replace", "path": "active", "value": True})
    await backend.becomes("ada", SERVICE)
    await backend.office.mirror.remove(backend.office.provisioner, "User", ada, REQUEST)
    await backend.becomes("ada", None)
    await backend.put([], {"attribute": "externalId", "required": False})
    await backend.becomes("grace", SERVICE)
    assert await backend.roles("ada") == all_of(backend, None)  # deleted, which is remembered
    await backend.office.person("grace", active=False)
    await backend.becomes("grace", None)


async def test_rules_of_the_settings_and_of_the_policy_both_take_away(backend: Backend) -> None:
    rules = (
        EndUserRule(users=("root@*",), refuse=True),
        EndUserRule(users=("*@example.org",), roles=BOTH, grants=frozenset({"support", "guests"})),
    )
    for process in backend.office.processes:
        end_users = EndUsers({backend.office.tenant: EndUserRules(rules)})
        process.door = replace(process.door, end_users=end_users)
        process.replica.changes.subscribe(process.door.changed)
    assert await backend.roles("root@partner.example") == all_of(backend, None)
    assert await backend.roles("ada@example.org") == all_of(backend, BOTH)
    assert await backend.roles("ada@example.com") == all_of(backend, SERVICE)
    policy: list[dict[str, Any]] = [
        {"users": ["ada@*"], "roles": ["invoker", "delegate"], "grants": ["guests", "all"]},
        {"users": ["root@*"], "roles": ["invoker"]},
        {"users": ["eve@*"], "refuse": True},
    ]
    await backend.put(policy, None)
    await backend.becomes("ada@example.org", INVOKER)
    (caller, *_) = await backend.bounded("ada@example.org")
    assert caller is not None and caller.user_grants == {"guests"}
    await backend.becomes("ada@example.com", frozenset({Role.INVOKER, Role.DELEGATE}))
    await backend.becomes("eve@example.org", None)
    assert await backend.roles("root@partner.example") == all_of(backend, None)


async def test_no_right_is_left_where_the_mirror_or_the_rules_cannot_be_read(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backend.put(RULES, {"required": False})
    process = backend.office.processes[0]
    service = await process.door.authenticate(backend.key, "127.0.0.1")

    def broken(*_: Any, **__: Any) -> Any:
        raise StoreUnavailableError("The database does not answer.")

    for module, name in (("memberships", "find_entry"), ("end_users", "find_policy")):
        with monkeypatch.context() as patched:
            patched.setattr(f"app.services.access.identity.{module}.{name}", broken)
            process.door.end_users.forget_tenant(None)
            with pytest.raises(StoreUnavailableError, match="does not answer"):
                await process.door.acting(service, [b"ada@example.org"], REQUEST)
    assert await backend.roles("ada@example.org") == all_of(backend, SERVICE)


async def test_an_end_user_who_was_asked_about_costs_no_query(backend: Backend) -> None:
    await backend.put(RULES, {"required": False})
    await backend.becomes("ada@partner.example", INVOKER)
    process = backend.office.processes[0]
    service = await process.door.authenticate(backend.key, "127.0.0.1")
    statements = len(process.replica.statements)
    for _ in range(50):
        assert (await process.door.acting(service, [b"ada@partner.example"], REQUEST)).roles == INVOKER
    assert len(process.replica.statements) == statements
    kept = repr(vars(process.door.end_users.users)) + repr(vars(process.door.end_users.tenants))
    assert "ada" not in kept


async def test_a_refusal_is_on_record_for_the_end_user_without_the_name(backend: Backend) -> None:
    await backend.put(RULES, {"required": False})
    await backend.becomes("eve@example.org", None)
    replica = backend.office.processes[0].replica
    events = await replica.events(backend.office.tenant, action="access.delegate")
    assert events and {(event.outcome, event.error_code) for event in events} == {("refused", "forbidden")}
    expected = replica.audit.user_ref(backend.office.tenant, "eve@example.org")
    assert {event.on_behalf_of for event in events} == {expected}
    assert "eve" not in repr(events)
    service = await backend.office.processes[0].door.authenticate(backend.key, "127.0.0.1")
    with pytest.raises(ForbiddenError) as refused:
        await backend.office.processes[0].door.acting(service, [b"eve@example.org"], REQUEST)
    assert refused.value.details == {"end_user": "refused"} and "eve" not in refused.value.message
