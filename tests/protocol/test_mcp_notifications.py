"""Changes reach every open stream that they concern, on whichever replica they were made."""

import asyncio

import anyio
import pytest

from app.core.access import DEFAULT_TENANT
from app.core.errors import OverloadedError
from app.protocol.wire.notifications import Notifications, StreamNotification, list_changes
from app.services.access.sessions import session_key
from tests.protocol.aggregated_service import aggregated, listed
from tests.protocol.answering import answering
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import MODERN
from tests.protocol.replicas import changed, methods_of, streaming
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer


async def test_a_group_that_changes_is_told_with_the_lists_that_show_it(replicas, revision):
    group = {"name": "talk", "members": [{"kind": "tool", "name": "alpha__echo"}]}
    async with streaming(replicas.two, revision) as stream:
        await replicas.rest("PUT", "/groups/talk", group)
        assert await methods_of(stream, 2) == changed("tools", "groups")
        await replicas.rest("PATCH", "/groups/talk/members", {"add": [{"kind": "prompt", "name": "*"}]})
        assert await methods_of(stream, 1) == changed("prompts")
        await replicas.rest("DELETE", "/groups/talk")
        assert await methods_of(stream, 3) == changed("tools", "prompts", "groups")


async def test_a_server_that_is_paused_or_changes_its_list_is_told(replicas, revision):
    async with streaming(replicas.two, revision) as stream:
        await asyncio.to_thread(replicas.script.tools.pop, "echo")
        await asyncio.to_thread(replicas.script.announce, "tools")
        assert await methods_of(stream, 1) == changed("tools")
        await replicas.rest("POST", "/servers/alpha/pause")
        assert await methods_of(stream, 3) == changed("tools", "prompts", "resources")


async def test_a_mapping_to_concerns_is_told(replicas, revision):
    concern = {"name": "speed", "description": "How fast.", "values": ["fast", "slow"], "default": "fast"}
    mapping = {"kind": "tool", "name": "alpha__slow", "concerns": {"speed": "slow"}}
    async with streaming(replicas.two, revision) as stream:
        await replicas.rest("PUT", "/concerns/speed", concern)
        await replicas.rest("PUT", "/concern-mappings", mapping)
        assert await methods_of(stream, 1) == changed("tools")


async def test_a_session_bound_to_its_process_hears_of_changes_too(replicas):
    group = {"name": "talk", "members": [{"kind": "tool", "name": "alpha__echo"}]}
    async with answering(replicas.two, str(KEY)) as caller, caller.listening():
        await replicas.rest("PUT", "/groups/talk", group)
        for name in ("tools", "groups"):
            await caller.heard(f"notifications/{name}/list_changed")


async def test_a_bound_session_configures_concerns_and_hears_of_its_own_lists(replicas):
    concern = {"name": "speed", "description": "How fast.", "values": ["fast", "slow"], "default": "fast"}
    mapping = {"kind": "tool", "name": "alpha__slow", "concerns": {"speed": "slow"}}
    await replicas.rest("PUT", "/concerns/speed", concern)
    await replicas.rest("PUT", "/concern-mappings", mapping)
    await listed(replicas.apps[-1])
    async with answering(replicas.two, str(KEY)) as caller, caller.listening():
        before = (await caller.call("tools/list")).result["tools"]
        await caller.call("concerns/update", concerns={"speed": "fast"})
        await caller.heard("notifications/tools/list_changed")
        after = (await caller.call("tools/list")).result["tools"]

    assert {one["name"] for one in before} - {one["name"] for one in after} == {"alpha__slow"}


async def test_listening_tells_only_what_was_asked_for(replicas):
    async with streaming(replicas.two, MODERN, groupsListChanged=True) as stream:
        for name in ("one", "two"):
            group = {"name": name, "members": [{"kind": "tool", "name": "*"}]}
            await replicas.rest("PUT", f"/groups/{name}", group)
            await listed(replicas.apps[-1])
        told = [(await stream.message())["method"] for _ in range(2)]

    assert told == ["notifications/groups/list_changed"] * 2


async def test_a_change_of_one_tenant_is_told_to_no_other(tmp_path):
    with serving_http(ScriptedServer()) as upstream:
        async with (
            aggregated(tmp_path, {"alpha": {"url": upstream}}) as (url, app),
            streaming(url, MODERN) as stream,
        ):
            app.state.mcp.lists_changed("globex", frozenset({"tool", "group"}))
            app.state.mcp.lists_changed(DEFAULT_TENANT, frozenset({"prompt"}))
            assert await methods_of(stream, 1) == changed("prompts")


@pytest.mark.parametrize(
    ("kinds", "lists"),
    [
        ({"tool"}, ["tools"]),
        ({"resource", "template"}, ["resources"]),
        ({"tool concerns", "tool", "group"}, ["groups", "tools"]),
        ({"middleware"}, []),
    ],
)
def test_each_list_that_changed_is_told_once(kinds, lists):
    told = list_changes("acme", kinds, session="key")

    assert [one.method for one in told] == [f"notifications/{name}/list_changed" for name in lists]
    assert {(one.tenant, one.session) for one in told} <= {("acme", "key")}


async def test_a_tenant_has_so_many_streams_and_those_bounded_elsewhere_do_not_wait_for_them():
    notifications = Notifications(per_tenant=1)
    with notifications.listen("acme"):
        with pytest.raises(OverloadedError), notifications.listen("acme"):
            pass
        with notifications.listen("acme", counted=False), notifications.listen("other"):
            pass


async def test_a_process_that_stops_ends_its_streams_and_opens_no_other():
    notifications = Notifications()
    with notifications.listen("acme") as stream:
        notifications.close()
        with pytest.raises(anyio.EndOfStream):
            stream.receive_nowait()
        with pytest.raises(OverloadedError), notifications.listen("acme"):
            pass


async def test_what_is_told_to_one_session_is_told_to_no_other():
    notifications = Notifications()
    with (
        notifications.listen("acme", name="mine") as mine,
        notifications.listen("acme", name="other") as other,
        notifications.listen("acme") as nobodys,
    ):
        notifications.publish(StreamNotification("x", tenant="acme", session=session_key("mine")))
        notifications.publish(StreamNotification("y", tenant="acme"))
        assert (await mine.receive()).method == "x"
        assert (await other.receive()).method == "y"
        assert (await nobodys.receive()).method == "y"
