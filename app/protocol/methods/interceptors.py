"""The methods of the interceptor proposal (SEP-2624): ``interceptors/list`` and ``interceptor/invoke``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from mcp.shared.exceptions import MCPError
from mcp_types import RequestParams
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from app.core.catalog.interceptors import EVENTS
from app.core.catalog.primitives import PrimitiveKind
from app.core.errors import InvalidArgumentsError
from app.protocol.methods.groups import endpoint_of
from app.protocol.methods.tool_lists import TOOL_FILTER, TOOL_FILTER_META, tool_question
from app.protocol.wire.capabilities import Feature
from app.protocol.wire.exchange import Context, exchange_of
from app.protocol.wire.primitives import Method
from app.services.catalog.group_views import GroupViews
from app.services.invoke.interceptors import (
    SPELLED,
    Interception,
    InterceptorService,
    InterceptorTimeoutError,
)

EXTENSION: Final = "io.modelcontextprotocol/interceptors"
INTERCEPTORS: Final = Feature("", None, {"supportedEvents": list(EVENTS)}, EXTENSION)
LIST: Final = "interceptors/list"
INVOKES: Final = ("interceptor/invoke", "interceptors/invoke")
ALONE: Final = frozenset({LIST, *INVOKES, "initialize", "ping", "server/discover"})
"""What is served at the endpoint that has interceptors and nothing else."""

OLDEST_PROTOCOL: Final = min(HANDSHAKE_PROTOCOL_VERSIONS)

_TIMEOUT: Final = -32000


class ListInterceptorsParams(RequestParams):
    """Params of ``interceptors/list``."""

    event: str | None = None


class InvokeInterceptorParams(RequestParams):
    """Params of ``interceptor/invoke``; the values inside are whatever the JSON parser made, untouched."""

    name: str
    event: str
    phase: Literal["request", "response"]
    payload: Any = Field(...)
    config: dict[str, Any] | None = None
    timeout_ms: float | None = Field(default=None, alias="timeoutMs", gt=0)
    context: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class InterceptorMethods:
    """Answers the methods from the service that does the work; the plural of invoke is accepted too."""

    interceptors: InterceptorService
    groups: GroupViews | None = None

    def methods(self) -> Mapping[str, Method]:
        """Return the methods by name."""
        listing = Method(ListInterceptorsParams, self._list)
        return {LIST: listing, **dict.fromkeys(INVOKES, Method(InvokeInterceptorParams, self._invoke))}

    async def _list(self, context: Context, params: ListInterceptorsParams) -> dict[str, Any]:
        exchange = exchange_of(context)
        listed = await self.interceptors.list(exchange.caller, params.event, exchange.info)
        shown = [interceptor for interceptor in listed if await self._is_here(context, interceptor["name"])]
        result: dict[str, Any] = {"interceptors": shown}
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            result |= {"ttlMs": 0, "cacheScope": "private"}
        return result

    async def _invoke(self, context: Context, params: InvokeInterceptorParams) -> dict[str, Any]:
        exchange = exchange_of(context)
        asked = _asked(params, context.meta or {})
        try:
            await self._check_here(context, params.name)
            result = await self.interceptors.invoke(exchange.caller, asked, exchange.info)
        except InterceptorTimeoutError as error:
            exchange.facts.error_code = error.code
            raise MCPError(_TIMEOUT, error.message, error.details) from None
        except InvalidArgumentsError as error:
            if error.details.get("pointer") == "/name" and SPELLED.fullmatch(params.name):
                error.details["name"] = params.name
            raise
        exchange.facts.middleware = params.name
        return result

    async def _check_here(self, context: Context, name: str) -> None:
        if not await self._is_here(context, name):
            raise InvalidArgumentsError("There is no interceptor of that name.", details={"pointer": "/name"})

    async def _is_here(self, context: Context, name: str) -> bool:
        """Return whether a middleware is in a group of this endpoint; at /mcp all are."""
        exchange = exchange_of(context)
        if self.groups is None or exchange.group is None:
            return True
        tree = await self.groups.tree(exchange.caller.tenant)
        within = endpoint_of(context, tree)
        return within is None or not within.isdisjoint(tree.direct(PrimitiveKind.MIDDLEWARE, name))


def _asked(params: InvokeInterceptorParams, meta: Mapping[str, Any]) -> Interception:
    """Return what is asked for; a list of tools is filtered for what ``_meta`` says, as tools/list itself is."""
    asked = Interception(
        name=params.name,
        event=params.event,
        phase=params.phase,
        payload=params.payload,
        config=params.config or {},
        timeout_ms=params.timeout_ms,
    )
    if (params.name, params.event) != (TOOL_FILTER, "tools/list"):
        return asked
    raw = meta.get(TOOL_FILTER_META, _meta_of(params.payload).get(TOOL_FILTER_META))
    if raw is None:
        return asked
    question = tool_question(raw)
    return replace(asked, config={**question.arguments, **asked.config}, conversation=question.items)


def _meta_of(payload: Any) -> Mapping[str, Any]:
    body = payload if isinstance(payload, Mapping) else {}
    for member in ("params", "result"):
        body = body[member] if isinstance(body.get(member), Mapping) else body
    meta = body.get("_meta")
    return meta if isinstance(meta, Mapping) else {}
