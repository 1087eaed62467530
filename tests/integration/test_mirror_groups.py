"""Groups of the mirror in rules: who joins or leaves one has other rights at once, in every process."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.contracts.policy import Policy
from app.core.errors import ForbiddenError, InvalidArgumentsError, StoreUnavailableError, UnauthenticatedError
from app.core.identities import MappingRule, Provisioning, TrustedIssuer
from app.core.request import RequestInfo
from app.services.access.access import HOST
from app.services.access.credentials import Authenticator
from app.services.access.identity.entries import Kind
from app.services.access.identity.mirror import MirrorService
from app.services.access.identity.mirror_changes import FEW
from app.services.access.identity.policy_checks import trusted_issuers
from app.services.access.issuer_keys import IssuerKeys
from app.services.access.token_callers import TokenCallers
from app.store.changes import Changes
from app.store.database import Database
from app.upstream.issuers import IssuerClient
from tests.factories import PATIENT
from tests.integration.access_setup import Replica, replica_on
from tests.integration.test_token_callers import CountingReader
from tests.integration.token_issuer import AUDIENCE, Issuer, token_issuer

REQUEST = RequestInfo("r" * 32, None, None, 0.0)
INVOKER, AUDITOR = frozenset({Role.INVOKER}), frozenset({Role.AUDITOR})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


@dataclass
class Process:
    """One process with a door of its own that hears what all announce, and keeps what it read meanwhile."""

    replica: Replica
    door: Authenticator

    async def roles(self, token: str) -> frozenset[Role] | None:
        try:
            return (await self.door.authenticate(token, "127.0.0.1")).roles
        except (ForbiddenError, UnauthenticatedError):
            return None


@dataclass
class Office:
    """The identity provider of a tenant, and two processes of the service."""

    tenant: str
    issuer: Issuer
    processes: Sequence[Process]

    @property
    def mirror(self) -> MirrorService:
        return MirrorService(self.processes[0].replica.audit)

    @property
    def provisioner(self) -> Caller:
        return Caller(self.tenant, "0123abcd", frozenset({Role.PROVISIONER}))

    async def add(self, kind: Kind, **body: Any) -> str:
        return (await self.mirror.create(self.provisioner, kind, body, REQUEST)).id

    async def person(self, name: str, **more: Any) -> str:
        return await self.add("User", userName=f"{name}@example.org", externalId=name, **more)

    async def group(self, name: str, *members: str) -> str:
        return await self.add("Group", displayName=name, members=[{"value": member} for member in members])

    async def members(self, group: str, action: str, *members: str) -> None:
        operation = {"op": action, "path": "members", "value": [{"value": member} for member in members]}
        await self.change("Group", group, operation)

    async def empty(self, group: str) -> None:
        await self.change("Group", group, {"op": "remove", "path": "members"})

    async def change(self, kind: Kind, entry: str, operation: dict[str, Any]) -> None:
        body = {"Operations": [operation]}
        await self.mirror.change(self.provisioner, kind, entry, body, REQUEST, whole=False)

    async def roles(self, token: str) -> list[frozenset[Role] | None]:
        return [await process.roles(token) for process in self.processes]

    async def becomes(self, token: str, roles: frozenset[Role] | None) -> None:
        await self.until(lambda: self.roles(token), roles)

    async def until(
        self,
        asked: Callable[[], Awaitable[list[frozenset[Role] | None]]],
        roles: frozenset[Role] | None,
    ) -> None:
        """Wait until every process has heard a change, for far shorter than anything is kept without one."""
        async with asyncio.timeout(2):
            while await asked() != [roles] * len(self.processes):
                await asyncio.sleep(0.01)


def door_of(replica: Replica, issuer: TrustedIssuer, changes: Changes) -> Authenticator:
    reader = CountingReader()
    keys = {issuer.issuer: IssuerKeys(issuer, IssuerClient(development=True), reader)}
    tokens = TokenCallers(keys, {}, reader, replica.database, replica.audit)
    door = replace(replica.access.authenticator, tokens=tokens)
    for memory in (
        *(tokens.memory, tokens.rules, tokens.groups),
        *(door.end_users.groups, door.end_users.tenants, door.end_users.users),
    ):
        memory.follow(changes.heard)
    changes.subscribe(door.changed)
    return door


def trusted(issuer: Issuer, tenant: str, **changed: Any) -> TrustedIssuer:
    rules = (
        MappingRule({}, tenant, AUDITOR, groups=("Auditors", "staff")),
        MappingRule({"groups": "llm-users"}, tenant, INVOKER, groups=("LLM users",)),
        MappingRule({"groups": "everybody"}, tenant, INVOKER),
    )
    default = TrustedIssuer(
        *(issuer.url, frozenset({AUDIENCE}), rules),
        provisioning=Provisioning("sub", "externalId", required=False),
        tenants=(tenant,),
    )
    return replace(default, **changed)


@asynccontextmanager
async def opened_office(
    database: Database, database_url: str, tenant: str, issuer: Issuer
) -> AsyncIterator[Office]:
    """Run the processes of a new tenant."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(replica_on(database, follows=True))
        await first.tenants.create(HOST, tenant)
        processes = [Process(first, door_of(first, trusted(issuer, tenant), first.changes))]
        if not database.embedded:  # SQLite has one process
            other = Database(database_url, patience=PATIENT)
            stack.push_async_callback(other.close)
            second = await stack.enter_async_context(replica_on(other, follows=True))
            processes.append(Process(second, door_of(second, trusted(issuer, tenant), second.changes)))
        yield Office(tenant, issuer, processes)


