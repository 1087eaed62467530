"""Build indexes of vectors for tenants that have many chunks, and drop those that none needs any more."""

import logging
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from app.services.background import Job
from app.store.database import Database
from app.store.documents.search import compares_vectors
from app.store.documents.vector_indexes import (
    VectorSpace,
    build_index,
    drop_index,
    find_dimensions,
    indexes_vectors,
    list_spaces,
    list_vector_indexes,
    may_build,
)
from app.store.locks import only_here

VECTOR_INDEX_CHUNKS: Final = 20_000
"""Readable chunks above which an index is asked: below it, comparing all of them takes less than 30 ms."""

_EVERY_S = 600.0

log = logging.getLogger("sluice.documents")


class IndexPlan(NamedTuple):
    """What there is to do: vectors to index, names of indexes to drop, and whether this login may."""

    build: list[tuple[VectorSpace, int]]
    drop: list[str]
    permitted: bool = True

    @property
    def due(self) -> int:
        """Return how many indexes to build or drop."""
        return len(self.build) + len(self.drop)


NOTHING_DUE: Final = IndexPlan([], [])


@dataclass(slots=True)
class VectorIndexes:
    """Keeps one index for each tenant and embedder with more than ``least`` chunks; safe to interrupt and repeat."""

    database: Database
    least: int = VECTOR_INDEX_CHUNKS
    _missed: int = field(default=0, init=False)

    @property
    def job(self) -> Job:
        """Return the background job that keeps the indexes."""
        return Job("index-vectors", _EVERY_S, self.keep)

    async def keep(self) -> IndexPlan:
        """Build and drop what is due and return it; a login that does not own the table only says so, once."""
        if self.database.embedded:
            return NOTHING_DUE
        async with only_here(self.database, "sluice index vectors") as mine:
            plan = await self._plan() if mine else NOTHING_DUE
            if not plan.permitted:
                self._complain(plan.due)
                return plan
            for name in plan.drop:
                await drop_index(self.database, name)
            for space, dimensions in plan.build:
                await build_index(self.database, space, dimensions)
            return plan

    async def _plan(self) -> IndexPlan:
        async with self.database.system_transaction(write=False) as tx:
            if not await indexes_vectors(tx) or not await compares_vectors(tx):
                return NOTHING_DUE
            existing = await list_vector_indexes(tx)
            # An index stays until half of the chunks are gone, so that a tenant near the bound has no two a day.
            spaces = await list_spaces(tx, least=max(1, self.least // 2))
            lacking = [
                space
                for space in spaces
                if space.chunks > self.least and not existing.get(space.index_name, False)
            ]
            sizes = [(space, await find_dimensions(tx, space)) for space in lacking]
            permitted = await may_build(tx)
        drop = sorted(existing.keys() - {space.index_name for space in spaces})
        return IndexPlan([(space, size) for space, size in sizes if size is not None], drop, permitted)

    def _complain(self, due: int) -> None:
        if due > self._missed:
            log.warning(
                "%d indexes of vectors are to be built or dropped, which only the owner of the tables may: run "
                "`sluice db index-vectors` with the owner's login",
                due,
            )
        self._missed = due
