"""Groups over MCP, with a server behind: what is listed, narrowed, served and refused, on both revisions."""

import pytest

from tests.protocol.grouped_service import (
    GROUPS_META,
    NARROWING,
    Grouped,
    grouped,
    heard_methods,
    listed,
    name,
    stream,
)
from tests.protocol.mcp_wire import HANDSHAKE
from tests.protocol.requirements import covers
from tests.upstreams.scripted import ScriptedServer

CALCULATOR = {
    "name": "calculator",
    "title": "Arithmetic Calculator",
    "description": "Perform mathematical calculations on arithmetic expressions",
    "inputSchema": {
        "type": "object",
        "properties": {
            "expression": {
                "type": "string",
                "description": "Expression to evaluate (e.g., '2 + 3 * 4')",
            }
        },
        "required": ["expression"],
    },
}
GROUPS_OF_THE_PROPOSAL = [
    {
        "name": "user",
        "title": "User Management Tools",
        "description": "Tools used for managing user accounts within the system.",
    },
    {
        "name": "mapping",
        "title": "Geospatial Mapping Tools",
        "description": "Tools used for map rendering, geocoding, and spatial analysis.",
    },
]


@pytest.fixture
async def service(tmp_path):
    async with grouped(tmp_path) as found:
        yield found


def named(result):
    return [one["name"] for one in result["groups"]]


@covers("PG-CAPABILITY")
async def test_the_capability_is_declared_as_in_the_proposal(service: Grouped, revision):
    async with service.client(revision) as wire:
        reply = await wire.call("server/discover") if wire.modern else await wire.open()

    shown = reply.result["capabilities"]
    assert shown["groups"] == {"listChanged": True}
    assert shown["extensions"]["dev.sluice/groups"] == {"listChanged": True}
    if revision == HANDSHAKE:
        assert shown["experimental"]["groups"] == {"listChanged": True}


@covers("PG-LIST", "PG-OMITTED", "PG-UNIQUE")
async def test_the_list_of_the_proposal_goes_out_as_it_is_printed_there(tmp_path, revision):
    async with grouped(tmp_path, groups=[]) as service:
        await service.put(*GROUPS_OF_THE_PROPOSAL, {"name": "mapping"}, GROUPS_OF_THE_PROPOSAL[1])
        async with service.client(revision) as wire:
            reply = await wire.post(wire.body("groups/list", {}) | {"id": 2}, wire.headers("groups/list"))

    assert reply.message["id"] == 2
    ours = sorted(GROUPS_OF_THE_PROPOSAL, key=lambda one: one["name"])
    assert reply.result["groups"] == ours
    modern = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    rest = {key: value for key, value in reply.result.items() if key not in {"groups", "_meta"}}
    assert rest == (modern if wire.modern else {})


@covers("PG-META", "PG-MERGED")
async def test_the_tool_of_the_proposal_goes_out_as_it_is_printed_there(tmp_path, revision):
    script = ScriptedServer("alpha")
    script.tools.clear()
    script.tools["calculator"] = CALCULATOR
    groups = [{"name": "arithmetic", "members": [{"kind": "tool", "name": "calculator"}]}]
    async with (
        grouped(tmp_path, script, groups, namespace=False) as service,
        service.client(revision) as wire,
    ):
        tools = await listed(wire)

    assert tools == {"calculator": {**CALCULATOR, "_meta": {GROUPS_META: ["arithmetic"]}}}


