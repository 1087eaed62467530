"""Progressive disclosure from the outside: two stages, the gate between them, and who has passed it."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from jsonschema import Draft202012Validator

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.services.audit.audit import AuditQuery
from tests.protocol.aggregated_service import aggregated
from tests.protocol.mcp_wire import HANDSHAKE, MODERN
from tests.protocol.requirements import covers
from tests.protocol.staged_service import HANDLE, LONG, OPERATOR, URI, Host, Staged, scripted_data
from tests.unit.core.tools.test_disclosure import EXAMPLES, GET_DATA
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

SHORT = "Retrieves data from the system with filtering and pagination options."
OPEN = {"type": "object", "additionalProperties": True}


@pytest.fixture
async def staged(tmp_path) -> AsyncIterator[Staged]:
    script = scripted_data()
    with serving_http(script) as url:
        entry = {"data": {"url": url, "namespace": False}}
        async with aggregated(tmp_path, entry, declared={"disclosure": {"data": "staged"}}) as (mcp_url, app):
            served = Staged(mcp_url, app, script)
            await served.offers(lambda tools: len(tools) == len(script.tools))
            yield served


@pytest.fixture
async def host(staged: Staged, revision: str) -> AsyncIterator[Host]:
    async with staged.client(revision) as found:
        yield found


@covers("PD-STAGES", "PD-SELECTION", "PD-MINIMAL", "PD-OPEN-SCHEMA")
async def test_the_first_stage_is_enough_to_choose_a_tool_and_no_more(staged, host):
    await staged.describe("get_data", short=SHORT)

    tools = await host.tools()

    assert tools["get_data"] == {"name": "get_data", "description": SHORT, "inputSchema": OPEN}
    assert tools["send"] == {
        "name": "send",
        "title": "Send",
        "description": "Sends a message to a person.",
        "inputSchema": OPEN,
        "annotations": {"readOnlyHint": False},
        "_meta": {"x/y": 1},
    }
    assert "outputSchema" not in tools["measure"]


@covers("PD-RESOURCE", "PD-NAME", "PD-MIME", "PD-WORKFLOW", "PD-WORKFLOW-CLEAR", "PD-TEMPLATE")
async def test_the_resource_says_how_it_is_used(host):
    listed = (await host.wire.call("resources/list")).result["resources"]
    templates = (await host.wire.call("resources/templates/list")).result["resourceTemplates"]

    (resource,) = [one for one in listed if one["uri"] == URI]
    assert resource["name"] == "Tool Descriptions - Required for tool use"
    assert resource["mimeType"] == "application/json"
    assert resource["description"].startswith(
        "WORKFLOW: Step 1: Pick tool from tools/list based on what it does. Step 2: Fetch full description: "
        "resource:///tool_descriptions?tools=TOOL_NAME. Step 3: Call tool with parameters learned. Must specify "
        "?tools= parameter when fetching."
    )
    for said in (
        "?tools=TOOL1,TOOL2",
        "authorizes",
        "TOOL_DESCRIPTION_REQUIRED",
        "tools/list is for selection",
    ):
        assert said in resource["description"]
    (template,) = [one for one in templates if one["uriTemplate"].startswith(URI)]
    assert template["uriTemplate"] == URI + "{?tools}"


@covers("PD-FULL-SCHEMA", "PD-MAP", "PD-ONLY-ASKED", "PD-QUERY", "PD-EXACT-NAMES")
async def test_the_second_stage_is_the_proposals_example(staged, host):
    await staged.describe("get_data", examples=EXAMPLES, error_guidance={})

    assert await host.entries("?tools=get_data") == {"get_data": {**GET_DATA, "examples": EXAMPLES}}
    result = (await host.read("?tools=get_data")).result
    assert result.get("cacheScope") == ("private" if host.wire.modern else None)
    assert result.get("ttlMs") == (0 if host.wire.modern else None)
    several = await host.entries("?tools=send,GET_DATA,,send,get_data")
    assert list(several) == ["send", "GET_DATA", "get_data"]
    assert several["GET_DATA"]["error"] == "Tool 'GET_DATA' not found"


@covers("PD-EXAMPLES", "PD-ERRORS")
async def test_examples_and_guidance_are_derived_where_nobody_wrote_any(staged, host):
    entry = (await host.entries("?tools=send"))["send"]

    schema = staged.script.tools["send"]["inputSchema"]
    assert entry["description"] == LONG
    assert entry["inputSchema"] == schema
    assert entry["annotations"] == {"readOnlyHint": False}
    (example,) = entry["examples"]
    Draft202012Validator(schema).validate(example["input"])
    assert entry["error_guidance"]["missing_argument"] == "Give every required argument: to."
    assert entry["error_guidance"]["invalid_argument"]["count"] == "must be an integer, at most 5"


@covers("PD-MISSING")
@pytest.mark.parametrize("query", ["", "?", "?tools=", "?tools=,", "?tool=get_data"])
async def test_a_read_without_a_selection_says_so_and_authorizes_nothing(host, query):
    assert await host.entries(query) == {
        "error": {
            "code": "MISSING_TOOL_SELECTION",
            "message": "You must specify one or more tool names in the 'tools' parameter.",
            "examples": [
                "resource:///tool_descriptions?tools=tool_name",
                "resource:///tool_descriptions?tools=tool1,tool2",
            ],
        }
    }
    assert host.handle is None
    assert await host.is_refused("get_data")


@covers("PD-NOT-FOUND")
async def test_an_unknown_tool_has_an_entry_of_its_own(host):
    assert await host.entries("?tools=unknown_tool") == {
        "unknown_tool": {
            "error": "Tool 'unknown_tool' not found",
            "available_tools": ["get_data", "send", "measure"],
        }
    }
    assert host.handle is None


@covers("PD-GATE", "PD-AUTHORIZES", "PD-STRUCTURED", "PD-HANDLE")
async def test_a_tool_runs_once_its_description_was_read(staged, host):
    before = (await host.call("get_data")).result
    body = {
        "error": {
            "code": "TOOL_DESCRIPTION_REQUIRED",
            "message": "Tool 'get_data' requires fetching its description before use.",
            "resource_uri": "resource:///tool_descriptions?tools=get_data",
        }
    }
    assert before["isError"] is True
    assert before["structuredContent"] == body
    assert [json.loads(one["text"]) for one in before["content"]] == [body]
    assert staged.script.calls == []

    await host.entries("?tools=get_data")
    after = [(await host.call("get_data", {"query": "x"})).result["content"][0]["text"] for _ in range(2)]

    assert after == ['{"query": "x"}'] * 2
    assert await host.is_refused("send")
    first = host.handle
    await host.entries("?tools=send")
    assert host.handle == first
    assert not await host.is_refused("send")
    assert not await host.is_refused("get_data")


@covers("PD-AUTHORIZES")
async def test_reads_at_the_same_time_all_count(staged, host):
    await host.entries("?tools=get_data")
    await asyncio.gather(*(host.read(f"?tools={name}") for name in ("send", "measure", "send")))

    assert not [name for name in staged.script.tools if await host.is_refused(name)]


@covers("PD-AUTHORIZES")
async def test_a_session_that_is_bound_to_a_process_remembers_too(staged):
    async with staged.client(HANDSHAKE) as host:
        await host.wire.open(capabilities={"sampling": {}})
        assert await host.is_refused("get_data")
        await host.entries("?tools=get_data")
        assert not await host.is_refused("get_data")


async def test_only_a_read_that_changes_something_is_on_record(staged, host):
    for query in ("?tools=get_data", "?tools=get_data", "?tools=none", "", "?tools=get_data,send"):
        await host.read(query)

    auditor = Caller(DEFAULT_TENANT, "00000000", frozenset({Role.AUDITOR}))
    asked = AuditQuery(action="disclosure.read")
    events = (await staged.app.state.services.audit.query(auditor, asked)).items
    assert [dict(event.details) for event in events] == [{"tools": 1, "of": "session"}] * 2


@covers("PD-STRUCTURED")
async def test_the_refusal_is_text_alone_where_the_output_schema_forbids_more(host):
    refused = (await host.call("measure")).result

    assert refused["isError"] is True
    assert "structuredContent" not in refused
    assert "outputSchema" in (await host.entries("?tools=measure"))["measure"]


@covers("PD-ISOLATED")
async def test_nobody_else_is_authorized_by_a_read(staged, host, revision):
    other = await staged.key()
    await host.entries("?tools=get_data")

    async with staged.client(revision) as same_key, staged.client(revision, other) as other_key:
        assert await same_key.is_refused("get_data")
        assert await other_key.is_refused("get_data")
    assert not await host.is_refused("get_data")


@covers("PD-LIFECYCLE")
async def test_authorization_ends_with_its_session(staged):
    async with staged.client(HANDSHAKE) as host:
        await host.entries("?tools=get_data")
        assert not await host.is_refused("get_data")
        await host.wire.http.delete(host.wire.url, headers={"mcp-session-id": host.wire.session})
        assert (await host.call("get_data")).status == 404
        await host.wire.open()
        assert await host.is_refused("get_data")


@covers("PD-STOLEN")
async def test_a_handle_is_its_callers_alone(staged):
    async with staged.client(MODERN) as host, staged.client(MODERN, await staged.key()) as thief:
        await host.entries("?tools=get_data")
        invented = host.handle[:-1] + ("A" if host.handle[-1] != "A" else "B")
        refusals = [
            await thief.call("get_data", **{HANDLE: host.handle}),
            await thief.read("?tools=get_data", **{HANDLE: host.handle}),
            await host.call("get_data", **{HANDLE: invented}),
            await host.call("get_data", **{HANDLE: 7}),
            await host.call("get_data", **{HANDLE: None}),
        ]
        assert not await host.is_refused("get_data")

    assert [reply.error["code"] for reply in refusals] == [-32602] * 5
    assert {reply.error["data"]["pointer"] for reply in refusals} == {"/_meta/dev.sluice~1disclosure"}
    assert len({reply.error["message"] for reply in refusals}) == 1


@covers("PD-HANDLE")
async def test_a_session_of_the_handshake_revision_is_no_handle(staged):
    async with staged.client(HANDSHAKE) as old, staged.client(MODERN) as new:
        await old.entries("?tools=get_data")
        assert old.handle is None

        assert (await new.call("get_data", **{HANDLE: old.wire.session})).error["code"] == -32602


@covers("PD-WITHOUT-HANDLE")
async def test_what_holds_without_a_handle_is_a_setting(staged):
    other = await staged.key()
    async with staged.client(MODERN) as host, staged.client(MODERN, other) as stranger:
        await host.read("?tools=get_data")
        handle, host.handle = host.handle, None
        assert await host.is_refused("get_data")
        await staged.policy(disclosure={"without_handle": "caller", "caller_ttl_s": 3600})
        assert await host.is_refused("get_data")
        await host.read("?tools=get_data")
        host.handle = None
        assert not await host.is_refused("get_data")
        assert await host.is_refused("send")
        assert await stranger.is_refused("get_data")
        await staged.policy(disclosure={"without_handle": "off"})
        assert not await host.is_refused("measure")
        assert not await stranger.is_refused("get_data")
        host.handle = handle
        assert not await host.is_refused("get_data")


@covers("PD-WITHOUT-HANDLE")
async def test_sessions_are_held_to_their_own_reads_whatever_holds_without_a_handle(staged):
    await staged.policy(disclosure={"without_handle": "off"})
    async with staged.client(HANDSHAKE) as host:
        assert await host.is_refused("get_data")


@covers("PD-LAYERS", "PD-SAME-ACCESS", "PD-ORDER")
async def test_a_read_grants_nothing_and_shows_only_what_the_caller_may_use(staged, revision):
    key = await staged.key()
    granted = [{"keys": [key[4:12]], "members": [{"kind": "tool", "name": "get_data"}]}]
    await staged.policy(grants=granted)
    async with staged.client(revision, key) as host:
        found = await host.entries("?tools=send,get_data")
        assert found["send"] == {"error": "Tool 'send' not found", "available_tools": ["get_data"]}
        assert found["get_data"]["inputSchema"] == GET_DATA["inputSchema"]
        forbidden, unknown = await host.call("send"), await host.call("no_such_tool")
        assert (forbidden.error["code"], unknown.error["code"]) == (-32602, -32602)
        assert forbidden.error["message"] == unknown.error["message"]
        assert not await host.is_refused("get_data")


@covers("PD-SWITCH")
async def test_staged_or_flat_is_a_switch_of_server_tenant_and_key(staged, revision):
    flat, kept = await staged.key(), await staged.key()
    await staged.policy(disclosure={"keys": {flat[4:12]: "flat"}})
    async with staged.client(revision, flat) as host, staged.client(revision, kept) as other:
        assert (await host.tools())["get_data"] == {**GET_DATA}
        assert URI not in await host.uris()
        assert "error" in (await host.read("?tools=get_data")).message
        assert not await host.is_refused("get_data")
        assert URI in await other.uris()
        assert await other.is_refused("get_data")
        await staged.policy(disclosure={"default": "flat", "keys": {flat[4:12]: "staged"}})
        assert not await other.is_refused("get_data")
        assert (await other.tools())["get_data"]["inputSchema"] == GET_DATA["inputSchema"]
        assert await host.is_refused("get_data")


@covers("PD-CHANGED", "PD-DYNAMIC")
async def test_a_changed_definition_must_be_read_again(staged, host):
    await host.entries("?tools=get_data,send")
    assert not await host.is_refused("get_data")

    changed = {**staged.script.tools["get_data"], "description": "Does something else."}
    staged.script.tools["get_data"] = changed
    staged.script.announce()
    await staged.offers(lambda tools: "get_data" not in tools)  # until an operator approves the change
    await staged.app.state.services.servers.approve(OPERATOR, "data")
    await staged.offers(lambda tools: "get_data" in tools)

    assert await host.is_refused("get_data")
    assert not await host.is_refused("send")
    assert (await host.entries("?tools=get_data"))["get_data"]["description"] == "Does something else."
    assert not await host.is_refused("get_data")


async def test_what_one_process_read_holds_in_another(tmp_path, own_postgres_url, revision):
    script = scripted_data()
    with serving_http(script) as url:
        entry, declared = {"data": {"url": url, "namespace": False}}, {"disclosure": {"data": "staged"}}
        options = {"declared": declared, "database_url": own_postgres_url}
        async with (
            aggregated(tmp_path, entry, **options) as (one, app),
            aggregated(tmp_path, entry, **options) as (two, other),
            Staged(one, app, script).client(revision) as host,
        ):
            for served in (app, other):
                await Staged("", served, script).offers(lambda tools: "get_data" in tools)
            host.wire.url = two
            assert await host.is_refused("get_data")
            host.wire.url = one
            await host.entries("?tools=get_data")
            host.wire.url = two
            assert not await host.is_refused("get_data")
            await host.entries("?tools=send")
            host.wire.url = one
            assert not await host.is_refused("send")
            assert await host.is_refused("measure")


@covers("PD-RATE")
async def test_reads_are_limited_in_rate(staged, host):
    await staged.policy(limits={"description_reads_per_minute": 2})
    replies = [await host.read("?tools=get_data") for _ in range(3)]

    assert [reply.status for reply in replies] == [200, 200, 429]
    assert int(replies[-1].headers["retry-after"]) >= 1
    assert not await host.is_refused("get_data")


@covers("PD-FILES")
async def test_a_file_describes_a_tool(tmp_path, revision):
    script = ScriptedServer("data")
    folder = tmp_path / "tool_descriptions"
    folder.mkdir()
    (folder / "data__echo.json").write_text(
        json.dumps({"short": "Says it again.", "usage_guidance": {"n": 1}})
    )
    with serving_http(script) as url:
        served = aggregated(
            tmp_path, {"data": {"url": url}}, declared={"disclosure": {"data": "staged"}}, descriptions=folder
        )
        async with served as (mcp_url, app), Staged(mcp_url, app, script).client(revision) as host:
            assert (await host.tools())["data__echo"]["description"] == "Says it again."
            entry = (await host.entries("?tools=data__echo"))["data__echo"]
            assert entry["usage_guidance"] == {"n": 1}
            assert entry["description"] == "Does echo."
