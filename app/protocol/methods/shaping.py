"""What one request makes of the lists: narrowed by groups and concerns, described in one stage or two."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from app.core.catalog.groups import GroupTree, disabled_groups, hidden_by_session
from app.core.catalog.primitives import Primitive, PrimitiveKind
from app.core.strictjson import dumps
from app.core.tools.disclosure import any_staged, staged_for
from app.protocol.methods.concerns import concern_filter, effective_concerns
from app.protocol.methods.disclosure import disclosure_resources, gate, is_descriptions_uri, read_descriptions
from app.protocol.methods.groups import (
    AGENTIC_TOOLS,
    NARROWING_META,
    agentic_tools,
    apply_agentic,
    narrowed,
    seen_groups,
)
from app.protocol.methods.tool_lists import narrowing
from app.protocol.wire.exchange import Context, exchange_of
from app.protocol.wire.state import state_of
from app.services.access.sessions import Session
from app.services.catalog.concerns import ConcernService
from app.services.catalog.disclosure import DisclosureService
from app.services.catalog.group_views import GroupViews
from app.services.catalog.listing import NO_EXTRA, CallerView, Extra, Filter, ListingService
from app.services.catalog.tool_lists import ToolListService
from app.services.forward.forwarding import Gate


@dataclass(frozen=True, slots=True)
class ListShape:
    """How a list is narrowed and shown, and what the client should know about that."""

    filters: Sequence[Filter] = ()
    short: Filter | None = None
    extra: Extra = NO_EXTRA
    warnings: Sequence[Mapping[str, str]] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shaping:
    """Asks groups, concerns, disclosure and the filter of tools what they make of a request."""

    listing: ListingService
    groups: GroupViews
    concerns: ConcernService
    disclosure: DisclosureService
    tools: ToolListService

    async def shape(self, context: Context, view: CallerView, kind: PrimitiveKind) -> ListShape:
        """Return the shape of a list for this request."""
        filters: list[Filter] = []
        if NARROWING_META in _meta(context):
            filters.append(_narrowing(await narrowed(self.groups, context)))
        effective = await effective_concerns(context, self.concerns)
        of_concerns = concern_filter(effective)
        if of_concerns is not None:
            filters.append(of_concerns)
        extra = _descriptions(context, view, kind)
        if _is_agentic(context, view):
            tree, visible = await seen_groups(self.groups, context)
            filters.append(_switched_off(exchange_of(context).session, tree))
            if kind is PrimitiveKind.TOOL:
                extra = _agentic(agentic_tools(tree, visible))
        if kind is not PrimitiveKind.TOOL:
            return ListShape(tuple(filters), None, extra, effective.warnings)
        short = _short(context, view)
        needed = await narrowing(context, self.tools, view, filters, short)
        filters += needed.filters
        return ListShape(tuple(filters), short, extra, (*effective.warnings, *needed.warnings), needed.meta)

    async def own_tool(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the result of a tool of this server's own, or None where the name is none."""
        if params["name"] not in AGENTIC_TOOLS:
            return None
        exchange = exchange_of(context)
        view = await self.listing.view(exchange.caller, exchange.info, exchange.group)
        if not _is_agentic(context, view):
            return None
        self.listing.traffic.spend(exchange.caller.tenant, view.policy.limits)
        tree, visible = await seen_groups(self.groups, context)
        state = await state_of(context)
        return await apply_agentic(state, params["name"], params.get("arguments"), tree, visible)

    async def own_resource(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what is read of this server's own resources, or None where the URI is none."""
        uri = params["uri"]
        if not is_descriptions_uri(uri):
            return None
        exchange = exchange_of(context)
        view = await self.listing.view(exchange.caller, exchange.info, exchange.group)
        tools = view.of(PrimitiveKind.TOOL)
        if not any_staged(view.policy, exchange.caller, tools.values()):
            return None  # there is no such resource for a caller who is shown every tool in full
        await self.listing.admitted(exchange.caller, exchange.info, exchange.group)
        return await read_descriptions(context, self.disclosure, view.policy, tools, uri)

    def gate(self, context: Context) -> Gate:
        """Return what a call must pass before its arguments are looked at."""

        async def described(view: CallerView, tool: Primitive) -> Mapping[str, Any] | None:
            return await gate(context, self.disclosure, view.policy, tool)

        return described


def _meta(context: Context) -> Mapping[str, Any]:
    meta = (context.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def _narrowing(narrowing: tuple[GroupTree, frozenset[str] | None]) -> Filter:
    wanted = narrowing[1] or frozenset()
    return Filter(f"groups {sorted(wanted)}", lambda primitive: not wanted.isdisjoint(primitive.groups))


def _is_agentic(context: Context, view: CallerView) -> bool:
    """Return whether the model of this session may switch groups; what it switched must be remembered somewhere."""
    has_session = context.protocol_version not in MODERN_PROTOCOL_VERSIONS
    return view.policy.agentic_groups and has_session and exchange_of(context).session is not None


def _switched_off(session: Session | None, tree: GroupTree) -> Filter:
    preferences = session.preferences if session is not None else {}
    is_hidden = hidden_by_session(preferences, tree)

    def keeps(primitive: Primitive) -> bool:
        # A tool of a server that has the name of one of ours could not be called.
        taken = primitive.kind is PrimitiveKind.TOOL and primitive.name in AGENTIC_TOOLS
        return not taken and not is_hidden(primitive)

    return Filter(f"off {sorted(disabled_groups(preferences, tree))}", keeps)


def _agentic(tools: Sequence[Mapping[str, Any]]) -> Extra:
    return Extra(hashlib.sha256(dumps(tools)).hexdigest(), tools)


def _descriptions(context: Context, view: CallerView, kind: PrimitiveKind) -> Extra:
    """Return the resource, or template, that describes tools to callers who are shown any in short form."""
    if kind not in {PrimitiveKind.RESOURCE, PrimitiveKind.TEMPLATE}:
        return NO_EXTRA
    if not any_staged(view.policy, exchange_of(context).caller, view.of(PrimitiveKind.TOOL).values()):
        return NO_EXTRA
    resources, templates = disclosure_resources(staged=True)
    return Extra("descriptions", resources if kind is PrimitiveKind.RESOURCE else templates)


def _short(context: Context, view: CallerView) -> Filter:
    """Return which tools are listed in their short form; it hangs on the caller, for views may be shared."""
    caller, policy = exchange_of(context).caller, view.policy
    said = policy.disclosure.keys.get(caller.key_id) or policy.disclosure.default
    return Filter(said or "server", lambda tool: staged_for(policy, caller, tool))
