"""Remember what became of texts that a conversation showed before, so that only new ones are scanned."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from app.core.events import Changed
from app.services.vault.erasure import VAULT_CHANGED
from app.store.changes import EVERYTHING
from app.store.database import Database
from app.store.vault.conversations import read_state

BUDGET_BYTES: Final = 32 * 2**20
"""About how many bytes a process keeps."""
_LARGEST: Final = 2**20
_PER_ITEM: Final = 250
_PER_SCOPE: Final = 1_000

Lineage = tuple[int, str | None]


@dataclass(slots=True)
class SeenScope:
    """What became of the items of one conversation, by keyed digest; None where an item stays as it is.

    It holds no originals: only what a model may see.
    """

    key: tuple[str, str]
    lineage: Lineage | None
    stamp: int
    items: dict[str, bytes | None] = field(default_factory=dict)
    size: int = _PER_SCOPE


@dataclass(slots=True)
class SeenTexts:
    """The conversations that this process has seen, by tenant and scope; the one used longest ago is dropped first.

    What belongs to a scope goes with it: an item with handles of a scope that is erased or expired would otherwise
    come back without originals. ``hear`` must get every change (``store.changes``).
    """

    database: Database
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    budget: int = BUDGET_BYTES
    size: int = 0
    """About how many bytes all of them take."""
    _scopes: "OrderedDict[tuple[str, str], SeenScope]" = field(default_factory=OrderedDict)
    _changes: int = 0

    def hear(self, changed: Changed) -> None:
        """Drop what a change concerns."""
        if changed.kind not in {VAULT_CHANGED, EVERYTHING}:
            return
        self._changes += 1
        for tenant, name in list(self._scopes):
            if changed.tenant in {None, tenant} and changed.name in {None, name}:
                self._drop((tenant, name))

    async def open(self, tenant: str, name: str) -> SeenScope:
        """Return what is kept of a scope as the database has it now: nothing if it was erased or has expired."""
        key, stamp = (tenant, name), self._changes
        lineage = await self._lineage(key)
        seen = self._scopes.get(key)
        if seen is None or seen.lineage != lineage:
            self._drop(key)
            return SeenScope(key, lineage, stamp)
        self._scopes.move_to_end(key)
        return SeenScope(key, lineage, stamp, seen.items)

    async def keep(self, opened: SeenScope, became: Mapping[str, bytes | None]) -> None:
        """Add what became of items that were new when the scope was opened, unless the scope has changed since."""
        lineage = await self._lineage(opened.key)
        if opened.stamp != self._changes or (opened.lineage is not None and lineage != opened.lineage):
            return
        seen = self._scopes.get(opened.key)
        if seen is None or seen.lineage != lineage:
            # The first handles create the scope: items from before it had no handles, so they stay valid. Items of a
            # scope that only made room for others are of this lineage.
            items = dict(opened.items)
            self._drop(opened.key)
            seen = SeenScope(opened.key, lineage, opened.stamp, items)
            seen.size += sum(map(_size_of, items.values()))
            self._scopes[opened.key] = seen
            self.size += seen.size
        for digest, item in became.items():
            # Items with handles need a scope: without one, nothing announces that the handles have ended.
            if digest in seen.items or _size_of(item) > _LARGEST or (lineage is None and item is not None):
                continue
            seen.items[digest] = item
            seen.size += _size_of(item)
            self.size += _size_of(item)
        self._scopes.move_to_end(opened.key)
        while self.size > self.budget and self._scopes:
            self._drop(next(iter(self._scopes)))

    async def _lineage(self, key: tuple[str, str]) -> Lineage | None:
        state = await read_state(self.database, *key, self.now())
        return None if state is None else state.lineage

    def _drop(self, key: tuple[str, str]) -> None:
        seen = self._scopes.pop(key, None)
        if seen is not None:
            self.size -= seen.size


def _size_of(item: bytes | None) -> int:
    return _PER_ITEM + len(item or b"")
