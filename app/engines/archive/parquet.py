"""Parts of the archive as Parquet files: written in row groups, with their proof as the file's metadata."""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.core.archive import (
    ArchivedPart,
    ArchivedRow,
    ArchiveError,
    ArchiveSearch,
    MonthPart,
    PartWriter,
)
from app.core.audit import CLIENT_REQUEST_ID, AuditEvent
from app.engines.archive.columns import SCHEMA, batch_of, event_of

FORM: Final = "sluice audit archive 1"
PROOF: Final = b"sluice.archive"
"""The entry of the file's metadata that has the proof, as JSON."""
_GROUP: Final = 5_000
"""Rows of a row group: what is held in memory at a time."""
_NAME: Final = re.compile(r"\d{4}-\d{2}-\d{3,}\.parquet")
_MONTH: Final = len("2026-10")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT: Final = timedelta(microseconds=1)

T = TypeVar("T")


class ArchivePlace(Protocol):
    """Keeps files by tenant and name."""

    @property
    def name(self) -> str:
        """Return how it is named to people: never a secret."""
        ...

    def names(self, tenant: str) -> Sequence[str]:
        """Return the names of a tenant's files, sorted."""
        ...

    def open(self, tenant: str, name: str) -> BinaryIO:
        """Open a file for reading; raises OSError."""
        ...

    def keep(self, tenant: str, name: str, file: Path) -> None:
        """Store ``file`` as a whole; a name that is taken raises ArchiveError."""
        ...


class ParquetArchive:
    """An archive in a place; what was read of a part is remembered, since no part ever changes."""

    def __init__(self, place: ArchivePlace) -> None:
        """Take the place where files are kept."""
        self._place = place
        self._stored: dict[tuple[str, str], ArchivedPart] = {}

    @property
    def name(self) -> str:
        """Return the name of the place."""
        return self._place.name

    async def parts(self, tenant: str) -> Sequence[ArchivedPart]:
        """Return the parts of a tenant, in the order of its log."""
        return await asyncio.to_thread(self._parts, tenant, slice(None))

    async def last(self, tenant: str) -> ArchivedPart | None:
        """Return the newest part of a tenant."""
        newest = await asyncio.to_thread(self._parts, tenant, slice(-1, None))
        return newest[0] if newest else None

    def writing(self, part: MonthPart) -> AbstractAsyncContextManager[PartWriter]:
        """Return what writes a part: in a folder for temporary files, until it is finished."""
        return _writing(self._place, part)

    async def find(self, part: MonthPart, search: ArchiveSearch) -> Sequence[AuditEvent]:
        """Return at most ``search.limit`` events of a part, the highest ids first."""
        return await asyncio.to_thread(self._find, part, search)

    def _parts(self, tenant: str, chosen: slice) -> list[ArchivedPart]:
        names = [name for name in self._place.names(tenant) if _NAME.fullmatch(name)]
        # From a thousand parts of a month on, the longer name is the later one.
        names.sort(key=lambda name: (name[:_MONTH], len(name), name))
        return [self._part(tenant, name) for name in names[chosen]]

    def _part(self, tenant: str, name: str) -> ArchivedPart:
        if (tenant, name) not in self._stored:
            with _readable(self._place, tenant, name) as file:
                stored = _stored_part(json.loads(file.metadata.metadata[PROOF]))
            if (stored.part.tenant, stored.part.name) != (tenant, name):
                raise ArchiveError(
                    f"{tenant}/{name} of the archive is another file: {stored.part.tenant}/{stored.part.name}. "
                    "Put every file back where it was."
                )
            self._stored[tenant, name] = stored
        return self._stored[tenant, name]

    def _find(self, part: MonthPart, search: ArchiveSearch) -> list[AuditEvent]:
        chosen = SCHEMA.empty_table()
        with _readable(self._place, part.tenant, part.name) as file:
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group, use_threads=False)
                if pc.any(pc.not_equal(rows["tenant"], part.tenant)).as_py():
                    raise ArchiveError(
                        f"{part.tenant}/{part.name} of the archive has events of another tenant."
                    )
                matching = pa.concat_tables([chosen, rows.filter(_condition(rows, search))])
                chosen = matching.sort_by([("id", "descending")]).slice(0, search.limit)
            return [event_of(row) for row in chosen.to_pylist()]


