"""Hold the database against its high-water mark: a database that was restored or exchanged is noticed.

Each step counts up in the database first and in the mark afterwards, so the mark is never ahead of a database that
lost nothing, whenever a process is killed. What is written between two steps is the window that a restore can hide in.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from app.core.background import meanwhile
from app.core.errors import StoreUnavailableError
from app.store.database import Database
from app.store.vault.mark_files import HighWater, MarkStore, MarkUnreadableError
from app.store.vault.mark_positions import Position, advance_position, find_position, find_step

STEP_S: Final = 5.0
"""Seconds between two looks at the database; a step follows only where this process has written."""
COMMAND: Final = "`sluice vault replay-erasures FILE…`"

log = logging.getLogger("sluice.vault")


class DatabaseBehindError(StoreUnavailableError):
    """The database lacks what its mark remembers, or the mark that it must have is missing."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The position of the database (None: it has never had a mark), and its mark (None: there is none)."""

    position: Position | None
    mark: HighWater | None

    @property
    def behind(self) -> bool:
        """Return whether the database lacks something that the mark remembers."""
        if self.mark is None:
            return False
        position = self.position
        return (
            position is None
            or position.step < self.mark.step
            or position.epoch < self.mark.epoch
            or position.erasures < self.mark.erasures
        )


@dataclass(slots=True)
class MarkKeeper:
    """Compares and advances the mark of one database; ``address`` says where the database is, without credentials."""

    database: Database
    store: MarkStore
    address: str
    every_s: float = STEP_S
    _last: tuple[str, int] | None = None
    _written: int = 0
    _failed: bool = False

    async def standing(self) -> Standing:
        """Return where the database and its mark stand."""
        async with self.database.system_transaction(write=False) as tx:
            first = await find_step(tx)
        # The mark is read between two looks at the database: others may advance both meanwhile, the database first.
        if first is None:
            return Standing(None, await asyncio.to_thread(self.store.find_at, self.address))
        mark = await asyncio.to_thread(self.store.find, first[0])
        async with self.database.system_transaction(write=False) as tx:
            return Standing(await find_position(tx), mark)

    async def verify(self) -> Standing:
        """Return where the database stands, or raise ``DatabaseBehindError``."""
        standing = await self.standing()
        if standing.behind:
            raise DatabaseBehindError(
                "The database was restored from a backup or exchanged: its mark outside is ahead. "
                f"Run {COMMAND} with the files of erasures of all hosts."
            )
        self.check_mark(standing)
        return standing

    def check_mark(self, standing: Standing) -> None:
        """Raise ``DatabaseBehindError`` where a place of all hosts lacks the mark; warn elsewhere."""
        if standing.mark is not None or standing.position is None:
            return
        if self.store.shared:
            raise DatabaseBehindError(
                f"The mark of this database is not in {self.store.place}: mount or name the right place, "
                f"or make a new mark with {COMMAND}."
            )
        log.warning(
            "The mark of the database is not in %s: whether the database was restored cannot be said. "
            "A new mark is made.",
            self.store.place,
        )

    async def step(self, *, line: str | None = None, above: int = 0) -> None:
        """Advance the database and then its mark; shut the database where it went back since the last step."""
        written = self.database.written
        async with self.database.system_transaction(quiet=True) as tx:
            position = await advance_position(tx, line=line, above=above)
            self._compare((position.line, position.step))
        mark = HighWater(position.line, self.address, position.epoch, position.erasures, position.step)
        stored = await asyncio.to_thread(self.store.raise_to, mark)
        if stored is not None:
            # Another process was faster; but a number that this database has yet to reach comes from its lost part.
            async with self.database.system_transaction(write=False) as tx:
                now = await find_step(tx)
            if stored.step == mark.step or now is None or now[1] < stored.step:
                raise self._went_back()
        self._last, self._written = (position.line, position.step), written

    async def admit_erasure(self) -> str:
        """Return the name of the database's history, or raise ``DatabaseBehindError``."""
        if self._last is None:
            await self.verify()
            await self.step()
        async with self.database.system_transaction(write=False) as tx:
            self._compare(await find_step(tx))
        assert self._last is not None  # noqa: S101 - `step` sets it
        return self._last[0]

    async def note_erasure(self) -> None:
        """Let the mark count an erasure that is committed; a mark that cannot be written ends readiness."""
        try:
            await self.step()
        except MarkUnreadableError as error:
            self._fail(error)

    async def ready(self) -> bool:
        """Return whether the mark could be written when it was last tried."""
        return not self._failed

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Compare and advance while the body runs, and once more at its end."""
        async with meanwhile(self._run(), name="mark"):
            yield
        with suppress(StoreUnavailableError, MarkUnreadableError):
            if self.database.written != self._written:
                await self.step()

    async def look(self) -> None:
        """Advance where this process has written, else compare only; a database that went back is shut."""
        try:
            if self.database.written != self._written:
                await self.step()
            else:
                async with self.database.system_transaction(write=False) as tx:
                    self._compare(await find_step(tx))
            self._failed = False
        except MarkUnreadableError as error:
            self._fail(error)
        except StoreUnavailableError:
            return  # the database does not answer, or is shut: both are in the log

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.every_s)
            await self.look()

    def _compare(self, now: tuple[str, int] | None) -> None:
        last = self._last
        if last is not None and (now is None or now[0] != last[0] or now[1] < last[1]):
            raise self._went_back()

    def _went_back(self) -> DatabaseBehindError:
        sentence = (
            "The database was restored from a backup or exchanged while the service runs, so nothing is read or "
            "stored: restart the service, which repeats the erasures."
        )
        log.error(sentence)
        self.database.shut(sentence)
        return DatabaseBehindError(sentence)

    def _fail(self, error: MarkUnreadableError) -> None:
        log.error("%s", error)
        self._failed = True
