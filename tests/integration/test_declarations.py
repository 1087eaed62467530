"""Applying the declarative file: the same end however often, nothing half done, what is not the file's untouched."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pytest

import app.middlewares
from app.core.access import Caller, Role
from app.core.catalog.concerns import ConcernDefinition
from app.core.catalog.groups import GroupDefinition
from app.core.contracts.pipelines import Pipeline
from app.core.contracts.registry import Registry
from app.core.errors import ConflictError, ForbiddenError, InvalidArgumentsError, NotFoundError
from app.services.access.access import HOST
from app.services.access.policies import PolicyService, argument_check
from app.services.access.tenants import TenantService
from app.services.audit.audit import AuditQuery
from app.services.catalog.concern_changes import store_concerns
from app.services.catalog.group_changes import replace_groups
from app.services.declare.declaration_files import FileError, read_text
from app.services.declare.declarations import DeclarationPlan, DeclarationService
from app.services.gateway.provider_sealing import SubmittedProvider
from app.services.gateway.providers import ProviderService
from app.services.invoke.pipelines import PipelineService
from app.services.servers.sealing import SubmittedServer
from app.services.servers.server_admin import ServerService
from app.services.servers.upstreams import UpstreamService
from app.store.catalog.concerns import list_concerns, list_mappings
from app.store.catalog.groups import list_groups
from app.store.database import Database
from app.store.pipelines import list_pipelines
from app.store.servers import SERVERS
from app.upstream.providers.client import ProviderClient
from tests.factories import access_service, caller_of, open_vault
from tests.fakes import engines

WHOLE: dict[str, Any] = {
    "mcpServers": {
        "crm": {"command": "node", "args": ["crm.js"], "env": {"TOKEN": "canary-4711"}},
        "docs": {"url": "https://docs.example.com/mcp"},
    },
    "groups": [
        {"name": "customers", "members": [{"kind": "tool", "name": "crm__*"}]},
        {"name": "all", "members": [{"kind": "group", "name": "customers"}]},
    ],
    "concerns": [
        {"name": "effect", "description": "What it does.", "values": ["read", "write"], "default": "read"}
    ],
    "concernMappings": [{"kind": "tool", "name": "crm__find", "concerns": {"effect": "read"}}],
    "toolFilter": {"crm": ["-drop"]},
    "aliases": {"find": "crm__find"},
    "disclosure": {"docs": "staged"},
    "pipelines": [{"name": "to_model", "steps": [{"name": "pii_redaction"}]}],
}


@dataclass(frozen=True)
class Desk:
    """A tenant's operator and what it can do."""

    database: Database
    operator: Caller
    service: DeclarationService

    async def apply(self, declared: Any, *, dry_run: bool = False) -> DeclarationPlan:
        file = read_text(json.dumps(declared).encode(), "file.json", {})
        return await self.service.apply(self.operator, file, dry_run=dry_run)

    async def stored(self) -> dict[str, Any]:
        """Return everything there is, but for secrets and moments."""
        async with self.database.transaction(self.operator.tenant, write=False) as tx:
            tenant = self.operator.tenant
            return {
                "servers": {
                    one.name: (one.document, one.origin, one.state) for one in await SERVERS.list(tx, tenant)
                },
                "groups": {one.name: one.origin for one in await list_groups(tx, tenant)},
                "concerns": {one.name: one.origin for one in await list_concerns(tx, tenant)},
                "mappings": {(one.kind, one.name): one.origin for one in await list_mappings(tx, tenant)},
                "pipelines": {
                    one.name: (one.version, one.origin)
                    for one in await list_pipelines(tx, tenant)
                    if one.state == "active"
                },
            }


@asynccontextmanager
async def opened_desk(database: Database) -> AsyncIterator[Desk]:
    async with open_vault(database) as vault:
        tenant = f"declared-{uuid4().hex[:10]}"
        await TenantService(access_service(database, vault.audit)).create(HOST, tenant)
        servers = ServerService(database, vault.audit, UpstreamService(database, vault.audit))
        registry = Registry.discover(app.middlewares, engines())
        pipelines = PipelineService(database, vault.audit, registry.middlewares, argument_check(registry))
        try:
            policies = PolicyService(database, vault.audit, argument_check(registry))
            providers = ProviderService(database, vault.audit, ProviderClient())
            service = DeclarationService(database, vault.audit, servers, pipelines, policies, providers)
            yield Desk(database, caller_of(tenant), service)
        finally:
            # Processes of later tests share the database and would connect to these servers.
            async with database.transaction(tenant) as tx:
                for one in await SERVERS.list(tx, tenant):
                    await SERVERS.remove(tx, tenant, one.name)


@pytest.fixture
async def desk(database: Database) -> AsyncIterator[Desk]:
    async with opened_desk(database) as found:
        yield found


def actions(plan: DeclarationPlan) -> list[tuple[str, str, str]]:
    return [(one.action, one.kind, one.name) for one in plan.changes]