@covers("PG-META", "PG-MERGED", "PG-MANY", "PG-OMITTED")
async def test_every_primitive_names_its_direct_groups_and_only_where_there_are_any(tmp_path, revision):
    script = ScriptedServer("alpha")
    script.add_tool("add", _meta={"example.com/kept": 1, GROUPS_META: ["claimed"]})
    script.add_tool("lonely", _meta={GROUPS_META: ["claimed"]})
    async with grouped(tmp_path, script) as service, service.client(revision) as wire:
        tools = await listed(wire)
        prompts = await listed(wire, "prompts/list")
        resources = await listed(wire, "resources/list")
        templates = await listed(wire, "resources/templates/list")
        groups = await listed(wire, "groups/list")
        middlewares = await listed(wire, "middleware/list")

    assert tools["alpha__add"]["_meta"] == {"example.com/kept": 1, GROUPS_META: ["numbers", "other"]}
    assert tools["alpha__echo"]["_meta"] == {GROUPS_META: ["letters"]}
    assert "_meta" not in tools["alpha__lonely"]
    assert prompts["alpha__greet"]["_meta"] == {GROUPS_META: ["numbers"]}
    assert resources["memo://one"]["_meta"] == {GROUPS_META: ["numbers"]}
    assert "_meta" not in resources["memo://two"]
    assert templates["memo://{name}"]["_meta"] == {GROUPS_META: ["numbers"]}
    assert groups["numbers"] == {
        "name": "numbers",
        "description": "Everything that counts.",
        "_meta": {GROUPS_META: ["work"]},
    }
    assert groups["work"] == {"name": "work", "title": "Work"}
    phase = {"dev.sluice/phase": "outbound"}
    assert middlewares["pii_redaction"]["_meta"] == {**phase, GROUPS_META: ["numbers"]}
    assert middlewares["timestamp_injector"]["_meta"] == phase


@covers("PG-GET")
async def test_a_group_is_read_with_its_members_by_kind(service: Grouped, revision):
    async with service.client(revision) as wire:
        numbers = (await wire.call("groups/get", name="numbers")).result
        work = (await wire.call("groups/get", name="work")).result
        unknown = await wire.call("groups/get", name="none")

    assert numbers["group"]["name"] == "numbers"
    assert numbers["members"] == {
        "tools": ["alpha__add"],
        "prompts": ["alpha__greet"],
        "resources": ["memo://one"],
        "resourceTemplates": ["memo://{name}"],
        "middleware": ["pii_redaction", "pii_restoration"],
    }
    assert work["members"] == {"groups": ["letters", "numbers"]}
    assert (unknown.error["code"], unknown.error["data"]["pointer"]) == (-32602, "/name")


@covers("PG-PAGES")
async def test_groups_are_paged_in_a_stable_order_and_a_stale_cursor_is_refused(tmp_path, revision):
    async with grouped(tmp_path, groups=[]) as service:
        await service.put(*({"name": f"g{number:03}"} for number in reversed(range(60))))
        async with service.client(revision) as wire:
            first = (await wire.call("groups/list")).result
            second = (await wire.call("groups/list", cursor=first["nextCursor"])).result
            await service.put({"name": "more"})
            stale = await wire.call("groups/list", cursor=first["nextCursor"])

    assert named(first) + named(second) == [f"g{number:03}" for number in range(60)]
    assert "nextCursor" not in second
    assert (stale.error["code"], stale.error["data"]["pointer"]) == (-32602, "/cursor")


@covers("PG-NARROWED", "PG-NARROWED-UNKNOWN")
async def test_a_list_request_is_narrowed_to_the_groups_that_it_names_and_those_below(
    service: Grouped, revision
):
    async with service.client(revision) as wire:
        assert set(await listed(wire, "tools/list", "letters")) == {"alpha__echo"}
        assert set(await listed(wire, "tools/list", "work")) == {"alpha__echo", "alpha__add"}
        assert set(await listed(wire, "tools/list", "letters", "other")) == {"alpha__echo", "alpha__add"}
        assert set(await listed(wire, "resources/list", "work")) == {"memo://one"}
        assert set(await listed(wire, "prompts/list", "letters")) == set()
        assert set(await listed(wire, "resources/templates/list", "numbers")) == {"memo://{name}"}
        assert set(await listed(wire, "middleware/list", "work")) == {"pii_redaction", "pii_restoration"}
        assert set(await listed(wire, "groups/list", "work")) == {"work", "letters", "numbers"}
        assert len(await listed(wire)) > 5  # the request before has left nothing behind
        none = await wire.call("tools/list", meta={NARROWING: []})
        assert none.result["tools"] == []
        for method in ("tools/list", "groups/list", "middleware/list"):
            reply = await wire.call(method, meta={NARROWING: ["work", "none"]})
            assert reply.error["code"] == -32602
            assert reply.error["data"]["pointer"] == "/_meta/dev.sluice~1groups/1"
            wrong = await wire.call(method, meta={NARROWING: "work"})
            assert wrong.error["data"]["pointer"] == "/_meta/dev.sluice~1groups"


