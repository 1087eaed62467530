"""What servers ask of clients: carried to the one client that is meant, whatever revision each side speaks."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import Notification, Request
from pydantic import RootModel

from app.core.access import Role
from app.settings.sections import HttpSettings, SessionsSettings
from tests.protocol.aggregated_service import OnlyHandshake, aggregated, serving_era
from tests.protocol.answering import ANSWERS, SAMPLED, answering
from tests.protocol.conformance_primitives import ConformancePrimitives
from tests.protocol.mcp_harness import Access, build, serving
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import MODERN, PREFIX, client
from tests.upstreams.scripted import ScriptedServer, text
from tests.upstreams.warm import warm_settings

ALICE = str(KEY)
Raw = RootModel[dict[str, Any]]


@contextlib.asynccontextmanager
async def behind(
    folder: Path, script: ScriptedServer, era: Any = None, *, roots: bool = False, **sections: Any
) -> AsyncIterator[tuple[str, Any]]:
    """Serve ``script`` behind the whole service."""
    with serving_era(script, era) as upstream:
        servers = {"alpha": {"url": upstream, "roots": roots}}
        async with aggregated(folder, servers, sections=sections) as served:
            yield served


@contextlib.asynccontextmanager
async def modern(url: str, capabilities: dict[str, Any], key: str = ALICE) -> AsyncIterator[Any]:
    """Yield ``call(name, **params)`` of a client of the revision without sessions."""
    async with client(url, MODERN, None) as wire:
        wire.http.headers["authorization"] = f"Bearer {key}"

        async def call(name: str, **params: Any) -> Any:
            return await wire.call(
                "tools/call",
                {f"{PREFIX}clientCapabilities": capabilities},
                {"mcp-name": name},
                name=name,
                arguments={},
                **params,
            )

        yield call


async def raw_question(context: Any, _arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask with members that no model knows, and tell what came back."""
    params = {
        "messages": [{"role": "user", "content": {"type": "text", "text": "?", "x-note": None}}],
        "maxTokens": 10**30,
        "x-unknown": {"kept": [1, None]},
    }
    answer = await context.session._request_outbound.send_raw_request("sampling/createMessage", params)
    return {**text("asked"), "structuredContent": answer}


@pytest.mark.parametrize("era", [None, OnlyHandshake])
async def test_questions_of_a_server_reach_the_client_of_the_call_and_answers_come_back(tmp_path, era):
    async with (
        behind(tmp_path, ScriptedServer(), era, roots=True) as (url, _),
        answering(url, ALICE) as caller,
    ):
        sampled = await caller.tool("alpha__sample", ask="Capital of France?")
        elicited = await caller.tool("alpha__elicit", ask="Who are you?")
        rooted = await caller.tool("alpha__roots")

    assert sampled.result["content"][0]["text"] == "model said Paris"
    assert elicited.result["content"][0]["text"] == 'accept {"name": "Ada"}'
    assert rooted.result["content"][0]["text"] == "file:///home/ada"
    assert [one["method"] for one in caller.asked] == [
        "sampling/createMessage",
        "elicitation/create",
        "roots/list",
    ]
    assert caller.asked[1]["params"]["message"] == "Who are you?"


async def test_members_that_no_model_knows_survive_in_questions_and_answers(tmp_path):
    script = ScriptedServer()
    script.add_tool("raw", raw_question)
    async with behind(tmp_path, script) as (url, _), answering(url, ALICE) as caller:
        reply = await caller.tool("alpha__raw")

    asked = caller.asked[0]["params"]
    assert asked["x-unknown"] == {"kept": [1, None]}
    assert asked["messages"][0]["content"]["x-note"] is None
    assert asked["maxTokens"] == 10**30
    assert reply.result["structuredContent"] == SAMPLED


async def test_a_client_is_asked_nothing_that_it_did_not_declare(tmp_path):
    async with (
        behind(tmp_path, ScriptedServer(), roots=True) as (url, _),
        answering(url, ALICE, {"roots": {}}) as caller,
    ):
        refused = await caller.tool("alpha__sample")
        served = await caller.tool("alpha__roots")

    assert "error" in refused.message or refused.result["isError"]
    assert served.result["content"][0]["text"] == "file:///home/ada"
    assert [one["method"] for one in caller.asked] == ["roots/list"]


async def test_a_refusal_of_the_client_reaches_the_server(tmp_path):
    async with (
        behind(tmp_path, ScriptedServer()) as (url, _),
        answering(url, ALICE, answers={}) as caller,
    ):
        reply = await caller.tool("alpha__sample")

    assert reply.error["code"] == -1
    assert reply.error["message"] == "No."