@pytest.fixture
async def office(database: Database, database_url: str, tenant: str, issuer: Issuer) -> AsyncIterator[Office]:
    async with opened_office(database, database_url, tenant, issuer) as opened:
        yield opened


async def test_who_joins_a_group_has_its_rights_and_who_leaves_it_has_not(office: Office) -> None:
    ada, grace = await office.person("ada"), await office.person("grace")
    token, other = office.issuer.token(), office.issuer.token(sub="grace")
    assert await office.roles(token) == [None] * len(office.processes)
    group = await office.group("llm USERS", grace)  # names count in any case
    assert await office.roles(token) == [None] * len(office.processes)
    await office.becomes(other, INVOKER)
    await office.members(group, "add", ada)
    await office.becomes(token, INVOKER)
    await office.members(group, "remove", ada)
    await office.becomes(token, None)
    assert await office.roles(other) == [INVOKER] * len(office.processes)
    await office.change("Group", group, {"op": "replace", "path": "displayName", "value": "former users"})
    await office.becomes(other, None)
    await office.change("Group", group, {"op": "replace", "path": "displayName", "value": "LLM users"})
    await office.becomes(other, INVOKER)
    await office.mirror.remove(office.provisioner, "Group", group, REQUEST)
    await office.becomes(other, None)
    await office.group("LLM users", grace)
    await office.becomes(other, INVOKER)


async def test_the_first_rule_whose_claims_and_groups_fit_counts(office: Office) -> None:
    ada = await office.person("ada")
    token = office.issuer.token(groups=["everybody"])
    assert await office.roles(token) == [INVOKER] * len(office.processes)
    auditors = await office.group("auditors", ada)
    assert await office.roles(token) == [INVOKER] * len(office.processes)  # of two groups both are needed
    staff = await office.group("Staff", ada)
    await office.becomes(token, AUDITOR)
    await office.members(staff, "remove", ada)
    await office.becomes(token, INVOKER)
    await office.members(staff, "add", ada)
    await office.becomes(token, AUDITOR)
    await office.mirror.remove(office.provisioner, "Group", auditors, REQUEST)
    await office.becomes(token, INVOKER)


async def test_a_change_of_many_members_is_heard_by_each_of_them(office: Office) -> None:
    people = [await office.person(f"p{number}") for number in range(FEW + 1)]
    tokens = [office.issuer.token(sub=f"p{number}") for number in range(FEW + 1)]
    group = await office.group("LLM users", *people)
    for token in tokens:
        await office.becomes(token, INVOKER)
    await office.empty(group)
    for token in tokens:
        await office.becomes(token, None)


async def test_whoever_comes_into_the_mirror_later_is_looked_for_again(office: Office) -> None:
    token = office.issuer.token(groups=["everybody"])
    assert await office.roles(token) == [INVOKER] * len(office.processes)
    ada = await office.person("ada", active=False)
    await office.becomes(token, None)
    await office.group("auditors", ada)
    await office.group("staff", ada)
    assert await office.roles(token) == [None] * len(office.processes)
    await office.change("User", ada, {"op": "replace", "path": "active", "value": True})
    await office.becomes(token, AUDITOR)
    await office.mirror.remove(office.provisioner, "User", ada, REQUEST)
    await office.becomes(token, None)


