"""Groups on the wire: ``groups/list`` and ``groups/get``, narrowing by group, and switching groups off in a session."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from mcp_types import PaginatedRequestParams, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from app.core.catalog.groups import GroupTree, disabled_groups, switched
from app.core.catalog.primitives import NAME_FIELD, PrimitiveKind
from app.core.errors import InvalidArgumentsError
from app.protocol.methods.pagination import page
from app.protocol.wire.capabilities import VENDOR
from app.protocol.wire.exchange import Context, Exchange, exchange_of
from app.protocol.wire.primitives import Method
from app.protocol.wire.state import SessionState
from app.services.catalog.group_views import GroupViews

NARROWING_META: Final = f"{VENDOR}groups"
ENABLE: Final = "enable_groups"
DISABLE: Final = "disable_groups"
AGENTIC_TOOLS: Final = frozenset({ENABLE, DISABLE})
"""The names that ``apply_agentic`` answers."""

_POINTER: Final = f"/_meta/{NARROWING_META.replace('/', '~1')}"
_LIST_OF: Final = MappingProxyType(
    {
        PrimitiveKind.TOOL: "tools",
        PrimitiveKind.PROMPT: "prompts",
        PrimitiveKind.RESOURCE: "resources",
        PrimitiveKind.TEMPLATE: "resourceTemplates",
    }
)
_CHANGES: Final = MappingProxyType(
    {
        ENABLE: ("Enable groups", "Show the tools, prompts and resources of these groups again"),
        DISABLE: ("Disable groups", "Hide the tools, prompts and resources of these groups"),
    }
)


class GroupParams(RequestParams):
    """Params of ``groups/get``."""

    name: str


@dataclass(frozen=True, slots=True)
class GroupMethods:
    """Answers the methods; what a caller may not use does not show which groups there are either."""

    views: GroupViews
    page_size: int

    def methods(self) -> Mapping[str, Method]:
        """Return the methods by name."""
        return {
            "groups/list": Method(PaginatedRequestParams, self._list),
            "groups/get": Method(GroupParams, self._get),
        }

    async def serves(self, exchange: Exchange) -> bool:
        """Return whether the group whose endpoint a request came to is there for its caller."""
        tree = await self.views.tree(exchange.caller.tenant)
        return exchange.group in await self.views.visible(exchange.caller, tree, exchange.info)

    async def _list(self, context: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        tree, visible = await seen_groups(self.views, context)
        narrowing = narrowing_of(context, tree, visible)
        shown = visible if narrowing is None else visible & narrowing
        names = [name for name in tree.groups if name in shown]
        some, following = page(names, names, params.cursor, self.page_size)
        wire = tree.wire()
        result: dict[str, Any] = {"groups": [wire[name] for name in some]}
        if following is not None:
            result["nextCursor"] = following
        return _cacheable(context, result)

    async def _get(self, context: Context, params: GroupParams) -> dict[str, Any]:
        exchange = exchange_of(context)
        tree, visible = await seen_groups(self.views, context)
        name = params.name
        if name not in visible:
            raise InvalidArgumentsError("There is no group of that name.", details={"pointer": "/name"})
        view = await self.views.listing.view(exchange.caller, exchange.info)
        members = {
            _LIST_OF[kind]: [
                primitive.name for primitive in view.of(kind).values() if name in primitive.groups
            ]
            for kind in NAME_FIELD
        }
        listed = await self.views.invoke.list(exchange.caller, exchange.info)
        members["middleware"] = [
            middleware.name
            for middleware in listed
            if name in tree.direct(PrimitiveKind.MIDDLEWARE, middleware.name)
        ]
        members["groups"] = sorted(visible.intersection(tree.groups[name].subgroups))
        shown = {listed: names for listed, names in members.items() if names}
        return _cacheable(context, {"group": tree.wire()[name], "members": shown})


async def seen_groups(views: GroupViews, context: Context) -> tuple[GroupTree, frozenset[str]]:
    """Return all groups, and the names of those that exist for this caller at this endpoint."""
    exchange = exchange_of(context)
    tree = await views.tree(exchange.caller.tenant)
    visible = await views.visible(exchange.caller, tree, exchange.info)
    within = endpoint_of(context, tree)
    return tree, visible if within is None else visible & within


async def narrowed(views: GroupViews, context: Context) -> tuple[GroupTree, frozenset[str] | None]:
    """Return all groups, and those that a list request is narrowed to, None where it is not."""
    if NARROWING_META not in _meta(context):
        tree = await views.tree(exchange_of(context).caller.tenant)
        return tree, endpoint_of(context, tree)
    tree, visible = await seen_groups(views, context)
    return tree, narrowing_of(context, tree, visible)


def endpoint_of(context: Context, tree: GroupTree) -> frozenset[str] | None:
    """Return the groups that the endpoint of this request serves, None at /mcp, which serves everything.

    At ``/mcp/groups/{name}`` a primitive without a direct group among these does not exist, for calls and reads too.
    """
    group = exchange_of(context).group
    return None if group is None else tree.downward([group])


def narrowing_of(
    context: Context, tree: GroupTree, visible: Collection[str] | None = None
) -> frozenset[str] | None:
    """Return the groups that a list request is narrowed to, those below included; None: it is not narrowed.

    A primitive is listed where one of its direct groups is among them. Names of groups that do not exist at this
    endpoint, or that the caller does not see (``visible``, None: all), are an InvalidArgumentsError.
    """
    within = endpoint_of(context, tree)
    meta = _meta(context)
    if NARROWING_META not in meta:
        return within
    names = meta[NARROWING_META]
    if not isinstance(names, list):
        raise InvalidArgumentsError("Name the groups as a list.", details={"pointer": _POINTER})
    eligible = frozenset(tree.groups) if within is None else within
    if visible is not None:
        eligible &= frozenset(visible)
    for number, name in enumerate(names):
        if not isinstance(name, str) or name not in eligible:
            raise InvalidArgumentsError(
                "There is no group of that name.", details={"pointer": f"{_POINTER}/{number}"}
            )
    return tree.downward(names)


def agentic_tools(tree: GroupTree, visible: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return the tools by which a model switches groups in its session; none where it would have no choice."""
    names = [name for name in tree.groups if visible is None or name in visible]
    if not names:
        return []
    titles = "; ".join(f"{name}: {title}" for name in names if (title := tree.groups[name].title))
    return [_agentic_tool(tool, names, titles) for tool in (DISABLE, ENABLE)]