async def test_two_sessions_of_one_key_are_each_asked_their_own_questions(tmp_path):
    ada = {**ANSWERS, "elicitation/create": {"action": "accept", "content": {"name": "Ada"}}}
    bob = {**ANSWERS, "elicitation/create": {"action": "accept", "content": {"name": "Bob"}}}
    async with (
        behind(tmp_path, ScriptedServer()) as (url, _),
        answering(url, ALICE, answers=ada) as one,
        answering(url, ALICE, answers=bob) as two,
    ):
        replies = await asyncio.gather(*(who.tool("alpha__elicit") for who in (one, two) * 5))

    said = [reply.result["content"][0]["text"] for reply in replies]
    assert said == ['accept {"name": "Ada"}', 'accept {"name": "Bob"}'] * 5
    assert len(one.asked) == len(two.asked) == 5


async def test_questions_over_stdio_reach_the_client_of_the_call(tmp_path):
    servers = {"alpha": warm_settings()}
    async with aggregated(tmp_path, servers) as (url, _), answering(url, ALICE) as caller:
        reply = await caller.tool("alpha__sample")

    assert reply.result["content"][0]["text"] == "model said Paris"


async def test_progress_and_logs_come_on_the_stream_of_the_call(tmp_path):
    async with behind(tmp_path, ScriptedServer()) as (url, _), answering(url, ALICE) as caller:
        progressed = await caller.tool("alpha__progress", {"progressToken": "mine"})
        await caller.call("logging/setLevel", level="debug")
        logged = await caller.tool("alpha__log", say="hello")
        await caller.call("logging/setLevel", level="error")
        silent = await caller.tool("alpha__log", say="hello")

    steps = [one["params"] for one in progressed.notifications]
    assert [step["progress"] for step in steps] == [1, 2, 3]
    assert {step["progressToken"] for step in steps} == {"mine"}
    assert [one["params"]["data"] for one in logged.notifications] == ["hello"]
    assert silent.notifications == []


