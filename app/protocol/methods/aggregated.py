"""Tools, prompts and resources of the servers behind this one: what clients list, call and read."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from mcp.shared.inbound import x_mcp_header_map
from mcp_types import (
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    SetLevelRequestParams,
)

from app.core.access import Caller
from app.core.catalog.primitives import Primitive, PrimitiveKind
from app.core.contracts.policy import Policy
from app.core.errors import InvalidArgumentsError, ServiceError
from app.core.request import RequestInfo
from app.core.tools.disclosure import staged_for
from app.core.upstream import Hooks
from app.protocol.methods.pagination import page_of
from app.protocol.methods.shaping import Shaping
from app.protocol.methods.subscriptions import SubscriptionMethods
from app.protocol.methods.tasks import TaskMethods
from app.protocol.methods.untrusted import arrived, permit
from app.protocol.wire.callbacks import ClientCallbacks
from app.protocol.wire.exchange import Context, Exchange, exchange_of
from app.protocol.wire.parking import continues
from app.protocol.wire.primitives import Method
from app.services.catalog.listing import USERS, CallerView, ListingService
from app.services.forward.forward_record import PrimitiveRequest
from app.services.forward.forwarding import ForwardService
from app.services.forward.subscriptions import SubscriptionService
from app.services.forward.tool_hooks import SCOPE_META, HookScope

WARNINGS_META: Final = "dev.sluice/warnings"
_SCOPE: Final = re.compile(r"[\x21-\x7e]{1,200}")
_LISTS: Final[Mapping[str, tuple[PrimitiveKind, str]]] = {
    "tools/list": (PrimitiveKind.TOOL, "tools"),
    "prompts/list": (PrimitiveKind.PROMPT, "prompts"),
    "resources/list": (PrimitiveKind.RESOURCE, "resources"),
    "resources/templates/list": (PrimitiveKind.TEMPLATE, "resourceTemplates"),
}

Forward = Callable[[PrimitiveRequest], Awaitable[dict[str, Any]]]

_calling: ContextVar[tuple[Caller, CallerView] | None] = ContextVar("calling", default=None)
"""Who calls a tool with this request: the SDK asks for the tool's schema without saying for whom."""


