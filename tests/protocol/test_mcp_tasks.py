"""Tasks of servers of the handshake revision: ids of one's own, policies that hold, and nobody else's tasks."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import RequestParams
from pydantic import ConfigDict, Field

from tests.protocol.aggregated_service import OnlyHandshake, aggregated, serving_era
from tests.protocol.answering import answering
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import HANDSHAKE, MODERN
from tests.protocol.replicas import keyed
from tests.upstreams.scripted import ScriptedServer, text

RELATED = "io.modelcontextprotocol/related-task"
CAPABILITIES = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


class Params(RequestParams):
    model_config = ConfigDict(extra="allow")
    task_id: str = Field(alias="taskId")


class Tasking(ScriptedServer):
    """A server that knows tasks, which the SDK does not; all its clients share them, as without authentication."""

    def server(self) -> Any:
        server = super().server()
        self.tasks: dict[str, dict[str, Any]] = {}
        for verb in ("get", "result", "cancel"):
            server.add_request_handler(f"tasks/{verb}", Params, getattr(self, verb))
        server.middleware.append(self.begin)
        return server

    async def begin(self, context: Any, call_next: Any) -> Any:
        params = context.params or {}
        if context.method == "tools/call" and "task" in params:
            name = f"t{len(self.tasks) + 1}"
            self.tasks[name] = {"taskId": name, "status": "working", "ttl": params["task"].get("ttl")}
            return {"task": self.tasks[name]}
        result = await call_next(context)
        if context.method == "initialize":
            result["capabilities"]["tasks"] = CAPABILITIES
        return result

    def known(self, name: str) -> dict[str, Any]:
        if name not in self.tasks:
            raise MCPError(-32602, "No such task.")
        return self.tasks[name]

    async def get(self, _context: Any, params: Params) -> dict[str, Any]:
        return dict(self.known(params.task_id))

    async def result(self, _context: Any, params: Params) -> dict[str, Any]:
        self.known(params.task_id)
        return {**text("mail jane.smith@example.com"), "_meta": {RELATED: {"taskId": params.task_id}}}

    async def cancel(self, _context: Any, params: Params) -> dict[str, Any]:
        self.known(params.task_id)["status"] = "cancelled"
        return dict(self.tasks[params.task_id])


@contextlib.asynccontextmanager
async def tasking(folder: Any, declared: Any = None) -> AsyncIterator[tuple[str, Any]]:
    with serving_era(Tasking(), OnlyHandshake) as upstream:
        async with aggregated(folder, {"alpha": {"url": upstream}}, declared=declared) as served:
            yield served


async def begun(wire: Any) -> str:
    reply = await wire.call("tools/call", name="alpha__echo", arguments={}, task={"ttl": 60000})
    task: str = reply.result["task"]["taskId"]
    return task


@pytest.mark.parametrize("bound", [False, True])
async def test_a_task_is_begun_asked_about_and_cancelled_under_a_name_of_its_own(tmp_path, bound):
    async with tasking(tmp_path) as (url, _):
        client = answering(url, str(KEY)) if bound else keyed(url, HANDSHAKE)
        async with client as wire:
            task = await begun(wire)
            found = (await wire.call("tasks/get", taskId=task)).result
            listed = (await wire.call("tasks/list")).result["tasks"]
            result = (await wire.call("tasks/result", taskId=task)).result
            cancelled = (await wire.call("tasks/cancel", taskId=task)).result

    assert task == "alpha__t1"
    assert found == {"taskId": task, "status": "working", "ttl": 60000}
    assert listed == [found]
    assert result["_meta"] == {RELATED: {"taskId": task}}
    assert cancelled["status"] == "cancelled"


async def test_tasks_are_advertised_where_a_server_serves_them_and_to_the_handshake_only(tmp_path):
    async with (
        tasking(tmp_path) as (url, _),
        keyed(url, HANDSHAKE) as wire,
        keyed(url, MODERN) as other,
    ):
        shown = (await wire.open()).result["capabilities"]
        modern = (await other.call("server/discover")).result["capabilities"]
        refused = await other.call("tasks/list")

    assert shown["tasks"] == CAPABILITIES
    assert "tasks" not in modern
    assert refused.error["code"] == -32601


async def test_nobody_sees_the_tasks_of_another_session(tmp_path):
    async with (
        tasking(tmp_path) as (url, _),
        keyed(url, HANDSHAKE) as one,
        keyed(url, HANDSHAKE) as two,
    ):
        task = await begun(one)
        refused = [await two.call(f"tasks/{verb}", taskId=task) for verb in ("get", "result", "cancel")]
        unqualified = await one.call("tasks/get", taskId="t1")
        assert (await two.call("tasks/list")).result == {"tasks": []}
        assert (await one.call("tasks/get", taskId=task)).result["status"] == "working"

    assert {reply.error["code"] for reply in [*refused, unqualified]} == {-32602}


async def test_groups_and_concerns_are_stamped_on_tasks_and_filter_them(tmp_path):
    declared = {
        "groups": [{"name": "jobs", "members": [{"kind": "task", "name": "alpha__*"}]}, {"name": "none"}],
        "concerns": [{"name": "cost", "description": "Price.", "values": ["low", "high"], "default": "low"}],
        "concernMappings": [{"kind": "task", "name": "*", "concerns": {"cost": "high"}}],
    }
    async with tasking(tmp_path, declared) as (url, _), keyed(url, HANDSHAKE) as wire:
        await begun(wire)
        plain = (await wire.call("tasks/list")).result["tasks"]
        narrowed = [
            (await wire.call("tasks/list", {"dev.sluice/groups": [name]})).result["tasks"]
            for name in ("jobs", "none")
        ]
        concerned = [
            (await wire.call("tasks/list", {"dev.sluice/concerns": {"cost": value}})).result["tasks"]
            for value in ("high", "low")
        ]

    assert plain[0]["_meta"]["io.modelcontextprotocol/groups"] == ["jobs"]
    assert [len(one) for one in (*narrowed, *concerned)] == [1, 0, 1, 0]


async def test_what_holds_for_the_results_of_a_tool_holds_for_its_tasks(tmp_path):
    async with tasking(tmp_path) as (url, _), keyed(url, HANDSHAKE) as wire:
        task = await begun(wire)
        rest = url.removesuffix("/mcp") + "/api/v1/policies"

        async def stored(policy):
            version = (await wire.http.get(rest)).json()["version"]
            return await wire.http.put(f"{rest}?expected_version={version}", json=policy)

        redacts = {"passages": [{"kinds": ["tool"], "results": [{"name": "pii_redaction"}]}]}
        assert (await stored(redacts)).is_success
        redacted = await wire.call("tasks/result", taskId=task)
        hidden = {"grants": []}
        assert (await stored(hidden)).is_success
        refused = await wire.call("tasks/result", taskId=task)

    assert "jane.smith" not in redacted.text
    assert "[EMAIL" in redacted.text
    assert refused.error["code"] == -32602
