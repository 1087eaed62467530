"""Models switch groups off and on in their sessions, where the policy lets them."""

import pytest

from tests.protocol.grouped_service import GROUPS, Grouped, grouped, heard_methods, listed, name, stream
from tests.protocol.mcp_wire import HANDSHAKE
from tests.protocol.requirements import covers
from tests.upstreams.scripted import ScriptedServer


@pytest.fixture
async def service(tmp_path):
    async with grouped(tmp_path) as found:
        yield found


@covers("PG-AGENTIC")
async def test_a_model_switches_groups_off_and_on_in_its_own_session(service: Grouped):
    await service.policy(agentic_groups=True)
    async with service.client(HANDSHAKE) as wire, service.client(HANDSHAKE) as other:
        tools = await listed(wire)
        assert {"enable_groups", "disable_groups"} <= set(tools)
        choices = tools["disable_groups"]["inputSchema"]["properties"]["groups"]["items"]["enum"]
        assert choices == ["letters", "numbers", "other", "work"]
        async with stream(wire) as heard:
            done = await wire.call("tools/call", name="disable_groups", arguments={"groups": ["numbers"]})
            assert done.result["structuredContent"]["disabled"] == ["numbers"]
            await heard_methods(heard, {"notifications/tools/list_changed"})
        assert "alpha__add" in await listed(wire)  # it is in `other` as well
        assert "alpha__greet" not in await listed(wire, "prompts/list")
        await wire.call("tools/call", name="disable_groups", arguments={"groups": ["other"]})
        assert "alpha__add" not in await listed(wire)
        assert "alpha__slow" in await listed(wire)  # in no group
        assert "alpha__add" in await listed(other)
        wrong = await wire.call("tools/call", name="enable_groups", arguments={"groups": ["none"]})
        assert wrong.result["isError"] is True
        assert "letters" in wrong.result["content"][0]["text"]
        await wire.call("tools/call", name="enable_groups", arguments={"groups": ["numbers", "other"]})
        assert "alpha__add" in await listed(wire)


@covers("PG-AGENTIC-OFF")
async def test_without_leave_or_without_a_session_no_such_tools_exist(service: Grouped, revision):
    async with service.client(revision) as wire:
        if wire.modern:
            await service.policy(agentic_groups=True)
        assert {"enable_groups", "disable_groups"}.isdisjoint(await listed(wire))
        reply = await wire.call(
            "tools/call",
            name="disable_groups",
            arguments={"groups": ["numbers"]},
            headers=name(wire, "disable_groups"),
        )
        assert reply.error["code"] == -32602


@covers("PG-AGENTIC")
async def test_a_tool_of_a_server_does_not_stand_beside_the_switch_of_that_name(tmp_path):
    script = ScriptedServer("alpha")
    script.add_tool("enable_groups")
    async with (
        grouped(tmp_path, script, GROUPS[1:2], namespace=False) as service,
        service.client(HANDSHAKE) as wire,
    ):
        assert (await listed(wire))["enable_groups"]["description"] == "Does enable_groups."
        await service.policy(agentic_groups=True)
        found = [one["name"] for one in (await wire.call("tools/list")).result["tools"]]
        assert found.count("enable_groups") == 1
        assert (await listed(wire))["enable_groups"]["title"] == "Enable groups"