@dataclass(frozen=True, slots=True)
class AggregatedPrimitives:
    """Answers the methods of primitives from the catalog, or from the server that a name or URI belongs to."""

    listing: ListingService
    forwarding: ForwardService
    callbacks: ClientCallbacks
    shaping: Shaping
    subscriptions: SubscriptionService | None = None
    tasks: TaskMethods | None = None
    page_size: int = 250

    @property
    def calls_back(self) -> bool:
        """Return True: servers may ask for sampling, elicitation and roots."""
        return True

    def methods(self) -> Mapping[str, Method]:
        """Return the methods by name."""
        methods = {name: Method(PaginatedRequestParams, self._list, raw=True) for name in _LISTS}
        methods |= {
            "tools/call": Method(CallToolRequestParams, self._call, raw=True),
            "prompts/get": Method(GetPromptRequestParams, self._get_prompt, raw=True),
            "resources/read": Method(ReadResourceRequestParams, self._read, raw=True),
            "completion/complete": Method(CompleteRequestParams, self._complete, raw=True),
            "logging/setLevel": Method(SetLevelRequestParams, _nothing),
        }
        if self.subscriptions is not None:
            methods |= SubscriptionMethods(self.subscriptions).methods()
        if self.tasks is not None:
            methods |= self.tasks.methods()
        return methods

    async def expect(self, caller: Caller, request: RequestInfo) -> None:
        """Take note, for ``tool_input_schema``, of who calls a tool in the task that runs now."""
        try:
            _calling.set(
                None if caller.roles.isdisjoint(USERS) else (caller, await self.listing.view(caller, request))
            )
        except ServiceError:
            _calling.set(None)  # the call itself is refused for the same reason, and says it

    def tool_input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool whose arguments the caller was told to repeat in headers, else None.

        Nothing is repeated of a tool that the caller is shown without its schema.
        """
        calling = _calling.get()
        if calling is None:
            return None
        caller, view = calling
        tool = view.find(PrimitiveKind.TOOL, name)
        if tool is None or name not in view.remembered("header tools", _tools_with_headers):
            return None
        staged = staged_for(view.policy, caller, tool)
        schema: Mapping[str, Any] = tool.definition.get("inputSchema", {})
        return None if staged else schema

    async def _list(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        exchange = exchange_of(context)
        kind, member = _LISTS[context.method]
        view = await self.listing.admitted(exchange.caller, exchange.info, exchange.group)
        shape = await self.shaping.shape(context, view, kind)
        listed = self.listing.listed(view, kind, shape.filters, short=shape.short, extra=shape.extra)
        shown, following = page_of(listed.entries, listed.fingerprint, params.get("cursor"), self.page_size)
        result: dict[str, Any] = {member: [entry.definition for entry in shown]}
        exchange.spliced = member, [entry.encoded for entry in shown]
        if following is not None:
            result["nextCursor"] = following
        meta = dict(shape.meta)
        if shape.warnings:
            meta[WARNINGS_META] = [dict(warning) for warning in shape.warnings]
        if meta:
            result["_meta"] = meta
        return result

    async def _call(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        own = await self.shaping.own_tool(context, params)
        if own is not None:
            return own

        async def call(asked: PrimitiveRequest) -> dict[str, Any]:
            described = self.shaping.gate(context)

            async def gate(view: CallerView, tool: Primitive) -> Mapping[str, Any] | None:
                instead = await described(view, tool)
                if instead is None:
                    await permit(context, self.forwarding.audit, view.policy, tool, asked)
                return instead

            return await self.forwarding.call_tool(asked, gate)

        result = await self._forwarded(context, params, call)
        if self.tasks is not None and "task" in result:
            return await self.tasks.begun(context, params["name"], result)
        return result

    async def _get_prompt(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        return await self._forwarded(context, params, self.forwarding.get_prompt)

    async def _read(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        own = await self.shaping.own_resource(context, params)
        if own is not None:
            return own
        return await self._forwarded(context, params, self.forwarding.read_resource)

    async def _complete(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        return await self._forwarded(context, params, self.forwarding.complete)

    async def _forwarded(
        self, context: Context, params: Mapping[str, Any], forward: Forward
    ) -> dict[str, Any]:
        exchange = exchange_of(context)
        scope = _scope(exchange, params)
        if continues(params):  # the call that it goes on with was counted as another request
            await self.listing.admitted(exchange.caller, exchange.info, exchange.group)

        def note(result: Mapping[str, Any], encoded: bytes) -> None:
            exchange.written = result, encoded

        async def came(policy: Policy, server: str, suspected: bool) -> Mapping[str, Any]:
            return await arrived(context, policy, server, suspected=suspected)

        async def call(params: Mapping[str, Any], hooks: Hooks) -> dict[str, Any]:
            asked = PrimitiveRequest(
                exchange.caller, params, exchange.info, hooks, scope, exchange.group, note, came
            )
            return await forward(asked)

        return await self.callbacks.carried(context, params, call)


async def _nothing(_context: Context, _params: SetLevelRequestParams) -> dict[str, Any]:
    """Answer what the front remembers for the session."""
    return {}


def _tools_with_headers(view: CallerView) -> frozenset[str]:
    return frozenset(
        name
        for name, tool in view.of(PrimitiveKind.TOOL).items()
        if x_mcp_header_map(tool.definition.get("inputSchema"))
    )


def _scope(exchange: Exchange, params: Mapping[str, Any]) -> HookScope:
    """Return the vault scope that the request names, else the one of its session, if it has one."""
    meta = params.get("_meta") or {}
    scope = meta.get(SCOPE_META)
    if scope is not None:
        if not (isinstance(scope, str) and _SCOPE.fullmatch(scope)):
            raise InvalidArgumentsError(
                "The name of a vault scope is 1 to 200 printable ASCII characters without spaces.",
                details={"pointer": "/_meta/dev.sluice~1scope"},
            )
        return HookScope(scope, from_caller=True)
    if exchange.session_id is None:
        return HookScope()
    return HookScope("session-" + hashlib.sha256(exchange.session_id.encode()).hexdigest()[:32])
