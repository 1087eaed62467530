"""Give each new checkpoint of the audit log to the anchors, once it is certain that it continues what they keep."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from app.core.contracts.anchors import Anchor, AnchorError, KeepsAnotherError, Submission
from app.core.transparency.hashing import continues
from app.core.transparency.notes import Checkpoint, Note, Signature
from app.core.transparency.tiles import consistency_proof, root, wanted
from app.services.audit.archive.months import closed, closing, following
from app.store.audit.anchors import (
    AnchoredCheckpoint,
    list_anchored,
    oldest_beyond,
    oldest_unsealed,
    put_anchored,
)
from app.store.audit.archive import ArchiveState, find_archive_state
from app.store.audit.log import (
    HEADS,
    SignedCheckpoint,
    list_tiles,
    newest_checkpoint,
    replace_checkpoint,
)
from app.store.audit.sinks import SinkCursor, list_cursors, waiting_since
from app.store.database import Database

LATE_S: Final = 60.0
"""Behind by more than this, sealing and anchors are named by the readiness probe."""
ARCHIVE_LATE_S: Final = 3600.0
"""The same for the archive, which is looked at every ten minutes and may have much to write."""

log = logging.getLogger("sluice.audit")


@dataclass(frozen=True, slots=True)
class Anchoring:
    """Keeps the anchors up to date; one process at a time runs it, each knows the ``lag``."""

    database: Database
    anchors: Sequence[Anchor]
    now: Callable[[], datetime]
    lag: "LogLag"

    @classmethod
    def over(
        cls,
        database: Database,
        anchors: Sequence[Anchor],
        now: Callable[[], datetime],
        sinks: Sequence[str] = (),
        archive: str | None = None,
    ) -> "Anchoring":
        """Return what keeps these anchors up to date; the lag is that of ``sinks`` and ``archive``, too."""
        names = [anchor.name for anchor in anchors]
        return cls(database, anchors, now, LogLag(database, names, now, sinks, archive))

    async def run(self) -> None:
        """Give the newest checkpoint to each anchor that does not keep it; one that fails delays no other."""
        if not self.anchors:
            return
        async with self.database.system_transaction(write=False) as tx:
            newest = await newest_checkpoint(tx)
            kept = await list_anchored(tx)
        if newest is None:
            return
        note = Note.parse(newest.note)
        answers = await asyncio.gather(
            *(self._guarded(anchor, kept.get(anchor.name), note) for anchor in self.anchors)
        )
        await self._add(newest, [signature for signatures in answers for signature in signatures])

    async def _guarded(
        self, anchor: Anchor, stored: AnchoredCheckpoint | None, note: Note
    ) -> Sequence[Signature]:
        try:
            return await self._advance(anchor, stored, note)
        except AnchorError as error:
            log.warning("anchor %s does not keep the newest checkpoint: %s", anchor.name, error)
            return ()

    async def _advance(
        self, anchor: Anchor, stored: AnchoredCheckpoint | None, note: Note
    ) -> Sequence[Signature]:
        checkpoint = Checkpoint.parse(note.text)
        own = await anchor.newest()
        if own is not None and own.origin != checkpoint.origin:
            raise AnchorError("It keeps checkpoints of another log.")
        since = own.size if own is not None else stored.size if stored is not None else 0
        expected = own.root if own is not None else stored.root if stored is not None else None
        if since == checkpoint.size and expected == checkpoint.root:
            return ()
        try:
            cosignatures = await anchor.keep(await self._submission(note, checkpoint, since, expected))
        except KeepsAnotherError as error:
            # What it said is checked by itself: it asks for the proof that the log continues from there.
            cosignatures = await anchor.keep(await self._submission(note, checkpoint, error.size, None))
        async with self.database.system_transaction(quiet=True) as tx:
            await put_anchored(
                tx, AnchoredCheckpoint(anchor.name, checkpoint.size, checkpoint.root, self.now())
            )
        return cosignatures

    async def _submission(
        self, note: Note, checkpoint: Checkpoint, since: int, expected: bytes | None
    ) -> Submission:
        """Return the checkpoint with its proof; raise AnchorError where it does not continue what is kept."""
        if since > checkpoint.size:
            raise AnchorError(
                f"It keeps {since} entries, the log has {checkpoint.size}: the log was set back."
            )
        prove = partial(consistency_proof, since, checkpoint.size)
        then = partial(root, since)
        async with self.database.system_transaction(write=False) as tx:
            places = [(HEADS, place) for place in {*wanted(prove), *wanted(then)}]
            tiles = (await list_tiles(tx, places)).get(HEADS, {})
        try:
            proof, computed = prove(tiles), then(tiles)
        except LookupError:
            raise AnchorError("Tiles of the log are missing: run sluice audit verify.") from None
        old_root = computed if expected is None else expected
        if since and not continues(old_root, since, checkpoint.root, checkpoint.size, proof):
            raise AnchorError("The log does not continue what it keeps: run sluice audit verify.")
        return Submission(checkpoint, note, since, proof)

    async def _add(self, newest: SignedCheckpoint, cosignatures: Sequence[Signature]) -> None:
        """Store the cosignatures with the checkpoint, so that proofs of events carry them."""
        if not cosignatures:
            return
        note = Note.parse(newest.note)
        signed = Note(note.text, (*note.signatures, *(made for made in cosignatures)))
        async with self.database.system_transaction(quiet=True) as tx:
            await replace_checkpoint(tx, SignedCheckpoint(newest.size, str(signed), newest.at))


@dataclass(slots=True)
class LogLag:
    """How far the log is behind, in seconds, as this process last saw it: for metrics and the readiness probe."""

    database: Database
    anchors: Sequence[str]
    now: Callable[[], datetime]
    sinks: Sequence[str] = ()
    archive: str | None = None
    sealing_s: float = 0.0
    archiving_s: float = 0.0
    archive_failed: float = 0.0
    """When the archive last failed, in seconds since 1970; 0: never."""
    _anchoring_s: Mapping[str, float] | None = None
    _delivering_s: Mapping[str, float] | None = None

    async def look(self) -> None:
        """Read how far sealing, each anchor, each sink and the archive are."""
        async with self.database.system_transaction(write=False) as tx:
            unsealed = await oldest_unsealed(tx)
            kept = await list_anchored(tx) if self.anchors else {}
            waiting = {
                name: await oldest_beyond(tx, kept[name].size if name in kept else -1)
                for name in self.anchors
            }
            cursors = await list_cursors(tx) if self.sinks else {}
            undelivered = {
                name: await waiting_since(tx, cursors.get(name, SinkCursor(name))) for name in self.sinks
            }
            archived = await find_archive_state(tx, self.archive) if self.archive else None
        moment = self.now()
        if archived is not None:
            self.archiving_s = _seconds(_unarchived(archived, moment), moment)
            self.archive_failed = archived.failed.timestamp() if archived.failed else 0.0
        self.sealing_s = _seconds(unsealed, moment)
        self._anchoring_s = {name: _seconds(since, moment) for name, since in waiting.items()}
        self._delivering_s = {name: _seconds(since, moment) for name, since in undelivered.items()}

    def anchoring_s(self) -> Mapping[str, float]:
        """Return for each anchor how long it has been without a checkpoint that was signed."""
        return self._anchoring_s or dict.fromkeys(self.anchors, 0.0)

    def delivering_s(self) -> Mapping[str, float]:
        """Return for each sink how long the oldest sealed event waits for it."""
        return self._delivering_s or dict.fromkeys(self.sinks, 0.0)

    def late(self) -> list[str]:
        """Return what is behind by more than a minute (an archive: by an hour), in words for operators."""
        behind = ["sealing the audit log"] if self.sealing_s > LATE_S else []
        behind += [f"anchor {name}" for name, lag_s in self.anchoring_s().items() if lag_s > LATE_S]
        behind += [f"sink {name}" for name, lag_s in self.delivering_s().items() if lag_s > LATE_S]
        return behind + ([f"archive {self.archive}"] if self.archiving_s > ARCHIVE_LATE_S else [])


def _unarchived(state: ArchiveState, moment: datetime) -> datetime | None:
    """Return since when a closed month has not been in the archive; None: it has all of them."""
    if state.complete is None:
        return state.since
    return None if state.complete >= closed(moment) else closing(following(state.complete))


def _seconds(since: datetime | None, moment: datetime) -> float:
    return 0.0 if since is None else max(0.0, (moment - since).total_seconds())