async def apply_agentic(
    state: SessionState,
    name: str,
    arguments: Mapping[str, Any] | None,
    tree: GroupTree,
    visible: Collection[str] | None = None,
) -> dict[str, Any]:
    """Answer a call of ``enable_groups`` or ``disable_groups``; the session's streams hear list_changed.

    A mistake is a result with ``isError``, so that the model reads what it can do instead.
    """
    group_names = [group for group in tree.groups if visible is None or group in visible]
    groups = (arguments or {}).get("groups")
    if set(arguments or {}) != {"groups"} or not isinstance(groups, list) or not groups:
        return _failed('Give the names of groups as {"groups": [...]}.', group_names)
    if not all(isinstance(group, str) and group in group_names for group in groups):
        return _failed("Not all of these groups exist.", group_names)

    def change(preferences: Mapping[str, Any]) -> dict[str, Any]:
        off = switched(tree, disabled_groups(preferences, tree), groups, on=name == ENABLE)
        return {**preferences, "groups": {"disabled": sorted(off)} if off else None}

    if disabled_groups(change(state.preferences), tree) != disabled_groups(state.preferences, tree):
        await state.revise(change, publish=True)
    off = disabled_groups(state.preferences, tree)
    shown = {
        "enabled": [group for group in group_names if group not in off],
        "disabled": [group for group in group_names if group in off],
    }
    summary = "; ".join(f"{word}: {', '.join(names) or 'none'}" for word, names in shown.items())
    text = f"{summary[0].upper()}{summary[1:]}. The lists of tools, prompts and resources follow this."
    return {"content": [{"type": "text", "text": text}], "structuredContent": shown}


def _agentic_tool(tool: str, names: list[str], titles: str) -> dict[str, Any]:
    title, does = _CHANGES[tool]
    described = f" Groups: {titles}." if titles else ""
    listed = {"type": "array", "items": {"type": "string"}}
    return {
        "name": tool,
        "title": title,
        "description": f"{does}, for this session only. What is in another group that is on stays.{described}",
        "inputSchema": {
            "type": "object",
            "properties": {
                "groups": {
                    "type": "array",
                    "items": {"type": "string", "enum": names},
                    "minItems": 1,
                    "description": "Names of groups; the groups below them are meant too.",
                }
            },
            "required": ["groups"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {"enabled": listed, "disabled": listed},
            "required": ["enabled", "disabled"],
        },
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


def _failed(sentence: str, group_names: list[str]) -> dict[str, Any]:
    text = f"{sentence} There are: {', '.join(group_names)}."
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _meta(context: Context) -> Mapping[str, Any]:
    meta = (context.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def _cacheable(context: Context, result: dict[str, Any]) -> dict[str, Any]:
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return {**result, "ttlMs": 0, "cacheScope": "private"}
    return result