@contextmanager
def _readable(place: ArchivePlace, tenant: str, name: str) -> Iterator[pq.ParquetFile]:
    try:
        with place.open(tenant, name) as opened, pq.ParquetFile(opened, pre_buffer=False) as file:
            yield file
    except (OSError, pa.ArrowException, ValueError, TypeError, KeyError) as error:
        raise ArchiveError(
            f"{tenant}/{name} of the archive cannot be read ({type(error).__name__}): verify the archive with "
            "deploy/verify_archive.py, and put a copy in the place of what it names."
        ) from None


def _stored_part(proof: Mapping[str, Any]) -> ArchivedPart:
    if proof["form"] != FORM:
        raise ValueError(FORM)
    part = MonthPart(**{name: proof[name] for name in MonthPart._fields})
    times, ids = proof["times"], proof["ids"]
    return ArchivedPart(
        part=part,
        origin=str(proof["checkpoint"]).partition("\n")[0],
        times=(_EPOCH + times[0] * _INSTANT, _EPOCH + times[1] * _INSTANT) if times else None,
        ids=(str(ids[0]), str(ids[1])) if ids else None,
    )


def _condition(rows: pa.Table, search: ArchiveSearch) -> pa.ChunkedArray:
    """Return for each row whether it is searched for; a row without an event never is."""
    instant = SCHEMA.field("at").type
    conditions = [pc.equal(rows[name], value) for name, value in search.equal.items()]
    if search.since is not None:
        conditions.append(pc.greater_equal(rows["at"], pa.scalar(search.since, instant)))
    if search.until is not None:
        conditions.append(pc.less(rows["at"], pa.scalar(search.until, instant)))
    if search.before is not None:
        conditions.append(pc.less(rows["id"], str(search.before)))
    if search.client_request_id is not None:
        # As the column has it: a quote within a text stands behind a backslash there.
        member = f'"{CLIENT_REQUEST_ID}":{json.dumps(search.client_request_id)}'
        conditions.append(pc.match_substring(rows["details"], member))
    return reduce(pc.and_kleene, conditions, pc.is_valid(rows["id"]))


@asynccontextmanager
async def _writing(place: ArchivePlace, part: MonthPart) -> AsyncIterator["_FileWriter"]:
    with TemporaryDirectory(prefix="sluice-archive-") as folder:
        writer = _FileWriter(place, part, Path(folder) / part.name)
        try:
            yield writer
        finally:
            writer.close()


class _FileWriter:
    """Writes a file away from the event loop."""

    def __init__(self, place: ArchivePlace, part: MonthPart, file: Path) -> None:
        self._place, self._part, self._file = place, part, file
        # Nobody proves statistics, and readers skip rows by them.
        self._writer = pq.ParquetWriter(file, SCHEMA, compression="zstd", write_statistics=False)
        self._waiting: list[ArchivedRow] = []
        self._times: list[datetime] = []
        self._ids: list[str] = []

    async def add(self, rows: Sequence[ArchivedRow]) -> None:
        """Add rows; whole row groups are written."""
        self._waiting += rows
        events = [row.event for row in rows if row.event is not None]
        self._times = _ends([*self._times, *(event.at for event in events)])
        self._ids = _ends([*self._ids, *(str(event.id) for event in events)])
        if len(self._waiting) >= _GROUP:
            await _unhindered(self._write)

    async def finish(self, proof: Mapping[str, Any]) -> str:
        """Store the file; return its SHA-256 (hex)."""
        members = {
            "form": FORM,
            **self._part._asdict(),
            "times": [(moment - _EPOCH) // _INSTANT for moment in self._times] or None,
            "ids": self._ids or None,
            **proof,
        }
        return await _unhindered(lambda: self._finish(members))

    def close(self) -> None:
        """Close the file, which is not stored unless it was finished."""
        self._writer.close()

    def _write(self) -> None:
        self._writer.write_batch(batch_of(self._waiting))
        self._waiting = []

    def _finish(self, members: Mapping[str, Any]) -> str:
        if self._waiting:
            self._write()
        self._writer.add_key_value_metadata({PROOF: json.dumps(members)})
        self._writer.close()
        with self._file.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        self._place.keep(self._part.tenant, self._part.name, self._file)
        return digest


def _ends(values: list[T]) -> list[T]:
    return [min(values), max(values)] if values else []  # type: ignore[type-var]


async def _unhindered(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except (OSError, ValueError, TypeError) as error:
        raise ArchiveError(f"A part of the archive cannot be made ({type(error).__name__}).") from None