async def test_the_first_application_makes_everything_and_the_second_changes_nothing(desk: Desk) -> None:
    first = await desk.apply(WHOLE)
    stored = await desk.stored()
    second = await desk.apply(WHOLE)

    assert actions(first) == [
        ("add", "server", "crm"),
        ("add", "server", "docs"),
        ("add", "group", "all"),
        ("add", "group", "customers"),
        ("add", "concern", "effect"),
        ("add", "mapping", "tool crm__find"),
        ("add", "pipeline", "to_model"),
    ]
    assert (second.changes, second.unchanged) == ([], 7)
    assert await desk.stored() == stored
    document, origin, state = stored["servers"]["crm"]
    assert (origin, state) == ("file", "approved")
    assert "canary-4711" not in json.dumps(document)


async def test_providers_come_and_go_with_the_file_and_their_keys_are_sealed(desk: Desk) -> None:
    main = {
        "name": "main",
        "kind": "openai",
        "baseUrl": "https://api.example.com/v1",
        "apiKey": "canary-4711",
    }
    host = {**main, "name": "theirs"}
    await desk.service.providers.put(desk.operator, "theirs", SubmittedProvider(host), host=True)
    assert actions(await desk.apply({"providers": [main]}, dry_run=True)) == [("add", "provider", "main")]
    assert [one.entry.name for one in await desk.service.providers.list(desk.operator)] == ["theirs"]
    assert actions(await desk.apply({"providers": [main]})) == [("add", "provider", "main")]
    assert (await desk.apply({"providers": [main]})).changes == []
    stored, theirs = await desk.service.providers.list(desk.operator)
    assert (stored.stored.origin, stored.entry.order, stored.entry.api_key) == ("file", 1, "canary-4711")
    assert "canary-4711" not in f"{stored.stored.document} {stored.stored.secrets!r}"
    with pytest.raises(ConflictError, match="declared in the file"):
        await desk.service.providers.put(desk.operator, "main", SubmittedProvider(main))
    with pytest.raises(ConflictError, match="declared in the file"):
        await desk.service.providers.remove(desk.operator, "main")
    moved = await desk.apply({"providers": [{**main, "baseUrl": "https://b.example/v1"}]})
    assert actions(moved) == [("change", "provider", "main")]
    assert actions(await desk.apply({})) == [("remove", "provider", "main")]
    assert await desk.service.providers.list(desk.operator) == [theirs]


async def test_a_dry_run_shows_the_same_plan_and_leaves_no_trace(desk: Desk) -> None:
    before = await desk.stored()
    shown = await desk.apply(WHOLE, dry_run=True)

    assert await desk.stored() == before
    record = await desk.service.audit.query(desk.operator, AuditQuery(action="declaration.apply"))
    assert record.items == []
    assert actions(await desk.apply(WHOLE)) == actions(shown)


async def test_what_the_file_no_longer_says_goes_and_what_operators_made_stays(desk: Desk) -> None:
    await desk.apply(WHOLE)
    tenant, moment = desk.operator.tenant, desk.service.now()
    await desk.service.servers.add(
        desk.operator, "rest", SubmittedServer({"url": "https://rest.example.com/mcp"})
    )
    async with desk.database.transaction(tenant) as tx:
        await replace_groups(tx, tenant, [GroupDefinition(name="theirs")], "api", moment)
        concern = ConcernDefinition(name="cost", description="What it costs.", values=("low",), default="low")
        await store_concerns(tx, tenant, [concern], [], "api", moment)

    theirs = Pipeline.model_validate({"name": "theirs", "steps": [{"name": "timestamp_injector"}]})
    await desk.service.pipelines.put(desk.operator, theirs)

    plan = await desk.apply({"mcpServers": {"docs": WHOLE["mcpServers"]["docs"]}})

    assert ("remove", "server", "crm") in actions(plan)
    assert ("remove", "pipeline", "to_model") in actions(plan)
    assert ("change", "server", "docs") in actions(plan)
    left = await desk.stored()
    assert {name: one[1] for name, one in left["servers"].items()} == {"docs": "file", "rest": "api"}
    assert left["pipelines"] == {"theirs": (1, "api")}
    assert left["groups"] == {"theirs": "api"}
    assert left["concerns"] == {"cost": "api"}
    assert left["mappings"] == {}


@pytest.mark.parametrize(
    ("step", "place"),
    [
        ({"name": "nope"}, "4: pipelines[0].steps[0].name: There is no middleware of that name"),
        (
            {"name": "tool_filter", "arguments": {"maxTool": 1}},
            "4: pipelines[0].steps[0].arguments.maxTool: ",
        ),
    ],
)
async def test_a_pipeline_that_could_not_run_is_told_with_its_line(
    desk: Desk, step: dict[str, Any], place: str
) -> None:
    text = f'{{"mcpServers": {{}},\n"pipelines": [\n{{"name": "mine", "steps": [\n{json.dumps(step)}]}}]}}'
    with pytest.raises(InvalidArgumentsError) as caught:
        await desk.service.apply(desk.operator, read_text(text.encode(), "file.json", {}))
    assert caught.value.message.startswith(f"file.json:{place}")


