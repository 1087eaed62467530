"""Concerns from the outside: what hosts are told, how they configure, what they are listed."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.access import Role
from app.core.catalog.primitives import PrimitiveKind
from tests.protocol.concerned_service import (
    ASKED,
    DECLARED,
    HANDLE,
    OPERATOR,
    SECURITY,
    WARNINGS,
    Concerned,
    Host,
    concerned,
    names_of,
)
from tests.protocol.mcp_wire import HANDSHAKE
from tests.protocol.requirements import covers

ALL = ["encryptData", "logData", "validateData"]


@pytest.fixture
async def service(tmp_path) -> AsyncIterator[Concerned]:
    async with concerned(tmp_path) as served:
        yield served


@pytest.fixture
async def host(service: Concerned, revision: str) -> AsyncIterator[Host]:
    async with service.host(revision) as found:
        yield found


# Declaration


@covers("CB-CAPABILITY", "CB-LIST", "CB-DEFINITION")
async def test_what_is_declared_stands_in_the_capabilities_and_in_the_list(service, host):
    reply = await (host.call("server/discover") if host.wire.modern else host.initialize())
    capabilities = reply.result["capabilities"]
    lists = [(await host.call(method)).result for method in ("concerns/list", "listConcerns")]

    assert capabilities["concerns"] == DECLARED
    assert capabilities["extensions"]["dev.sluice/concerns"] == {"concerns": DECLARED}
    if not host.wire.modern:
        assert capabilities["experimental"]["concerns"] == {"concerns": DECLARED}
    assert [one["concerns"] for one in lists] == [DECLARED, DECLARED]
    if host.wire.modern:
        assert {(one["ttlMs"], one["cacheScope"], one["resultType"]) for one in lists} == {
            (0, "private", "complete")
        }


@covers("CB-CAPABILITY")
async def test_a_tenant_that_declares_nothing_has_no_such_capability(service, host):
    for name in ("security", "cost", "performance"):
        await service.concerns.delete(OPERATOR, name, force=True)

    reply = await (host.call("server/discover") if host.wire.modern else host.initialize())

    capabilities = reply.result["capabilities"]
    assert "concerns" not in capabilities
    assert "dev.sluice/concerns" not in capabilities["extensions"]
    assert "concerns" not in capabilities.get("experimental", {})
    assert (await host.call("concerns/list")).result["concerns"] == []
    assert await host.names() == ALL


async def test_a_streamed_answer_says_the_same_as_a_plain_one(host):
    for method, params in (("concerns/list", {}), ("concerns/update", {"concerns": {"security": "high"}})):
        plain, streamed = [await host.call(method, meta, **params) for meta in ({}, {"progressToken": 1})]
        for result in (plain.result, streamed.result):
            result.get("_meta", {}).pop(HANDLE, None)
        assert streamed.result == plain.result


async def test_a_cursor_for_the_one_page_of_concerns_is_refused(host):
    assert (await host.call("concerns/list", cursor="x")).error["code"] == -32602


async def test_concerns_are_for_those_who_use_primitives_or_configure_them(service, revision):
    for role in (Role.RESTORER, Role.OPERATOR):
        async with service.host(revision, await service.key(role)) as host:
            for reply in (await host.call("concerns/list"), await host.call("concerns/update", concerns={})):
                assert "result" in reply.message
    auditor = await service.key(Role.AUDITOR)
    async with service.host(revision) as host:
        wire = host.wire
        for method in ("concerns/list", "concerns/update"):
            reply = await wire.http.post(
                wire.url,
                json=wire.body(method, {"concerns": {}}),
                headers={**wire.headers(method), "authorization": f"Bearer {auditor}"},
            )
            assert (reply.status_code, reply.json()["error"]["data"]["code"]) == (403, "forbidden")


# The workflow of the proposal


@covers("CB-RULE", "CB-UPDATE", "CB-INITIALIZED", "CB-CAPABILITY")
async def test_the_workflow_of_the_proposal(service, revision):
    async with service.host(revision) as host:
        if host.wire.modern:  # there is no initialized notification
            await host.update({"security": "high", "cost": "minimal"})
        else:
            await host.initialize(initialized={"security": "high", "cost": "minimal"})
        assert await host.names() == ["encryptData", "validateData"]

        updated = await host.update({"security": "high", "cost": "moderate"}, method="updateConcerns")

        assert updated.result["concerns"] == {"security": "high", "cost": "moderate"}
        assert updated.result["warnings"] == []
        assert await host.names() == ["validateData"]


@covers("CB-RULE")
async def test_the_configuration_of_the_proposal(host):
    wanted = {"security": "high", "cost": "minimal", "performance": "balanced"}

    assert (await host.update(wanted)).result["concerns"] == wanted
    assert await host.names() == ["encryptData", "validateData"]


@covers("CB-UNAWARE", "CB-DEFAULT")
async def test_who_configures_nothing_sees_everything_unless_the_policy_applies_defaults(service, host):
    assert await host.names() == ALL

    await service.policy(concerns={"apply_defaults": True})

    assert await host.names() == ["logData", "validateData"]
    assert (await host.update({})).result["concerns"] == {
        "cost": "any",
        "performance": "balanced",
        "security": "medium",
    }
    await host.update({"security": "high", "cost": "minimal"})
    assert await host.names() == ["encryptData", "validateData"]
    stopped = dict.fromkeys(["security", "cost", "performance"])
    assert (await host.update(stopped)).result["concerns"] == {}
    assert await host.names() == ALL


@covers("CB-NO-ACCESS")
async def test_what_is_not_listed_can_be_called(host):
    await host.update({"security": "low"})

    reply = await host.call("tools/call", name="encryptData", arguments={})

    assert await host.names() == ["validateData"]
    assert "content" in reply.result
    assert not reply.result.get("isError")


@covers("CB-KINDS")
async def test_prompts_resources_and_templates_are_filtered_too(service, host):
    for kind, name in (("prompt", "greet"), ("resource", "memo://*"), ("template", "memo://{name}")):
        await service.map(kind, name, {"security": ["low", "medium"]})
    lists = ("prompts/list", "resources/list", "resources/templates/list")

    assert [await host.names(method) for method in lists] == [
        ["greet"],
        ["memo://one", "memo://two"],
        ["memo://{name}"],
    ]
    await host.update({"security": "high"})
    assert [await host.names(method) for method in lists] == [[], [], []]


@covers("CB-INTERNAL", "CB-META")
async def test_the_mapping_is_shown_only_where_the_policy_says_so(service, host):
    async def metas() -> list[dict[str, Any]]:
        return [one.get("_meta", {}) for one in (await host.call("tools/list")).result["tools"]]

    assert await metas() == [{"vendor/kept": 1}, {}, {}]
    await service.policy(concerns={"expose": True})
    assert await metas() == [
        {"vendor/kept": 1, "concerns": {"security": "high", "cost": "minimal"}},
        {"concerns": {"security": "medium"}},
        {},
    ]


@covers("CB-META")
async def test_what_a_primitive_says_itself_counts_where_no_mapping_names_it(service, host):
    await host.update({"security": "low"})
    await service.map("tool", "encryptData", {})
    assert await host.names() == ["encryptData", "validateData"]

    await service.concerns.delete_mapping(OPERATOR, PrimitiveKind.TOOL, "encryptData")

    assert await host.names() == ["validateData"]
    await host.update({"security": "high", "cost": "minimal"})
    assert await host.names() == ["encryptData", "validateData"]


# Where a configuration comes from


@covers("CB-INITIALIZE", "CB-INITIALIZED", "CB-PRECEDENCE", "CB-PREFERENCES")
async def test_the_stronger_source_wins(service):
    key = await service.key()
    caller = await service.app.state.services.access.authenticator.authenticate(key, None)
    await service.concerns.put_preferences(caller, caller.key_id, {"security": "low", "cost": "any"})

    async with service.host(HANDSHAKE, key) as host:

        async def effective() -> object:
            return (await host.update({})).result["concerns"]

        assert await effective() == {"cost": "any", "security": "low"}
        await host.initialize(initialize={"security": "medium"})
        assert await effective() == {"cost": "any", "security": "medium"}
        assert await host.names() == ["logData", "validateData"]
        await host.initialize(initialize={"security": "medium"}, initialized={"security": "high"})
        assert await effective() == {"cost": "any", "security": "high"}
        await host.update({"cost": "minimal"})
        assert await host.names() == ["encryptData", "validateData"]
        assert await host.names(**{ASKED: {"security": "medium"}}) == ["logData", "validateData"]
        assert await host.names(**{ASKED: {"security": None, "cost": None}}) == ALL
        assert await host.names() == ["encryptData", "validateData"]


@covers("CB-INITIALIZE", "CB-INITIALIZED", "CB-UPDATE")
async def test_a_client_that_servers_may_ask_configures_concerns_like_any_other(service):
    async with service.host(HANDSHAKE) as host:
        await host.initialize(initialize={"security": "medium"}, initialized={"cost": "minimal"}, asked=True)
        assert len(host.wire.session) == 32  # bound to this process
        effective = (await host.update({})).result["concerns"]
        assert effective == {"cost": "minimal", "security": "medium"}
        assert await host.names() == ["logData", "validateData"]
        await host.update({"security": "high"})
        assert await host.names() == ["encryptData", "validateData"]


@covers("CB-PREFERENCES", "CB-PRECEDENCE")
async def test_a_request_may_bring_its_own_and_preferences_count_where_nothing_is_said(service, revision):
    key = await service.key()
    caller = await service.app.state.services.access.authenticator.authenticate(key, None)
    await service.concerns.put_preferences(caller, caller.key_id, {"security": "high"})

    async with service.host(revision, key) as host, service.host(revision) as other:
        assert await host.names() == ["encryptData", "validateData"]
        assert await host.names(**{ASKED: {"security": "medium"}}) == ["logData", "validateData"]
        assert await other.names() == ALL


@covers("CB-PREFERENCES", "CB-DEFAULT")
async def test_a_null_that_is_stored_stops_a_concern_and_its_default(service, revision):
    key = await service.key()
    caller = await service.app.state.services.access.authenticator.authenticate(key, None)
    await service.policy(concerns={"apply_defaults": True})

    async with service.host(revision, key) as host, service.host(revision) as other:
        assert await host.names() == ["logData", "validateData"]
        stopped = dict.fromkeys(["security", "cost", "performance"])
        stored = await service.concerns.put_preferences(caller, caller.key_id, {**stopped, "colour": None})
        assert stored.concerns == stopped
        assert await host.names() == ALL
        assert await other.names() == ["logData", "validateData"]
        assert await host.names(**{ASKED: {"security": "medium"}}) == ["logData", "validateData"]
        await service.concerns.put_preferences(caller, caller.key_id, {"security": "high"})
        assert await host.names() == ["validateData"]
        await service.concerns.put_preferences(caller, caller.key_id, {})
        assert await host.names() == ["logData", "validateData"]


@covers("CB-MERGE")
async def test_updates_merge_null_removes_and_replace_replaces(host):
    assert (await host.update({"security": "high"})).result["concerns"] == {"security": "high"}
    both = {"cost": "any", "security": "high"}
    assert (await host.update({"cost": "any"})).result["concerns"] == both
    assert (await host.update({"security": None})).result["concerns"] == {"cost": "any"}
    assert (await host.update({"security": "low"}, replace=True)).result["concerns"] == {"security": "low"}
    assert (await host.update({}, replace=True)).result["concerns"] == {}
    assert await host.names() == ALL


# What was not taken as it was said


@covers("CB-UNDECLARED", "CB-OUTSIDE", "CB-WARNINGS")
async def test_what_is_ignored_is_told_by_the_update_and_by_lists(host):
    reply = await host.update({"colour": "red", "security": "extreme", "cost": "minimal"})
    listed = await host.call("tools/list", meta={ASKED: {"colour": "red"}})

    assert reply.result["concerns"] == {"cost": "minimal"}
    assert [(one["concern"], one["code"]) for one in reply.result["warnings"]] == [
        ("colour", "undeclared"),
        ("security", "out_of_values"),
    ]
    assert [one["concern"] for one in listed.result["_meta"][WARNINGS]] == ["colour"]
    assert WARNINGS not in (await host.call("tools/list")).result.get("_meta", {})


@covers("CB-OUTSIDE")
async def test_a_value_may_be_moved_to_the_nearest_one(service, host):
    latency = {"name": "latency", "description": "Seconds", "values": {"min": 1, "max": 60}, "default": 5}
    await service.declare({**latency, "on_invalid": "clamp"})
    await service.map("tool", "logData", {"latency": {"max": 10}})

    reply = await host.update({"latency": 3600})

    assert reply.result["concerns"] == {"latency": 60}
    assert [one["code"] for one in reply.result["warnings"]] == ["clamped"]
    assert await host.names() == ["encryptData", "validateData"]


@covers("CB-OUTSIDE")
async def test_a_value_may_be_refused_and_then_nothing_changes(service, host):
    await service.declare({**SECURITY, "on_invalid": "error"})
    await host.update({"cost": "any"})

    refused = await host.call("concerns/update", concerns={"cost": "minimal", "security": "extreme"})
    asked = await host.call("tools/list", meta={ASKED: {"security": "extreme"}})

    assert (refused.error["code"], refused.error["data"]["pointer"]) == (-32602, "/concerns/security")
    assert asked.error["code"] == -32602
    assert asked.error["data"]["pointer"] == "/_meta/dev.sluice~1concerns/security"
    assert "extreme" not in refused.text + asked.text
    assert (await host.update({})).result["concerns"] == {"cost": "any"}


@covers("CB-OUTSIDE", "CB-WARNINGS")
async def test_the_handshake_locks_nobody_out(service):
    await service.declare({**SECURITY, "on_invalid": "error"})
    async with service.host(HANDSHAKE) as host:
        for wrong in (
            {"security": "extreme", "cost": "any"},
            ["high"],
            "high",
            {"x" * 500: 1},
            {"cost": [1]},
        ):
            await host.initialize(initialize=wrong, initialized=wrong)
            listed = await host.call("tools/list")
            assert names_of(listed)
            if isinstance(wrong, dict) and "security" in wrong:
                assert [one["concern"] for one in listed.result["_meta"][WARNINGS]] == ["security"]
                assert names_of(listed) == ["logData", "validateData"]


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({}, "/concerns"),
        ({"concerns": []}, "/concerns"),
        ({"concerns": {f"c{number}": 1 for number in range(65)}}, "/concerns"),
        ({"concerns": {}, "replace": "yes"}, "/replace"),
    ],
)
async def test_an_update_that_is_none_is_refused_with_a_pointer(host, params, pointer):
    reply = await host.wire.call("concerns/update", **params)
    assert (reply.error["code"], reply.error["data"]["pointer"]) == (-32602, pointer)