@covers("PG-ENDPOINT")
async def test_at_the_endpoint_of_a_group_nothing_else_exists(service: Grouped, revision):
    calls = service.script.calls
    async with service.client(revision, "numbers") as wire:
        assert set(await listed(wire)) == {"alpha__add"}
        assert set(await listed(wire, "groups/list")) == {"numbers"}
        assert set(await listed(wire, "resources/list")) == {"memo://one"}
        assert set(await listed(wire, "middleware/list")) == {"pii_redaction", "pii_restoration"}
        done = await wire.call(
            "tools/call", name="alpha__add", arguments={"a": 1, "b": 2}, headers=name(wire, "alpha__add")
        )
        assert "result" in done.message
        calls.clear()
        outside = await wire.call(
            "tools/call", name="alpha__echo", arguments={}, headers=name(wire, "alpha__echo")
        )
        unknown = await wire.call(
            "tools/call", name="alpha__none", arguments={}, headers=name(wire, "alpha__none")
        )
        assert outside.error["code"] == unknown.error["code"] == -32602
        assert outside.error["message"] == unknown.error["message"]
        read = await wire.call("resources/read", uri="memo://one", headers=name(wire, "memo://one"))
        assert read.result["contents"]
        invoked = await wire.invoke({"type": "text", "text": "x"}, name="timestamp_injector")
        nothing = await wire.invoke({"type": "text", "text": "x"}, name="no_such_thing")
        assert invoked.error["message"] == nothing.error["message"]
        assert invoked.error["code"] == nothing.error["code"] == -32602
        narrowed = await wire.call("tools/list", meta={NARROWING: ["letters"]})
        assert narrowed.error["data"]["pointer"] == "/_meta/dev.sluice~1groups/0"
        foreign = await wire.call("groups/get", name="letters")
        assert foreign.error["data"]["pointer"] == "/name"
    assert ("tools/call", "echo") not in calls


@covers("PG-ENDPOINT", "PG-ENDPOINT-UNKNOWN")
async def test_endpoints_serve_groups_below_and_names_with_spaces_and_nothing_that_is_not_there(
    service: Grouped, revision
):
    await service.put({"name": "Pull Requests", "members": [{"kind": "tool", "name": "alpha__slow"}]})
    async with service.client(revision, "work") as wire:
        assert set(await listed(wire)) == {"alpha__echo", "alpha__add"}
    async with service.client(revision, "Pull Requests") as wire:
        assert set(await listed(wire)) == {"alpha__slow"}
        for missing in ("none", "numbers/more", "", "Pull%20Requests"):
            wire.url = service.at(None) + "/groups/" + missing.replace("%", "%25")
            reply = await wire.call("tools/list")
            assert (reply.status, reply.error["data"]["code"]) == (404, "not_found"), missing


async def test_an_endpoint_asks_for_a_key_first_and_its_name_is_no_label_of_a_metric(
    service: Grouped, revision
):
    async with service.client(revision, "numbers") as wire:
        assert set(await listed(wire)) == {"alpha__add"}
        assert (await wire.call("tools/list", cursor="nothing")).error["code"] == -32602
        metrics = await wire.http.get(service.url.removesuffix("/mcp") + "/metrics")
        for group in ("numbers", "none"):
            wire.url = service.at(group)
            refused = await wire.call("tools/list", headers={"authorization": "Bearer nobody"})
            assert refused.status == 401

    assert 'route="/mcp/groups/{name}"' in metrics.text
    assert "/mcp/groups/numbers" not in metrics.text
    assert 'sluice_errors_total{code="invalid_arguments"}' in metrics.text


@covers("PG-ENDPOINT-SESSION")
async def test_a_session_belongs_to_the_endpoint_where_it_began(service: Grouped):
    async with (
        service.client(HANDSHAKE, "numbers") as inside,
        service.client(HANDSHAKE) as everywhere,
        service.client(HANDSHAKE, "letters") as beside,
    ):
        for wire, other in ((inside, everywhere), (everywhere, inside), (inside, beside)):
            headers = {"mcp-session-id": other.session}
            assert (await wire.call("tools/list", headers=headers)).status == 404
            ended = await wire.http.delete(wire.url, headers=wire.headers("") | headers)
            assert ended.status_code == 404
        for wire in (inside, everywhere, beside):
            assert (await wire.call("tools/list")).status == 200
        ended = await inside.http.delete(inside.url, headers=inside.headers(""))
        assert ended.status_code == 204


