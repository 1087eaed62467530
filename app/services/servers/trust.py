"""What a trusted server may change by itself: which of its definitions are served without an operator's approval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from app.core.access import Caller
from app.core.audit import OUTCOME_OK
from app.core.catalog.header_parameters import declared_headers
from app.core.catalog.naming import exposed
from app.core.catalog.primitives import SERVERS_CHANGED, Offer, PrimitiveKind
from app.core.events import Changed
from app.core.strictjson import dumps
from app.services.audit.audit import AuditService
from app.services.servers.approval import pinned
from app.services.servers.pins import PinName, PinState, Review, review
from app.services.servers.server_records import digests, pins_of
from app.store.changes import announce
from app.store.database import Database
from app.store.servers import SERVERS, StoredServer, add_pins, remove_pins

TRUSTED: Final = "trusted"
"""The actor in the audit record where a trusted server changed its definitions."""

_HINTS: Final = ("readOnlyHint", "destructiveHint")
"""What people and hosts rely on before they let a model call a tool without asking."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The approved names of a tenant's other servers, whether they are connected or not, and how names are made."""

    pins: Mapping[str, Mapping[PinName, str]]
    namespaced: Mapping[str, bool]
    aliases: Mapping[str, Mapping[str, str]]

    def taken(self, server: str, offers: Sequence[Offer]) -> set[PinName]:
        """Return which of a server's new offers would get a name that another server has, or take one from it."""
        others = [
            Offer(name.kind, other, name.name, {})
            for other, approved in self.pins.items()
            if other != server
            for name in approved
            if name.kind is not PrimitiveKind.INSTRUCTIONS
        ]
        before = {(offer.kind, name) for offer, name in self._named(others)}
        names: dict[PinName, list[str]] = {PinName(offer.kind, offer.own_name): [] for offer in offers}
        for offer, name in self._named([*others, *offers]):
            if offer.server == server:
                names[PinName(offer.kind, offer.own_name)].append(name)
        uris = {(other.kind, other.own_name) for other in others if other.kind is PrimitiveKind.TEMPLATE}
        return {
            own
            for own, shown in names.items()
            if not shown or own in uris or any((own.kind, name) in before for name in shown)
        }

    def _named(self, offers: Sequence[Offer]) -> list[tuple[Offer, str]]:
        return exposed(offers, namespaced=self.namespaced, aliases=self.aliases).names


def trusted_changes(
    reviews: Sequence[Review], approved: Mapping[PinName, Mapping[str, Any]], neighbours: Neighbours
) -> list[Review]:
    """Return the new and changed definitions that a trusted server may serve; ``approved`` are those before.

    An operator decides on a name that another server has, on a changed hint of what a tool may do, and on what a tool
    newly copies into HTTP headers.
    """
    changed = [entry for entry in reviews if entry.state in {PinState.NEW, PinState.CHANGED}]
    new = [
        entry.offer
        for entry in changed
        if entry.state is PinState.NEW
        and entry.offer is not None
        and entry.kind is not PrimitiveKind.INSTRUCTIONS
    ]
    taken = neighbours.taken(new[0].server, new) if new else set()
    return [
        entry
        for entry in changed
        if entry.offer is not None
        and PinName(entry.kind, entry.name) not in taken
        and not _needs_operator(entry.offer.definition, approved.get(PinName(entry.kind, entry.name)))
    ]


async def pin_trusted(
    database: Database,
    audit: AuditService,
    row: StoredServer,
    offers: Sequence[Offer],
    neighbours: Neighbours,
    moment: datetime,
) -> None:
    """Pin what a trusted server changed, with a record of how much; only one of several replicas does."""
    caller = Caller(row.tenant, TRUSTED, frozenset())
    async with database.transaction(row.tenant) as tx:
        stored = await SERVERS.find(tx, row.tenant, row.name, lock=True)
        if stored is None or stored.updated != row.updated:
            return  # its settings changed meanwhile: it may not be trusted any more
        pins = await pins_of(tx, row.tenant, row.name)
        reviews = review(offers, digests(pins))
        chosen = trusted_changes(reviews, {name: pin.definition for name, pin in pins.items()}, neighbours)
        if not chosen:
            return
        accepted = [entry.offer for entry in chosen if entry.offer is not None]
        await remove_pins(tx, row.tenant, row.name, [PinName(entry.kind, entry.name) for entry in chosen])
        await add_pins(tx, pinned(accepted, caller, row.name, moment))
        await SERVERS.update(tx, replace(stored, pinned=stored.pinned or moment))
        details = {
            "server": row.name,
            "changed": sum(entry.state is PinState.CHANGED for entry in chosen),
            "new": sum(entry.state is PinState.NEW for entry in chosen),
            "held_back": sum(entry.quarantined for entry in reviews) - len(chosen),
        }
        await audit.record_with(
            tx, audit.new_event(caller, "servers.trust", OUTCOME_OK, None, details=details)
        )
        await announce(tx, Changed(SERVERS_CHANGED, row.tenant, row.name))


def _needs_operator(definition: Mapping[str, Any], before: Mapping[str, Any] | None) -> bool:
    headers_before = declared_headers(before.get("inputSchema")) if before is not None else {}
    if declared_headers(definition.get("inputSchema")) != headers_before:
        return True
    return before is not None and _hints(definition) != _hints(before)


def _hints(definition: Mapping[str, Any]) -> bytes:
    annotations = definition.get("annotations")
    return dumps([annotations.get(hint) if isinstance(annotations, Mapping) else None for hint in _HINTS])
