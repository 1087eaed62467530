"""What one request makes of the lists: narrowed by groups and concerns, described in one stage or two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.catalog import Kind, Primitive
from app.core.disclosure import any_staged, staged_for
from app.protocol.disclosure import disclosure_resources, gate, is_descriptions_uri, read_descriptions
from app.protocol.exchange import Context, exchange_of
from app.services.disclosure_gate import DisclosureService
from app.services.forwarding import Gate
from app.services.listing import NO_EXTRA, Extra, Filter, ListingService, View


@dataclass(frozen=True, slots=True)
class Shape:
    """How a list is narrowed and shown, and what the client should know about that."""

    filters: Sequence[Filter] = ()
    short: Filter | None = None
    extra: Extra = NO_EXTRA
    warnings: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Shaping:
    """Asks groups, concerns and disclosure what they make of a request."""

    listing: ListingService
    disclosure: DisclosureService

    async def shape(self, context: Context, view: View, kind: Kind) -> Shape:
        """Return the shape of a list for this request."""
        return Shape(
            short=_short(context, view) if kind is Kind.TOOL else None,
            extra=_descriptions(context, view, kind),
        )

    async def own_tool(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the result of a tool of this server's own, or None where the name is none."""
        return None

    async def own_resource(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what is read of this server's own resources, or None where the URI is none."""
        uri = params["uri"]
        if not is_descriptions_uri(uri):
            return None
        exchange = exchange_of(context)
        view = await self.listing.admitted(exchange.caller, exchange.info)
        return await read_descriptions(context, self.disclosure, view.policy, view.of(Kind.TOOL), uri)

    def gate(self, context: Context) -> Gate:
        """Return what a call must pass before its arguments are looked at."""

        async def described(view: View, tool: Primitive) -> Mapping[str, Any] | None:
            return await gate(context, self.disclosure, view.policy, tool)

        return described


def _descriptions(context: Context, view: View, kind: Kind) -> Extra:
    """Return the resource, or template, that describes tools to callers who are shown any in short form."""
    if kind not in {Kind.RESOURCE, Kind.TEMPLATE}:
        return NO_EXTRA
    if not any_staged(view.policy, exchange_of(context).caller, view.of(Kind.TOOL).values()):
        return NO_EXTRA
    resources, templates = disclosure_resources(staged=True)
    return Extra("descriptions", resources if kind is Kind.RESOURCE else templates)


def _short(context: Context, view: View) -> Filter:
    """Return which tools are listed in their short form; it hangs on the caller, for views may be shared."""
    caller, policy = exchange_of(context).caller, view.policy
    said = policy.disclosure.keys.get(caller.key_id) or policy.disclosure.default
    return Filter(said or "server", lambda tool: staged_for(policy, caller, tool))
