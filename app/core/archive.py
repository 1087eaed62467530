"""The archive of the audit record: closed months as files that are written once and prove themselves."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from app.core.audit import AuditEvent, WriterNumber


class ArchiveError(Exception):
    """The archive cannot be read or written; the message says what to mend and holds no content."""


class MonthPart(NamedTuple):
    """One file of the archive: events of a tenant at the positions from ``first`` to below ``end`` of its log.

    ``month`` (YYYY-MM) is when they were sealed. All its parts, numbered from 1, cover the positions from
    ``month_first`` to below ``month_end``.
    """

    tenant: str
    month: str
    number: int
    first: int
    end: int
    month_first: int
    month_end: int

    @property
    def name(self) -> str:
        """Return the name of the file in the tenant's folder; names sort as positions do."""
        return f"{self.month}-{self.number:03d}.parquet"


class ArchivedRow(NamedTuple):
    """A position of the log: its event and which form its leaf has, or only the leaf's hash where it was deleted."""

    position: int
    leaf: bytes
    version: int
    event: AuditEvent | None
    number: WriterNumber | None


class ArchiveSearch(NamedTuple):
    """Which events to find: those whose members have the values of ``equal``, with ids below ``before``.

    ``since`` is inclusive, ``until`` exclusive; None does not filter.
    """

    equal: Mapping[str, str]
    limit: int
    since: datetime | None = None
    until: datetime | None = None
    before: UUID | None = None
    client_request_id: str | None = None


@dataclass(frozen=True, slots=True)
class ArchivedPart:
    """A part that the archive has: the log whose checkpoint signed it, and the times and ids between which it lies.

    They are None where all of its events were deleted before it was written.
    """

    part: MonthPart
    origin: str
    times: tuple[datetime, datetime] | None = None
    ids: tuple[str, str] | None = None


class PartWriter(Protocol):
    """Takes the rows of a part, in their order."""

    async def add(self, rows: Sequence[ArchivedRow]) -> None:
        """Add rows."""
        ...

    async def finish(self, proof: Mapping[str, Any]) -> str:
        """Store the file with the members of its proof; return its SHA-256 (hex).

        Nothing is stored before, and no file is replaced: one of the name raises ArchiveError.
        """
        ...


class EventArchive(Protocol):
    """A place with one folder for each tenant; its methods raise ArchiveError."""

    @property
    def name(self) -> str:
        """Return how the record and log lines name it: never a secret."""
        ...

    async def parts(self, tenant: str) -> Sequence[ArchivedPart]:
        """Return the parts of a tenant, in the order of its log."""
        ...

    async def last(self, tenant: str) -> ArchivedPart | None:
        """Return the newest part of a tenant."""
        ...

    def writing(self, part: MonthPart) -> AbstractAsyncContextManager[PartWriter]:
        """Return what writes a part; what is not finished when it closes is as if it had never begun."""
        ...

    async def find(self, part: MonthPart, search: ArchiveSearch) -> Sequence[AuditEvent]:
        """Return at most ``search.limit`` events of a part, the highest ids first.

        What was kept sealed with an event is not archived.
        """
        ...
