"""An index beside SQLite for tenants with many documents: built in the background, used while it is up to date."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.engines.documents.tantivy_index import IndexShelf, Row, TantivyIndex
from app.store.database import Database
from app.store.documents.collections import StoredPart, list_large_tenants, list_parts
from app.store.documents.search import list_chunk_texts

LEAST_CHUNKS: Final = 30_000
"""For fewer chunks, SQLite's FTS5 answers in about 20 ms."""
_PAGE: Final = 2000


@dataclass(frozen=True, slots=True)
class SideIndex:
    """Keeps the indexes of large tenants; without an up-to-date one, the database's own index is searched."""

    database: Database
    shelf: IndexShelf
    least: int = LEAST_CHUNKS
    seen: dict[str, Mapping[int, int]] = field(default_factory=dict)
    """Each large tenant's parts at the last check: an index is built once they no longer change."""

    def find(self, tenant: str, parts: Sequence[StoredPart]) -> TantivyIndex | None:
        """Return the tenant's index if it has exactly these parts in their present state; call it in a thread."""
        if sum(part.chunks for part in parts) < self.least:
            return None
        index = self.shelf.get(tenant)
        return index if index is not None and index.covers(_revisions(parts)) else None

    async def forget(self, tenant: str) -> None:
        """Remove the index of a tenant whose documents were deleted; it is built anew without them."""
        self.seen.pop(tenant, None)
        await asyncio.to_thread(self.shelf.remove, tenant)

    async def keep(self) -> None:
        """Build the indexes that are missing or out of date."""
        async with self.database.system_transaction(write=False) as tx:
            tenants = await list_large_tenants(tx, least=self.least)
        for tenant in tenants:
            async with self.database.transaction(tenant, write=False) as tx:
                now = _revisions(await list_parts(tx, tenant))
            index = await asyncio.to_thread(self.shelf.get, tenant)
            unchanged = self.seen.get(tenant) == now
            self.seen[tenant] = now
            if unchanged and (index is None or index.parts != now):
                await self._build(tenant, now)

    async def _build(self, tenant: str, parts: Mapping[int, int]) -> None:
        rows: list[Row] = []
        for part in parts:
            after = 0
            while True:
                async with self.database.transaction(tenant, write=False) as tx:
                    page = await list_chunk_texts(tx, tenant, part, after=after, limit=_PAGE)
                rows += page
                if len(page) < _PAGE:
                    break
                after = page[-1][0]
        await asyncio.to_thread(self.shelf.replace, tenant, parts, _released(rows))
        async with self.database.transaction(tenant, write=False) as tx:
            same = _revisions(await list_parts(tx, tenant)) == parts
        if not same:
            # A document was changed or deleted while the index was built: the index must not keep the old one.
            await self.forget(tenant)


def _released(rows: list[Row]) -> Iterator[Row]:
    rows.reverse()
    while rows:
        yield rows.pop()


def _revisions(parts: Sequence[StoredPart]) -> dict[int, int]:
    return {part.id: part.revision for part in parts if part.chunks}
