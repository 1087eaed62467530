"""Approve what a declared server lists first: to stand in the file is its approval. Later changes are held back."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from app.core.access import Caller
from app.core.audit import OUTCOME_OK
from app.core.catalog.primitives import SERVERS_CHANGED, Offer
from app.core.events import Changed
from app.services.audit.audit import AuditService
from app.services.servers.approval import ApprovedDefinitions, choose, pinned
from app.services.servers.pins import PinState, review
from app.services.servers.server_records import digests, pins_of
from app.store.audit.audit import Transaction
from app.store.changes import announce
from app.store.database import Database
from app.store.servers import SERVERS, StoredServer, add_pins, remove_pins

DECLARED: Final = "file"
"""The actor in the audit record when the first listing of a declared server is approved."""


async def pin_first(
    database: Database, audit: AuditService, row: StoredServer, offers: Sequence[Offer], moment: datetime
) -> bool:
    """Pin the first complete listing of a server; return False where another replica did, or its settings changed."""
    chosen = choose(review(offers, {}), None)
    async with database.transaction(row.tenant) as tx:
        stored = await SERVERS.find(tx, row.tenant, row.name, lock=True)
        if stored is None or stored.pinned is not None or stored.updated != row.updated:
            return False
        await remove_pins(tx, row.tenant, row.name)
        await SERVERS.update(tx, replace(stored, pinned=moment))
        await _pin(tx, audit, row, chosen, moment)
    return True


async def pin_askable(
    database: Database, audit: AuditService, row: StoredServer, offers: Sequence[Offer], moment: datetime
) -> None:
    """Pin also what the server lists only to clients that it can ask, which its first listing could not hold."""
    async with database.transaction(row.tenant) as tx:
        stored = await SERVERS.find(tx, row.tenant, row.name, lock=True)
        if stored is None or stored.updated != row.updated:
            return
        reviews = review(offers, digests(await pins_of(tx, row.tenant, row.name)))
        new = [
            entry
            for entry in reviews
            if entry.state is PinState.NEW and entry.offer is not None and entry.offer.listed_to is not None
        ]
        if new:
            await _pin(tx, audit, row, choose(new, None), moment)


async def _pin(
    tx: Transaction, audit: AuditService, row: StoredServer, chosen: ApprovedDefinitions, moment: datetime
) -> None:
    caller = Caller(row.tenant, DECLARED, frozenset())
    await add_pins(tx, pinned(chosen.offers, caller, row.name, moment))
    details = {"server": row.name, "approved": len(chosen.offers), "held_back": len(chosen.held_back)}
    event = audit.new_event(caller, "servers.approve", OUTCOME_OK, None, details=details)
    await audit.record_with(tx, event)
    await announce(tx, Changed(SERVERS_CHANGED, row.tenant, row.name))
