"""Tasks of servers of the handshake revision: a tool call that answers at once and is asked about later.

A task is its session's alone, whatever its server believes: many clients share the connection to it. So the session
remembers which tasks its calls began, and nothing else is listed, asked about or cancelled.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, PaginatedRequestParams, RequestParams
from pydantic import ConfigDict, Field

from app.core.catalog.primitives import GROUPS_META, Primitive, PrimitiveKind
from app.core.catalog.servers import SEPARATOR
from app.core.contracts.policy import Policy
from app.core.errors import InvalidArgumentsError, ServiceError
from app.core.upstream import Hooks, UpstreamError
from app.protocol.methods.groups import seen_groups
from app.protocol.methods.shaping import Shaping
from app.protocol.methods.untrusted import arrived
from app.protocol.wire.callbacks import ClientCallbacks, is_modern
from app.protocol.wire.exchange import Context, exchange_of
from app.protocol.wire.primitives import Method
from app.protocol.wire.state import state_of
from app.services.catalog.listing import CallerView, ListingService, shown_definition
from app.services.forward.forward_record import PrimitiveRequest
from app.services.forward.forwarding import ForwardService
from app.services.servers.upstreams import UpstreamService

_TASKS: Final = "tasks"
_RELATED: Final = "io.modelcontextprotocol/related-task"
_MOST: Final = 32
_CAPABILITY: Final[dict[str, Any]] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


class TaskParams(RequestParams):
    """Params that name a task."""

    model_config = ConfigDict(extra="allow")
    task_id: str = Field(alias="taskId")


@dataclass(frozen=True, slots=True)
class _Task:
    """What a session remembers of a task: its server's id, and the tool whose policy holds for its result."""

    name: str
    server: str
    own: str
    tool: str


@dataclass(frozen=True, slots=True)
class TaskMethods:
    """Answers the methods of tasks; ids are qualified: ``server__id``."""

    listing: ListingService
    forwarding: ForwardService
    callbacks: ClientCallbacks
    shaping: Shaping
    upstreams: UpstreamService

    def methods(self) -> Mapping[str, Method]:
        """Return the methods by name."""
        named = {f"tasks/{verb}": Method(TaskParams, self._asked) for verb in ("get", "result", "cancel")}
        return {"tasks/list": Method(PaginatedRequestParams, self._list), **named}

    async def advertise(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Say in ``initialize`` that tasks are served, where a server of the tenant serves them."""
        result = await call_next(ctx)
        if ctx.method == "initialize" and isinstance(result, dict):
            aggregator = self.upstreams.aggregator(exchange_of(ctx).caller.tenant)
            connections = aggregator.connections.values() if aggregator is not None else ()
            if any(_TASKS in connection.status.capabilities for connection in connections):
                return {**result, "capabilities": {**result["capabilities"], _TASKS: _CAPABILITY}}
        return result

    async def begun(self, context: Context, tool: str, result: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a call that began a task, with its qualified id, which the session remembers."""
        task = result.get("task")
        own = task.get("taskId") if isinstance(task, Mapping) else None
        exchange = exchange_of(context)
        view = await self.listing.view(exchange.caller, exchange.info, exchange.group)
        primitive = view.find(PrimitiveKind.TOOL, tool)
        if is_modern(context) or not isinstance(own, str) or primitive is None:
            return result
        name = f"{primitive.server}{SEPARATOR}{own}"

        def noted(preferences: Mapping[str, Any]) -> Mapping[str, Any]:
            kept = list(preferences.get(_TASKS, {}).items())[-(_MOST - 1) :]
            return {**preferences, _TASKS: {**dict(kept), name: [primitive.server, own, tool]}}

        await (await state_of(context)).revise(noted)
        return {**result, "task": {**dict(task or {}), "taskId": name}}

    async def _asked(self, context: Context, params: TaskParams) -> dict[str, Any]:
        tasks = {task.name: task for task in await _remembered(context)}
        task = tasks.get(params.task_id)
        if task is None:
            raise InvalidArgumentsError(
                "There is no such task; tasks/list has those that this session began.",
                details={"pointer": "/taskId"},
            )
        return await self._of_server(context, context.method, task, context.params or {})

    async def _of_server(
        self, context: Context, method: str, task: _Task, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        exchange = exchange_of(context)

        async def came(policy: Policy, server: str, suspected: bool) -> Mapping[str, Any]:
            return await arrived(context, policy, server, suspected=suspected)

        async def call(params: Mapping[str, Any], hooks: Hooks) -> dict[str, Any]:
            asked = PrimitiveRequest(
                exchange.caller, params, exchange.info, hooks, group=exchange.group, arrived=came
            )
            return await self.forwarding.task(asked, method, task.tool, task.server)

        result = await self.callbacks.carried(context, {**params, "taskId": task.own}, call)
        return _renamed(result, task)

    async def _list(self, context: Context, _params: PaginatedRequestParams) -> dict[str, Any]:
        exchange = exchange_of(context)
        view = await self.listing.admitted(exchange.caller, exchange.info, exchange.group)
        answers = await asyncio.gather(*(self._seen(context, task) for task in await _remembered(context)))
        shape = await self.shaping.shape(context, view, PrimitiveKind.TASK)
        shown = [
            answer
            for answer in answers
            if answer is not None and all(wanted.keeps(answer) for wanted in shape.filters)
        ]
        return {"tasks": _definitions(shown, view)}

    async def _seen(self, context: Context, task: _Task) -> Primitive | None:
        """Return a task as it stands, or None where its server no longer knows it or its tool may not be used."""
        try:
            definition = await self._of_server(context, "tasks/get", task, {})
        except (ServiceError, UpstreamError):
            return None
        tree, _ = await seen_groups(self.shaping.groups, context)
        table = await self.shaping.concerns.table(exchange_of(context).caller.tenant)
        groups = tree.direct(PrimitiveKind.TASK, task.name, task.server)
        meta = {**(definition.get("_meta") or {}), **({GROUPS_META: list(groups)} if groups else {})}
        return Primitive(
            kind=PrimitiveKind.TASK,
            server=task.server,
            own_name=task.own,
            name=task.name,
            definition={**definition, "_meta": meta} if meta else definition,
            digest="",
            groups=groups,
            within=tree.upward(groups),
            concerns=table.mapping_of(PrimitiveKind.TASK, task.name, meta),
        )


async def _remembered(context: Context) -> list[_Task]:
    if is_modern(context):
        raise MCPError(METHOD_NOT_FOUND, "Method not found", data=context.method)
    task_places = (await state_of(context)).preferences.get(_TASKS, {})
    return [_Task(name, *place) for name, place in task_places.items()]


def _renamed(result: dict[str, Any], task: _Task) -> dict[str, Any]:
    if result.get("taskId") == task.own:
        result = {**result, "taskId": task.name}
    meta = result.get("_meta")
    if isinstance(meta, Mapping) and _RELATED in meta:
        result = {**result, "_meta": {**meta, _RELATED: {"taskId": task.name}}}
    return result


def _definitions(shown: Sequence[Primitive], view: CallerView) -> list[Mapping[str, Any]]:
    expose = view.policy.concerns.expose
    return [shown_definition(definition, short=False, expose=expose) for definition in shown]