async def test_a_fault_in_any_part_changes_no_part(desk: Desk) -> None:
    await desk.apply({"mcpServers": {"docs": WHOLE["mcpServers"]["docs"]}})
    before = await desk.stored()
    missing = desk.service
    nowhere = caller_of("no-such-tenant")
    with pytest.raises(NotFoundError, match="tenant"):
        await missing.apply(nowhere, read_text(json.dumps(WHOLE).encode(), "file.json", {}))
    assert await desk.stored() == before


async def test_only_operators_apply_and_a_refusal_is_on_record(desk: Desk) -> None:
    invoker = caller_of(desk.operator.tenant, Role.INVOKER)
    with pytest.raises(ForbiddenError):
        await desk.service.apply(invoker, read_text(json.dumps(WHOLE).encode(), "file.json", {}))
    record = await desk.service.audit.query(desk.operator, AuditQuery(action="declaration.apply"))
    assert [one.outcome for one in record.items] == ["refused"]


async def test_the_record_counts_and_holds_no_value(desk: Desk) -> None:
    await desk.apply(WHOLE)
    record = await desk.service.audit.query(desk.operator, AuditQuery())
    applied = [one for one in record.items if one.action == "declaration.apply"]
    assert [dict(one.details) for one in applied] == [
        {"servers": 2, "groups": 2, "concerns": 1, "mappings": 1, "pipelines": 1, "providers": 0}
    ]
    assert "canary-4711" not in repr(record.items)


async def test_a_server_that_the_file_disables_is_not_served(desk: Desk) -> None:
    await desk.apply(WHOLE)
    servers = {**WHOLE["mcpServers"], "docs": {**WHOLE["mcpServers"]["docs"], "disabled": True}}
    plan = await desk.apply({**WHOLE, "mcpServers": servers})
    assert actions(plan) == [("remove", "server", "docs")]


async def test_a_policy_in_the_file_is_stored_where_it_differs_and_says_what_it_widens(desk: Desk) -> None:
    narrow = {"policy": {"limits": {"burst": 7}, "allowed_middlewares": ["to_model"]}, **WHOLE}
    dry = await desk.apply(narrow, dry_run=True)
    assert ("change", "policy", "version 1") in {(one.action, one.kind, one.name) for one in dry.changes}
    assert (await desk.service.policies.current(desk.operator)).version == 0
    assert (await desk.apply(narrow)).warnings == []
    again = await desk.apply(narrow)
    assert again.changes == []
    wide = {**narrow, "policy": {"limits": {"burst": 8}, "allowed_middlewares": ["to_model"]}}
    (warning,) = (await desk.apply(wide)).warnings
    assert "/limits/burst" in warning
    # A file that does not speak of the policy leaves it.
    assert (await desk.apply(WHOLE)).changes == []
    current = await desk.service.policies.current(desk.operator)
    assert (current.version, current.policy.limits.burst, current.created_by) == (2, 8, desk.operator.key_id)


async def test_rules_for_end_users_stand_in_the_file_and_say_what_they_lift(desk: Desk) -> None:
    alone = replace(desk.operator, roles=frozenset({Role.OPERATOR}))
    maker = replace(desk.operator, roles=frozenset({Role.OPERATOR, Role.KEY_CUSTODIAN}))

    def file(*rules: dict[str, Any], **end_users: Any) -> dict[str, Any]:
        return {"policy": {"identity": {"end_users": {"rules": [*rules], **end_users}}}, **WHOLE}

    partners = {"users": ["*@partner.example"], "roles": ["invoker"]}
    with pytest.raises(ForbiddenError, match="key-custodian"):
        await replace(desk, operator=alone).apply(file(partners))
    desk = replace(desk, operator=maker)
    assert (await desk.apply(file(partners))).warnings == []
    lifted = await desk.apply(file({**partners, "roles": ["invoker", "restorer"]}))
    assert lifted.warnings == [
        "The policy widens /identity/end_users/rules/0: services may do more for end users."
    ]
    with pytest.raises(FileError, match="set provisioning"):
        await desk.apply(file({"directory": {"groups": ["staff"]}, "refuse": True}))


async def test_a_wrong_policy_in_the_file_is_pointed_at_and_nothing_is_applied(desk: Desk) -> None:
    with pytest.raises(FileError, match=r"policy\.limits\.burst"):
        await desk.apply({**WHOLE, "policy": {"limits": {"burst": 0}}})
    with pytest.raises(InvalidArgumentsError, match=r"policy\.allowed_middlewares\[1\]"):
        await desk.apply({**WHOLE, "policy": {"allowed_middlewares": ["to_model", "unheard"]}})
    assert (await desk.stored())["servers"] == {}
    assert (await desk.service.policies.current(desk.operator)).version == 0
