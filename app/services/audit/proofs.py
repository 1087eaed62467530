"""Events with proofs that they are in the log: a file that verifies without this service (``deploy/verify_audit.py``).

The first line is the head: the signed checkpoint, the tenant's entry in the log of heads and its proof.
Each other line is an event as it was sealed, its position, and the proof that it is in the tenant's tree. All lines are
JSON; bytes are hexadecimal.
"""

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from app.core.errors import NotFoundError
from app.core.transparency.notes import Checkpoint, Note
from app.core.transparency.tiles import TilePlace, Tiles, inclusion_proof, wanted
from app.services.audit.audit import AuditService
from app.services.audit.canonical import payload
from app.services.audit.sealer import head_leaf
from app.store.audit.audit import RecordedEvent, Transaction
from app.store.audit.log import (
    HEADS,
    HeadEntry,
    LogLeaf,
    last_entry,
    list_leaves,
    list_leaves_of,
    list_tiles,
    newest_checkpoint,
)

FORM: Final = "sluice audit proofs 1"
_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Proofs:
    """A tenant's log up to the newest signed checkpoint."""

    audit: AuditService
    note: str
    heads: int
    entry: HeadEntry

    @classmethod
    async def of(cls, audit: AuditService, tenant: str) -> "Proofs":
        """Return what is proven of a tenant now; raise NotFoundError where no checkpoint has its events."""
        async with audit.database.transaction(tenant, write=False) as tx:
            newest = await newest_checkpoint(tx)
            heads = Checkpoint.parse(Note.parse(newest.note).text).size if newest is not None else 0
            entry = await last_entry(tx, tenant, heads)
        if newest is None or entry is None:
            raise NotFoundError(
                "No checkpoint has events of this tenant yet: a running service seals within ten seconds."
            )
        return cls(audit, newest.note, heads, entry)

    async def leaves_of(self, events: Collection[UUID]) -> Sequence[tuple[LogLeaf, RecordedEvent | None]]:
        """Return where events stand; raise NotFoundError for one that no checkpoint has."""
        async with self._reading() as tx:
            leaves = await list_leaves_of(tx, self.entry.tenant, events)
        leaves = [(leaf, recorded) for leaf, recorded in leaves if leaf.position < self.entry.size]
        if len(leaves) < len(set(events)):
            raise NotFoundError("No checkpoint of this tenant has every one of these events.")
        return leaves

    async def lines(
        self,
        chosen: Sequence[tuple[LogLeaf, RecordedEvent | None]] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncIterator[bytes]:
        """Yield the lines of the file, each with its newline, in the order of the log.

        Of the events ``chosen``, or of all; ``since`` is inclusive, ``until`` exclusive.
        """
        yield _line(await self.head())
        if chosen is not None:
            for proven in await self.proven(chosen):
                yield _line(proven)
            return
        start = 0
        while start < self.entry.size:
            async with self._reading() as tx:
                page = await list_leaves(tx, self.entry.tenant, start, min(_PAGE, self.entry.size - start))
            if not page:
                return
            start = page[-1][0].position + 1
            inside = [
                (leaf, recorded)
                for leaf, recorded in page
                if (since is None or leaf.at >= since) and (until is None or leaf.at < until)
            ]
            for proven in await self.proven(inside):
                yield _line(proven)

    async def head(self) -> dict[str, Any]:
        """Return the members of the first line."""
        prove = partial(inclusion_proof, self.entry.position, self.heads)
        async with self._reading() as tx:
            tiles = (await list_tiles(tx, [(HEADS, place) for place in wanted(prove)])).get(HEADS, {})
        return {
            "form": FORM,
            "checkpoint": self.note,
            "tenant": self.entry.tenant,
            "size": self.entry.size,
            "position": self.entry.position,
            "entry": head_leaf(self.entry).hex(),
            "proof": [sibling.hex() for sibling in prove(tiles)],
        }

    async def proven(
        self, page: Sequence[tuple[LogLeaf, RecordedEvent | None]]
    ) -> Sequence[Mapping[str, Any]]:
        """Return the members of the lines of events; one that is no longer in the record is left out."""
        size = self.entry.size
        proving = {leaf.position: partial(inclusion_proof, leaf.position, size) for leaf, _ in page}
        tiles = await self.tiles({place for prove in proving.values() for place in wanted(prove)})
        return [
            {
                "position": leaf.position,
                "event": payload(recorded.event, recorded.number).decode(),
                "proof": [sibling.hex() for sibling in proving[leaf.position](tiles)],
            }
            for leaf, recorded in page
            if recorded is not None
        ]

    async def tiles(self, places: Collection[TilePlace]) -> Tiles:
        """Return tiles of the tenant's tree; those that are not stored are left out."""
        tenant = self.entry.tenant
        async with self._reading() as tx:
            return (await list_tiles(tx, [(tenant, place) for place in sorted(places)])).get(tenant, {})

    def _reading(self) -> AbstractAsyncContextManager[Transaction]:
        return self.audit.database.transaction(self.entry.tenant, write=False)


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"
