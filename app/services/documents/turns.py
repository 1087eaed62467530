"""Whose document is read next: tenants take turns, so that one with many documents delays only itself."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from app.core.contracts.policy import Limits
from app.engines.documents.extraction import Extracted
from app.engines.documents.reader import DocumentReader
from app.services.access.traffic import Traffic

_REMEMBERED: Final = 4096
_WAIT_S: Final = 60.0


class Turns:
    """One document of a tenant is read at a time in this process; the tenant that waits longest is next."""

    def __init__(self) -> None:
        self._reading: set[str] = set()
        self._served: dict[str, int] = {}
        self._count = 0

    def choose(self, waiting: Iterable[str]) -> str | None:
        """Return the tenant among ``waiting`` that was served longest ago and has no document being read."""
        free = [tenant for tenant in waiting if tenant not in self._reading]
        return min(free, key=lambda tenant: (self._served.get(tenant, 0), tenant), default=None)

    @contextmanager
    def reading(self, tenant: str) -> Iterator[None]:
        """Count the turn of ``tenant``, and read none of its other documents while the body runs."""
        self._count += 1
        self._served.pop(tenant, None)
        if len(self._served) >= _REMEMBERED:
            del self._served[next(iter(self._served))]  # a tenant that is not remembered counts as unserved
        self._served[tenant] = self._count
        self._reading.add(tenant)
        try:
            yield
        finally:
            self._reading.discard(tenant)


class FairReader:
    """Reads documents on request; waiting tenants take turns at the places of ``reader``."""

    def __init__(self, reader: DocumentReader) -> None:
        self._reader = reader
        self._traffic = Traffic(slots=reader.at_once)

    async def read(self, tenant: str, data: bytes, media_type: str, name: str = "") -> Extracted:
        """Return the text of ``data``, as ``DocumentReader.read`` does; raise OverloadedError where too many wait."""
        until = asyncio.get_running_loop().time() + _WAIT_S
        async with self._traffic.slot(tenant, Limits(), until):
            return await self._reader.read(data, media_type, name)