@covers("PG-VISIBLE", "PG-ACCESS")
async def test_access_by_group_holds_for_lists_calls_and_reads_alike(service: Grouped, revision):
    await service.policy(grants=[{"groups": ["letters"]}])
    async with service.client(revision) as wire:
        assert set(await listed(wire)) == {"alpha__echo"}
        assert set(await listed(wire, "resources/list")) == set()
        service.script.calls.clear()
        for method, key, forbidden, absent in (
            ("tools/call", "name", "alpha__add", "alpha__none"),
            ("prompts/get", "name", "alpha__greet", "alpha__none"),
            ("resources/read", "uri", "memo://one", "memo:none"),
        ):
            known = await wire.call(method, headers=name(wire, forbidden), **{key: forbidden})
            unknown = await wire.call(method, headers=name(wire, absent), **{key: absent})
            assert known.error["code"] == unknown.error["code"] == -32602
            assert known.error["message"] == unknown.error["message"]
        assert service.script.calls == []
        # The middlewares of `numbers` are not a matter of grants, so that group shows as theirs.
        groups = await listed(wire, "groups/list")
        assert set(groups) == {"letters", "numbers", "work"}
        assert (await wire.call("groups/get", name="numbers")).result["members"] == {
            "middleware": ["pii_redaction", "pii_restoration"]
        }
        hidden = await wire.call("groups/get", name="other")
        assert (hidden.error["code"], hidden.error["data"]["pointer"]) == (-32602, "/name")
        narrowed = await wire.call("tools/list", meta={NARROWING: ["other"]})
        assert narrowed.error["data"]["pointer"] == "/_meta/dev.sluice~1groups/0"
        wire.url = service.at("other")
        assert (await wire.call("tools/list")).status == 404


@covers("PG-LIST-CHANGED", "PG-MEMBERSHIP-CHANGED")
async def test_streams_hear_of_changed_groups_and_of_changed_membership(service: Grouped, revision):
    async with service.client(revision) as wire:
        await listed(wire)
        async with stream(wire) as heard:
            await service.put({"name": "new", "title": "New"})
            assert await heard_methods(heard, {"notifications/groups/list_changed"}) == {
                "notifications/groups/list_changed"
            }
            await service.put(
                {"name": "new", "title": "New", "members": [{"kind": "tool", "name": "alpha__slow"}]}
            )
            assert "notifications/tools/list_changed" in await heard_methods(
                heard, {"notifications/tools/list_changed"}
            )
            member = {"kind": "resource", "name": "memo://two"}
            await service.put({"name": "new", "title": "New", "members": [member]})
            methods = {"notifications/tools/list_changed", "notifications/resources/list_changed"}
            assert await heard_methods(heard, methods) == methods
        assert (await listed(wire, "resources/list"))["memo://two"]["_meta"] == {GROUPS_META: ["new"]}


@covers("PG-LIST-CHANGED")
async def test_the_notification_is_that_of_the_proposal(service: Grouped):
    async with service.client(HANDSHAKE) as wire:
        await listed(wire)
        async with stream(wire) as heard:
            await service.put({"name": "new"})
            message = await heard.get()

    assert message == {"jsonrpc": "2.0", "method": "notifications/groups/list_changed"}


@covers("PG-ENDPOINT", "PG-ENDPOINT-SESSION")
async def test_a_session_bound_to_this_process_belongs_to_its_endpoint_too(service: Grouped):
    async with service.client(HANDSHAKE, "numbers") as wire, service.client(HANDSHAKE) as everywhere:
        await wire.open({"sampling": {}})
        assert set(await listed(wire)) == {"alpha__add"}
        headers = {"mcp-session-id": wire.session}
        assert (await everywhere.call("tools/list", headers=headers)).status == 404
        assert set(await listed(wire)) == {"alpha__add"}