async def outside_a_request(context: Any, _arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask for the roots soon after this call has ended, on the standing stream."""
    connection = context.session

    async def later() -> None:
        await asyncio.sleep(0.3)
        try:
            answer = await connection.send_request(Request[None, str](method="roots/list", params=None), Raw)
        except MCPError as error:
            context.script.metas.append({"refused": error.code})
        else:
            context.script.metas.append(answer.root)

    context.script.later = asyncio.create_task(later())
    return text("soon")


async def test_questions_outside_a_request_come_on_the_standing_stream(tmp_path):
    script = ScriptedServer()
    script.add_tool("later", outside_a_request)
    async with (
        behind(tmp_path, script, roots=True) as (url, _),
        answering(url, ALICE) as caller,
        caller.listening(),
    ):
        await caller.tool("alpha__later")
        async with asyncio.timeout(10):
            while not any("roots" in meta for meta in script.metas):
                await asyncio.sleep(0.02)

    assert [one["method"] for one in caller.asked] == ["roots/list"]


async def test_who_has_no_standing_stream_open_is_not_waited_for(tmp_path):
    script = ScriptedServer()
    script.add_tool("later", outside_a_request)
    async with behind(tmp_path, script, roots=True) as (url, _), answering(url, ALICE) as caller:
        await caller.tool("alpha__later")
        async with asyncio.timeout(10):
            while {"refused": -32603} not in script.metas:
                await asyncio.sleep(0.02)


class Hearing(ScriptedServer):
    """A server that keeps the notifications of its clients."""

    def server(self) -> Any:
        heard: list[str] = []
        self.heard = heard

        async def hear(context: Any, call_next: Any) -> Any:
            if context.request_id is None:
                heard.append(context.method)
            return await call_next(context)

        server = super().server()
        server.middleware.append(hear)
        return server


async def test_a_change_of_the_roots_is_passed_on_to_the_servers_of_the_session(tmp_path):
    script = Hearing()
    async with behind(tmp_path, script, roots=True) as (url, _), answering(url, ALICE) as caller:
        await caller.tool("alpha__echo")
        await caller.wire.notify("notifications/roots/list_changed")
        async with asyncio.timeout(10):
            while "notifications/roots/list_changed" not in script.heard:
                await asyncio.sleep(0.02)


async def test_a_call_that_is_cancelled_in_a_bound_session_is_cancelled_at_its_server(tmp_path):
    script = ScriptedServer()
    async with behind(tmp_path, script) as (url, _), answering(url, ALICE) as caller:
        call = asyncio.create_task(caller.tool("alpha__slow"))
        async with asyncio.timeout(10):
            while not script.calls:
                await asyncio.sleep(0.02)
            await caller.wire.notify("notifications/cancelled", requestId=1)
            while not script.cancelled:
                await asyncio.sleep(0.02)
        await call


async def completes(context: Any, _arguments: dict[str, Any]) -> dict[str, Any]:
    """Say, outside of the request, that what was asked for by URL is done."""
    notification = Notification[dict[str, Any], str](
        method="notifications/elicitation/complete", params={"elicitationId": "e-1"}
    )
    await context.session.send_notification(notification)
    return text("told")


async def test_the_end_of_an_elicitation_by_url_reaches_the_client(tmp_path):
    script = ScriptedServer()
    script.add_tool("completes", completes)
    async with behind(tmp_path, script) as (url, _), answering(url, ALICE) as caller, caller.listening():
        reply = await caller.tool("alpha__completes")
        method = "notifications/elicitation/complete"
        if method not in [one["method"] for one in reply.notifications]:
            await caller.heard(method)


async def test_a_session_that_ends_releases_everything(tmp_path):
    async with behind(tmp_path, ScriptedServer()) as (url, app):
        mcp = app.state.mcp
        async with answering(url, ALICE) as caller:
            await caller.tool("alpha__echo")
            assert mcp.process_sessions.count == 1
            ended = await caller.wire.http.delete(url, headers={"mcp-session-id": caller.wire.session})
            assert ended.status_code == 200
            async with asyncio.timeout(10):
                while mcp.process_sessions.count or mcp.notifications.open_streams:
                    await asyncio.sleep(0.02)
            assert (await caller.tool("alpha__echo")).status == 404


async def test_a_session_is_unknown_to_other_keys(tmp_path):
    async with behind(tmp_path, ScriptedServer()) as (url, app), answering(url, ALICE) as caller:
        other = await second_key(app)
        caller.wire.http.headers["authorization"] = f"Bearer {other}"
        assert (await caller.tool("alpha__echo")).status == 404
        deleted = await caller.wire.http.delete(url, headers={"mcp-session-id": caller.wire.session})
        assert deleted.status_code == 404
        caller.wire.http.headers["authorization"] = f"Bearer {ALICE}"
        assert (await caller.tool("alpha__echo")).status == 200


async def second_key(app: Any) -> str:
    services = app.state.services
    owner = await services.access.authenticator.authenticate(ALICE, None)
    made = await services.access.create_key(owner, [Role.INVOKER])
    return str(made.key)


async def test_an_idle_session_ends_and_one_that_listens_does_not(tmp_path):
    idle = SessionsSettings(idle_s=1)
    async with (
        behind(tmp_path, ScriptedServer(), sessions=idle) as (url, app),
        answering(url, ALICE) as caller,
    ):
        await caller.tool("alpha__echo")
        async with caller.listening():
            await asyncio.sleep(2.5)
            assert (await caller.tool("alpha__echo")).status == 200
        async with asyncio.timeout(10):
            while app.state.mcp.process_sessions.count:
                await asyncio.sleep(0.05)
        assert (await caller.tool("alpha__echo")).status == 404


async def test_a_session_whose_key_is_revoked_ends():
    access = Access()
    mcp = build(authenticator=access, ping_s=0.02, primitives=ConformancePrimitives())
    async with serving(mcp) as url, answering(url, "alice") as caller, caller.listening():
        assert mcp.process_sessions.count == 1
        access.keys = {}
        async with asyncio.timeout(10):
            await caller.ended.wait()
        assert mcp.process_sessions.count == 0


async def test_where_no_server_is_behind_the_service_no_session_is_bound(tmp_path):
    async with service(f"sqlite:///{tmp_path}/empty.db") as (url, app), answering(url, ALICE) as caller:
        assert (await caller.call("tools/list")).result == {"tools": []}
        assert app.state.mcp.process_sessions.count == 0
        assert len(caller.wire.session) > 32


async def test_processes_behind_one_socket_bind_no_session_and_ask_nobody(tmp_path):
    async with (
        behind(tmp_path, ScriptedServer(), OnlyHandshake, http=HttpSettings(workers=2)) as (url, app),
        answering(url, ALICE) as caller,
        modern(url, {"elicitation": {}}) as call,
    ):
        assert (await caller.tool("alpha__echo")).status == 200
        assert app.state.mcp.process_sessions.count == 0
        replies = [await caller.tool("alpha__elicit"), await call("alpha__elicit")]

    assert all("error" in reply.message or reply.result["isError"] for reply in replies)


async def test_a_bound_session_is_unknown_to_every_other_process(tmp_path):
    (tmp_path / "other").mkdir()
    async with (
        behind(tmp_path, ScriptedServer()) as (url, _),
        behind(tmp_path / "other", ScriptedServer()) as (other, _),
        answering(url, ALICE) as caller,
    ):
        caller.wire.url = other
        assert (await caller.tool("alpha__echo")).status == 404
        caller.wire.url = url
        assert (await caller.tool("alpha__echo")).status == 200
