"""Index stored documents again, in the background, where their words were made by older rules."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from app.core.events import Changed
from app.services.documents.retrieval import DOCUMENTS_CHANGED
from app.store.changes import announce
from app.store.database import Database
from app.store.documents.search_words import UnpreparedDocument, list_unprepared, prepare_again
from app.store.locks import only_here

_LISTED: Final = 500
_CHUNKS_AT_ONCE: Final = 200
"""How many chunks one transaction indexes again; a document with more is done by itself."""


@dataclass(frozen=True, slots=True)
class DocumentWords:
    """Brings the words of all tenants' documents to the present rules; after an interruption it continues."""

    database: Database

    async def prepare_stored(self) -> int:
        """Index every document again that older rules indexed; return how many there were."""
        count = 0
        async with only_here(self.database, "sluice prepare documents") as mine:
            while mine:
                async with self.database.system_transaction(write=False) as tx:
                    waiting = await list_unprepared(tx, limit=_LISTED)
                if not waiting:
                    break
                for tenant, documents in _steps(waiting):
                    async with self.database.transaction(tenant) as tx:
                        if await prepare_again(tx, tenant, documents):
                            await announce(tx, Changed(DOCUMENTS_CHANGED, tenant))
                count += len(waiting)
        return count


def _steps(waiting: Sequence[UnpreparedDocument]) -> Iterator[tuple[str, list[str]]]:
    """Yield a tenant and some of its documents, so that no transaction takes long."""
    for tenant, documents in groupby(waiting, key=lambda document: document.tenant):
        step: list[str] = []
        chunks = 0
        for document in documents:
            if step and chunks + document.chunks > _CHUNKS_AT_ONCE:
                yield tenant, step
                step, chunks = [], 0
            step.append(document.id)
            chunks += document.chunks
        yield tenant, step