async def test_a_cached_token_asks_the_store_nothing_and_a_full_group_is_read_once(office: Office) -> None:
    people = [await office.person(name) for name in ("ada", "grace")]
    await office.group("LLM users", *people)
    process = office.processes[0]
    token = office.issuer.token()
    await office.becomes(token, INVOKER)

    async def asked() -> list[str]:
        known = len(process.replica.statements)
        for _ in range(50):
            assert await process.roles(token) == INVOKER
        # The issuers that operators added are read in the background, whatever is asked.
        return [sql for sql in process.replica.statements[known:] if "provisioned" in sql]

    # What was announced of the group may come after its first reading, and has it read once more.
    settled = time.monotonic() + 5
    while await asked():
        assert time.monotonic() < settled
        await asyncio.sleep(0.1)
    statements = len(process.replica.statements)
    assert await asked() == []
    assert await process.roles(office.issuer.token(sub="grace")) == INVOKER
    groups = [sql for sql in process.replica.statements[statements:] if "provisioned" in sql]
    assert (
        len(groups) == 2
    )  # each time the person: as a member, and as somebody who is active; no group again


async def test_no_right_comes_from_a_group_that_cannot_be_read(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.group("LLM users", await office.person("ada"))
    process = office.processes[0]

    def broken(*_: Any, **__: Any) -> Any:
        raise StoreUnavailableError("The database does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr("app.services.access.identity.memberships.find_entry", broken)
        with pytest.raises(StoreUnavailableError, match="does not answer"):
            await process.door.authenticate(office.issuer.token(), "127.0.0.1")
    assert await process.roles(office.issuer.token()) == INVOKER


async def test_the_policy_of_a_tenant_names_groups_where_its_issuer_says_how_people_are_found(
    office: Office, issuer: Issuer
) -> None:
    first = office.processes[0].replica
    operator = replace(HOST, tenant=office.tenant)
    rule = {"issuer": issuer.url, "directory": {"groups": ["guests"]}, "roles": ["invoker"]}
    policy = Policy.model_validate({"identity": {"rules": [rule]}})
    policies = replace(first.policies, issuers=trusted_issuers(office.processes[0].door))
    await policies.put(operator, None, policy)
    token = office.issuer.token(groups=["nothing"])
    assert await office.roles(token) == [None] * len(office.processes)
    group = await office.group("guests", await office.person("ada"))
    await office.becomes(token, INVOKER)
    await office.empty(group)
    await office.becomes(token, None)
    plain = door_of(first, trusted(issuer, office.tenant, provisioning=None), first.changes)
    await office.members(group, "add", await office.person("linus"))
    # What stands in a policy from before gives nothing where nobody would be found.
    with pytest.raises(ForbiddenError):
        await plain.authenticate(office.issuer.token(sub="linus", groups=[]), "127.0.0.1")
    await policies.put(operator, None, Policy())
    unfit = replace(first.policies, issuers=trusted_issuers(plain))
    with pytest.raises(InvalidArgumentsError, match="Give the issuer provisioning") as refused:
        await unfit.put(operator, None, policy)
    assert refused.value.details == {"pointer": "/identity/rules/0/directory"}


async def test_a_dry_run_says_which_groups_are_missed(office: Office) -> None:
    process = office.processes[0]
    assert process.door.tokens is not None
    ada = await office.person("ada")
    await office.group("staff", ada)
    moment = process.replica.clock.now()
    trial = await process.door.tokens.tried(office.issuer.token(), moment)
    assert (trial.reason, trial.absent) == ("unmapped", (("Auditors",), ("LLM users",), ()))
    assert [words for _, words in trial.results()] == [
        "not in Auditors of the mirror",
        "not in LLM users of the mirror",
        "misses groups",
    ]
    await office.group("auditors", ada)
    shown = (await process.door.tokens.tried(office.issuer.token(groups=[]), moment)).described()
    assert [(rule["maps"], rule["missing"], rule["missing_groups"]) for rule in shown["rules"]] == [
        (True, [], []),
        (False, ["groups"], ["LLM users"]),
        (False, ["groups"], []),
    ]
    assert "ada" not in repr(shown)
