"""Erase again what was erased after a backup that the database was restored from, before anything is served."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from app.core.access import SYSTEM_TENANT, Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.events import Changed
from app.core.request import RequestInfo
from app.engines.cipher import KeyKeeper
from app.services.access.credentials import TENANT_CHANGED
from app.services.audit.audit import AuditService
from app.services.vault.erasure import VAULT_CHANGED
from app.services.vault.erasure_jobs import sought_by
from app.services.vault.mark import COMMAND, DatabaseBehindError, MarkKeeper, Standing
from app.services.vault.restore_epoch import begin_epoch
from app.store.access.tenants import mark_erased
from app.store.audit.audit import Transaction
from app.store.changes import announce
from app.store.database import Database
from app.store.dialects import address_of
from app.store.locks import only_here
from app.store.vault.erasure_files import SharedErasures
from app.store.vault.erasure_jobs import (
    RUNNING,
    StoredErasureJob,
    find_job,
    job_of,
    restore_job,
    update_job,
)
from app.store.vault.keys import remove_tenant_keys
from app.store.vault.mark_files import MarkStore
from app.store.vault.subjects import list_scopes_with
from app.store.vault.vault import EntryPlace, add_erasure, list_receipts, remove_older

START: Final = Caller(SYSTEM_TENANT, "start", frozenset())
"""Who acts, in the record, when a start repeats erasures by itself."""
_LOCK: Final = "sluice replay erasures"
_WAIT_S: Final = 0.5
_SKEW: Final = timedelta(minutes=2)
"""How far the clocks of two hosts may differ: an entry may seem younger than its erasure."""

log = logging.getLogger("sluice.vault")


@dataclass(frozen=True, slots=True)
class ErasureLine:
    """One line of a file of erasures; ``database`` names the history that it belongs to (None: an older release)."""

    database: str | None
    tenant: str
    id: UUID
    kind: str
    at: datetime
    actor: str
    scope: str | None
    places: tuple[EntryPlace, ...]
    job: StoredErasureJob | None
    """What was ordered or is done, where the line notes that and no erasure."""
    step_of: UUID | None
    """The job that this erasure is a step of."""


@dataclass(frozen=True, slots=True)
class ReplayReceipt:
    """What became of the lines of the files, counted; ``erased`` are values by label.

    ``repeated`` were unknown to the database, as were ``jobs`` orders and receipts; ``stored`` were not, ``foreign``
    belong to another database, and ``unreadable`` are no erasures: a write that was cut off, whose erasure was never
    confirmed.
    """

    repeated: int
    jobs: int
    stored: int
    foreign: int
    unreadable: int
    erased: dict[str, int]
    epoch: int


@dataclass(slots=True)
class _Noted:
    """Erasures by id; then how many are foreign and unreadable, and how many more the database has."""

    lines: dict[UUID, ErasureLine] = field(default_factory=dict)
    foreign: int = 0
    unreadable: int = 0
    stored: int = 0

    def add(self, written: Iterable[bytes], line: str | None, *, older: bool) -> None:
        """Take the erasures of the history ``line`` (None: of any); ``older``: those that name no history, too."""
        for each in written:
            parsed = _parsed(each)
            if parsed is None:
                self.unreadable += 1
            elif line is not None and parsed.database != line and not (older and parsed.database is None):
                self.foreign += 1
            else:
                self.lines[parsed.id] = parsed


@dataclass(frozen=True, slots=True)
class ReplayService:
    """Repeats erasures.

    ``at_hand`` are patterns of the files of erasures that this host has, ``shared`` is where all hosts note them
    (None: each has files of its own).
    """

    database: Database
    audit: AuditService
    key_keeper: KeyKeeper
    marks: MarkKeeper
    at_hand: Sequence[Path]
    shared: SharedErasures | None = None

    async def recover(self) -> None:
        """Advance the mark of a sound database, or make a restored one fit to serve, or raise ``DatabaseBehindError``.

        Of several processes that start at once, one does it and the others wait.
        """
        while True:
            async with only_here(self.database, _LOCK) as mine:
                if mine:
                    await self._recover()
                    return
            await asyncio.sleep(_WAIT_S)

    async def replay(
        self,
        caller: Caller,
        files: Sequence[Path],
        *,
        incomplete: bool = False,
        request: RequestInfo | None = None,
    ) -> ReplayReceipt:
        """Erase again what ``files`` (none: those at hand) and the shared place list; begin an epoch, renew the mark.

        Raise ``DatabaseBehindError`` where the mark counts more erasures than database and files, unless
        ``incomplete``.
        """
        async with self.audit.refusals(caller, "vault.replay_erasures", request):
            caller.require(Role.KEY_CUSTODIAN)
        standing = await self.marks.standing()
        noted = await self._read(files or self._present(), _line(standing), older=True)
        return await self._replay(caller, standing, noted, request, incomplete=incomplete)

    def _present(self) -> list[Path]:
        return sorted({file for pattern in self.at_hand for file in pattern.parent.glob(pattern.name)})

    async def _read(self, files: Sequence[Path], line: str | None, *, older: bool) -> _Noted:
        """Return what was noted; of the shared place only what the database lacks: it may be one in a million."""
        noted = await asyncio.to_thread(_read, files, line, older=older)
        if self.shared is None or line is None:
            return noted
        ids = (await asyncio.to_thread(self.shared.list_ids, line)) - noted.lines.keys()
        async with self.database.system_transaction(write=False) as tx:
            stored = await list_receipts(tx, list(ids))
        noted.stored = len(stored)
        noted.add(await asyncio.to_thread(self.shared.read, line, ids - stored), line, older=False)
        return noted

    async def _recover(self) -> None:
        standing = await self.marks.standing()
        if not standing.behind:
            self.marks.check_mark(standing)
            await self.marks.step()
            return
        if standing.position is None:
            raise _vanished(self.marks.address)
        # Lines of older releases name no database: only a person can say that they belong to this one.
        noted = await self._read(self._present(), _line(standing), older=False)
        receipt = await self._replay(START, standing, noted, None, incomplete=False)
        log.warning(
            "The database was restored from a backup: %s erasures were repeated, and epoch %s begins. "
            "API keys that were revoked since the backup are valid again: revoke them.",
            receipt.repeated,
            receipt.epoch,
        )

    async def _replay(
        self,
        caller: Caller,
        standing: Standing,
        noted: _Noted,
        request: RequestInfo | None,
        *,
        incomplete: bool,
    ) -> ReplayReceipt:
        lines = noted.lines
        async with self.database.system_transaction(write=False) as tx:
            stored = await list_receipts(tx, list(lines))
        new = sorted((line for id_, line in lines.items() if id_ not in stored), key=lambda line: line.at)
        self._check_complete(standing, len(new), incomplete=incomplete)
        erased: Counter[str] = Counter()
        for line in new:
            erased.update(await self._erase(caller, line, request))
        jobs = sum(line.job is not None for line in new)
        epoch = await self._begin_epoch(caller, standing, request)
        mark = standing.mark
        await self.marks.step(line=mark.line if mark else None, above=mark.step if mark else 0)
        return ReplayReceipt(
            len(new) - jobs,
            jobs,
            len(stored) + noted.stored,
            noted.foreign,
            noted.unreadable,
            dict(erased),
            epoch,
        )

    def _check_complete(self, standing: Standing, new: int, *, incomplete: bool) -> None:
        counted = standing.mark.erasures if standing.mark is not None else 0
        present = (standing.position.erasures if standing.position is not None else 0) + new
        if present < counted and not incomplete:
            raise DatabaseBehindError(
                f"The database was restored from a backup. Its mark counts {counted} orders, steps and receipts of "
                f"erasures, but database and files of erasures have {present}: whoever was erased since would come "
                f"back. Collect the erasures*.jsonl of all hosts and run {COMMAND}, then start again "
                "(--incomplete goes on without them)."
            )

    async def _erase(self, caller: Caller, line: ErasureLine, request: RequestInfo | None) -> dict[str, int]:
        """Repeat one erasure, with its receipt and an event, in one transaction; return what was still there."""
        if line.kind == "tenant":
            # The order comes first: where the rest fails, the next start repeats both.
            async with self.database.system_transaction() as tx:
                await mark_erased(tx, line.tenant, line.at)
                await remove_tenant_keys(tx, line.tenant)
                await announce(tx, Changed(TENANT_CHANGED, line.tenant))
            self.audit.keys.drop(line.tenant)
        await self.audit.keys.ready(line.tenant)
        async with self.database.transaction(line.tenant) as tx:
            if line.job is not None:
                await restore_job(tx, line.job)
            counts = await remove_older(
                tx, line.tenant, line.scope if line.kind == "scope" else None, line.places, line.at + _SKEW
            )
            if line.step_of is not None:
                await _count_step(tx, line, counts)
            await add_erasure(tx, line.tenant, line.id, line.kind, line.at, line.actor, line.scope, counts)
            event = self.audit.new_event(
                caller,
                "vault.replay_erasure" if line.job is None else "erasure.replay",
                OUTCOME_OK,
                request,
                tenant=line.tenant,
                scope_ref=None if line.scope is None else self.audit.scope_ref(line.tenant, line.scope),
                counts=counts,
                details={"receipt": str(line.id)} if line.job is None else {"job": str(line.job.id)},
            )
            await announce(tx, Changed(VAULT_CHANGED, line.tenant, line.scope))
            await self.audit.record_with(tx, event)
        if line.scope is not None:
            self.key_keeper.forget(line.tenant, line.scope)
        return counts

    async def _begin_epoch(self, caller: Caller, standing: Standing, request: RequestInfo | None) -> int:
        async def note(tx: Transaction, epoch: int) -> None:
            event = self.audit.new_event(
                caller, "vault.restore_epoch", OUTCOME_OK, request, details={"epoch": epoch}
            )
            await self.audit.record_with(tx, event)

        above = standing.mark.epoch if standing.mark is not None else 0
        return await begin_epoch(self.database, note, above=above)


async def _count_step(tx: Transaction, line: ErasureLine, counts: dict[str, int]) -> None:
    """Count what was erased again for the job that it was a step of, which goes on and states it in its receipt."""
    job = None if line.step_of is None else await find_job(tx, line.tenant, line.step_of, lock=True)
    if job is None or job.state != RUNNING or not counts:
        return
    total, done, scopes = Counter(job.counts) + Counter(counts), job.done, job.scopes + 1
    if job.kind == "values":
        # A job of scopes goes through all of them once more; one of values finds only what is left.
        done += sum(counts.values())
        names = sorted({place.scope for place in line.places})
        left = await list_scopes_with(tx, line.tenant, sought_by(job.plan), names)
        scopes = job.scopes + len(names) - len(left)
    await update_job(tx, job, counts=dict(total), done=done, total=max(job.total, done), scopes=scopes)


def refuse_vanished(file: Path | None, url: str, store: MarkStore) -> None:
    """Raise ``DatabaseBehindError`` where a SQLite file is gone that a mark remembers, before a new one is made."""
    if file is not None and not file.exists() and store.find_at(address_of(url)) is not None:
        raise _vanished(address_of(url))


def _vanished(address: str) -> DatabaseBehindError:
    """Return the error for a database that is new although its mark remembers another one at its place."""
    return DatabaseBehindError(
        f"There is a mark of the database {address}, but the database itself is gone or empty. Restore it from a "
        f"backup; or begin anew with `sluice db upgrade`, and then, so that no handle number is given twice, {COMMAND}."
    )


def _line(standing: Standing) -> str | None:
    named = standing.position or standing.mark
    return named.line if named is not None else None


def _read(files: Sequence[Path], line: str | None, *, older: bool) -> _Noted:
    noted = _Noted()
    noted.add(_written(files), line, older=older)
    return noted


def _written(files: Sequence[Path]) -> Iterator[bytes]:
    for file in files:
        with file.open("rb") as opened:
            yield from (line for line in opened if line.strip())


def _parsed(written: bytes) -> ErasureLine | None:
    try:
        read: dict[str, Any] = json.loads(written)
        at = datetime.fromisoformat(read["at"])
        job = read.get("job")
        return ErasureLine(
            database=read.get("database"),
            tenant=str(read["tenant"]),
            id=UUID(read["id"]),
            kind=str(read["kind"]),
            at=at,
            actor=str(read["actor"]),
            scope=read["scope"],
            places=tuple(
                EntryPlace(str(scope), str(label), int(ordinal)) for scope, label, ordinal in read["erased"]
            ),
            job=job_of(job) if isinstance(job, dict) else None,
            step_of=UUID(job) if isinstance(job, str) else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
