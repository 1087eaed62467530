"""The methods of the context middleware proposal: ``middleware/list`` and ``middleware/invoke``."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_types import PaginatedRequestParams, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from app.core.catalog.groups import GroupTree, stamped
from app.core.catalog.primitives import PrimitiveKind
from app.core.errors import InvalidArgumentsError, NotFoundError
from app.core.tools.selection import SESSION
from app.protocol.methods.groups import endpoint_of, narrowed
from app.protocol.methods.pagination import page
from app.protocol.methods.tool_lists import TOOL_FILTER, handle_meta, take_over
from app.protocol.wire.capabilities import VENDOR
from app.protocol.wire.exchange import Context, exchange_of
from app.protocol.wire.primitives import Method
from app.services.catalog.group_views import GroupViews
from app.services.invoke.invoke import InvokeService, MiddlewareListing

INVOKE = "middleware/invoke"


class InvokeParams(RequestParams):
    """Params of ``middleware/invoke``; the values inside are whatever the JSON parser made, untouched."""

    name: str
    arguments: dict[str, Any] | None = None
    context: list[Any]


@dataclass(frozen=True, slots=True)
class MiddlewareMethods:
    """Answers the two methods from the service that does the work."""

    invoke: InvokeService
    page_size: int
    groups: GroupViews | None = None

    def methods(self) -> Mapping[str, Method]:
        """Return the methods by name."""
        return {
            "middleware/list": Method(PaginatedRequestParams, self._list),
            INVOKE: Method(InvokeParams, self._invoke),
        }

    async def _list(self, context: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        exchange = exchange_of(context)
        infos = await self.invoke.list(exchange.caller, exchange.info)
        tree, narrowing = GroupTree.build(()), None
        if self.groups is not None:
            tree, narrowing = await narrowed(self.groups, context)
        grouped = [(info, tree.direct(PrimitiveKind.MIDDLEWARE, info.name)) for info in infos]
        listed = [entry for entry in grouped if narrowing is None or not narrowing.isdisjoint(entry[1])]
        shown, following = page(listed, [info.name for info, _ in listed], params.cursor, self.page_size)
        definitions = [stamped(_definition(info), groups) for info, groups in shown]
        result: dict[str, Any] = {"middleware": definitions}
        if following is not None:
            result["nextCursor"] = following
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            result |= {"ttlMs": 0, "cacheScope": "private"}
        return result

    async def _invoke(self, context: Context, params: InvokeParams) -> dict[str, Any]:
        exchange = exchange_of(context)
        if self.groups is not None and exchange.group is not None:
            await _check_endpoint(self.groups, context, params.name)
        try:
            outcome = await self.invoke.invoke(
                exchange.caller,
                params.name,
                params.arguments or {},
                params.context,
                exchange.info,
                progress=_progress(context),
            )
        except NotFoundError as error:
            raise unknown_name(error) from None
        exchange.facts.middleware = params.name
        result: dict[str, Any] = {"content": outcome.content}
        if outcome.metadata:
            result["metadata"] = outcome.metadata
        if params.name == TOOL_FILTER and SESSION in outcome.metadata:
            _, policy = await self.invoke.policies.get(exchange.caller.tenant)
            session, handle = await take_over(context, params.arguments or {}, outcome.metadata, policy)
            result["metadata"] = {**outcome.metadata, SESSION: session}
            result |= handle_meta(handle)
        return result


def unknown_name(error: NotFoundError) -> InvalidArgumentsError:
    """Return ``error`` as a fault of the params, which is what the protocol calls a name that nothing has."""
    return InvalidArgumentsError(error.message, details={"pointer": "/name", **error.details})


async def _check_endpoint(groups: GroupViews, context: Context, name: str) -> None:
    """Refuse a middleware that is in no group of this endpoint, as if there was none of that name."""
    tree = await groups.tree(exchange_of(context).caller.tenant)
    within = endpoint_of(context, tree)
    if within is not None and within.isdisjoint(tree.direct(PrimitiveKind.MIDDLEWARE, name)):
        raise InvalidArgumentsError(
            "There is no middleware of that name; list the middlewares to see those you may invoke.",
            details={"pointer": "/name"},
        )


def _definition(info: MiddlewareListing) -> dict[str, Any]:
    definition: dict[str, Any] = {"name": info.name}
    if info.title:
        definition["title"] = info.title
    definition["description"] = info.description
    definition["inputSchema"] = info.input_schema
    definition["_meta"] = {f"{VENDOR}phase": info.phase}
    return definition


def _progress(context: Context) -> Callable[[int, int], Awaitable[None]] | None:
    """Return what tells the client how far the work is, or None where it did not ask."""
    if not context.meta or context.meta.get("progress_token") is None:
        return None
    last = -1

    async def report(done: int, total: int) -> None:
        nonlocal last
        if done > last:  # the protocol wants every value to be greater than the one before
            last = done
            await context.session.report_progress(done, total)

    return report
