"""Keep the opened originals of scopes in memory while conversations use them; nothing of it is ever stored."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from app.core.content.handles import LITERAL, Handle, Original, find_handles
from app.core.errors import TooLargeError
from app.core.events import Changed
from app.core.offload import off_loop
from app.engines.cipher import ScopeKeys
from app.engines.originals import OriginalFinder
from app.services.gateway.settled_items import SettledItems
from app.services.vault.erasure import VAULT_CHANGED
from app.services.vault.opening import EntryOpener, tag_matches
from app.store.changes import EVERYTHING
from app.store.database import Database
from app.store.vault.conversations import ScopeState, find_state, list_newer, read_state
from app.store.vault.vault import SealedEntry

MAX_ORIGINALS: Final = 50_000
"""A scope with this many originals takes no new ones through the gateway."""
BUDGET_BYTES: Final = 64 * 2**20
"""About how many bytes of opened originals a process keeps."""
_PER_ORIGINAL: Final = 400
_ATTEMPTS: Final = 3
_FORMS_KEPT: Final = 100_000

Place = tuple[str, int]


class ScopeFullError(TooLargeError):
    """A scope has as many originals as the gateway looks for in each request."""


@dataclass(slots=True)
class OpenedScope:
    """The live originals of one scope, opened; ``gone``: some were erased, so nothing of it may be used."""

    tenant: str
    name: str
    state: ScopeState
    keys: ScopeKeys | None = None
    originals: dict[Place, Original] = field(default_factory=dict)
    literals: set[Place] = field(default_factory=set)
    """Handles that the conversation meant literally, before they had a meaning."""
    finder: OriginalFinder = field(default_factory=OriginalFinder)
    settled: SettledItems = field(default_factory=SettledItems)
    gone: bool = False
    _bytes: int = 0

    @property
    def size(self) -> int:
        """Return about how many bytes it takes."""
        return self._bytes + self.finder.size + self.settled.size

    def usable(self, now: datetime) -> bool:
        """Return whether its originals may still be given out."""
        return not self.gone and (self.state.expires is None or self.state.expires > now)

    def get(self, handle: Handle) -> Original | None:
        """Return the original of ``handle``, if its tag is right."""
        original = self.originals.get((handle.label, handle.ordinal))
        if original is None or handle.tag is None:
            return original
        if self.keys is None or not tag_matches(handle, self.keys, original.encode()):
            return None
        return original

    def handle(self, label: str, ordinal: int, *, tagged: bool) -> Handle:
        """Return the handle of an original that is opened here, with its tag where requested."""
        if self.keys is None or not tagged:
            return Handle(label, ordinal)
        return self.keys.handle(label, ordinal, self.originals[label, ordinal].encode(), tagged=True)

    def store(self, originals: Sequence[tuple[Handle, Original]]) -> None:
        """Add originals that were just stored; what lies between them and those opened before is read later."""
        self.add(originals)
        if self.keys is None:
            return
        counters = dict(self.state.counters)
        for label, ordinal in sorted((handle.label, handle.ordinal) for handle, _ in originals):
            if ordinal == counters.get(label, 0) + 1:
                counters[label] = ordinal
        self.state = replace(self.state, counters=counters)

    def add(self, originals: Iterable[tuple[Handle, Original]]) -> None:
        """Add originals; those of a place that is taken stay."""
        added: list[tuple[Handle, Original]] = []
        for handle, original in originals:
            place = handle.label, handle.ordinal
            if place in self.originals:
                continue
            self.originals[place] = original
            self._bytes += _PER_ORIGINAL + 2 * len(original.text)
            if handle.label == LITERAL:
                self.literals.update(
                    (match.handle.label, match.handle.ordinal) for match in find_handles(original.text)
                )
            added.append((handle, original))
        self.finder.add(added)


@dataclass(slots=True)
class OpenedScopes:
    """The scopes that this process has opened, the least recently used of them dropped first.

    ``hear`` must get every change (``store.changes``): erasures and changed expiries drop what is kept.
    """

    database: Database
    opener: EntryOpener
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    budget: int = BUDGET_BYTES
    _scopes: "OrderedDict[tuple[str, str], OpenedScope]" = field(default_factory=OrderedDict)
    _changes: int = 0
    _forms: "OrderedDict[int, int]" = field(default_factory=OrderedDict)
    _sizes: dict[tuple[str, str], int] = field(default_factory=dict)
    size: int = 0
    """About how many bytes all opened scopes take."""

    def hear(self, changed: Changed) -> None:
        """Drop what a change concerns."""
        if changed.kind not in {VAULT_CHANGED, EVERYTHING}:
            return
        self._changes += 1
        for key, opened in list(self._scopes.items()):
            if changed.tenant in {None, opened.tenant} and changed.name in {None, opened.name}:
                opened.gone = True
                self._drop(key)

    async def open(self, tenant: str, name: str, identity: str) -> OpenedScope | None:
        """Return the scope as the database has it now; None where ``identity`` has no such live scope.

        Raises ScopeFullError if it has far more originals than the gateway takes.
        """
        opened: OpenedScope | None = None
        for _ in range(_ATTEMPTS):
            stamp, cached = self._changes, self._scopes.get((tenant, name))
            opened = await self._refreshed(tenant, name, cached)
            if opened is None:
                self._drop((tenant, name))
                return None
            if stamp == self._changes:
                self._keep(opened)
                break
        return opened if opened is not None and opened.state.owner in {None, identity} else None

    def forms_changed(self, scope: str, before: Iterable[str], after: Iterable[str]) -> int:
        """Note in which form texts go out; return how many went out in another form before, as far as is remembered.

        Only digests of this process are kept, never a text.
        """
        changed = 0
        for text, form in zip(before, after, strict=True):
            key, value = hash((scope, text)), hash(form)
            changed += self._forms.get(key, value) != value
            self._forms[key] = value
            self._forms.move_to_end(key)
        while len(self._forms) > _FORMS_KEPT:
            self._forms.popitem(last=False)
        return changed

    async def _refreshed(self, tenant: str, name: str, cached: OpenedScope | None) -> OpenedScope | None:
        now = self.now()
        if cached is not None and not cached.gone:
            state = await read_state(self.database, tenant, name, now)
            if state is None:
                return None
            if state.lineage == cached.state.lineage and not _behind(cached.state, state):
                cached.state = state
                return cached
        async with self.database.transaction(tenant, write=False) as tx:
            state = await find_state(tx, tenant, name, now)
            if state is None:
                return None
            opened = cached
            if opened is None or opened.gone or opened.state.lineage != state.lineage:
                opened = OpenedScope(tenant, name, state)
                labels = dict.fromkeys(state.counters, 0)
            else:
                labels = _behind(opened.state, state)
            limit = MAX_ORIGINALS + 1
            newer = await list_newer(tx, tenant, name, labels, now, limit=limit) if labels else []
        if len(newer) >= limit:
            raise full()
        # Only what no other request uses yet may be filled in a thread.
        await off_loop(0 if opened is cached else 100 * len(newer), self._add, opened, newer)
        opened.state = state
        return opened

    def _add(self, opened: OpenedScope, entries: Iterable[SealedEntry]) -> None:
        added: list[tuple[Handle, Original]] = []
        for sealed in entries:
            opened.keys = keys = self.opener.keys(opened.tenant, opened.name, sealed)
            if (sealed.label, sealed.ordinal) in opened.originals:
                continue
            payload = self.opener.payload(keys, sealed)
            if payload is not None:
                added.append((Handle(sealed.label, sealed.ordinal), Original.decode(payload)))
        opened.add(added)

    def _keep(self, opened: OpenedScope) -> None:
        key = opened.tenant, opened.name
        self._drop(key)
        self._scopes[key], self._sizes[key] = opened, opened.size
        self.size += opened.size
        while self.size > self.budget and self._scopes:
            self._drop(next(iter(self._scopes)))

    def _drop(self, key: tuple[str, str]) -> None:
        if self._scopes.pop(key, None) is not None:
            self.size -= self._sizes.pop(key)


def _behind(opened: ScopeState, stored: ScopeState) -> dict[str, int]:
    """Return the labels with stored originals that are not opened yet, each with its last opened ordinal."""
    return {
        label: opened.counters.get(label, 0)
        for label, last in stored.counters.items()
        if last > opened.counters.get(label, 0)
    }


def full() -> ScopeFullError:
    """Return the error for a scope that takes no more originals."""
    return ScopeFullError(
        f"This conversation's scope has {MAX_ORIGINALS} originals and takes no new ones through the gateway: "
        "begin another conversation, or name another scope.",
        details={"limit": "originals", "maximum": MAX_ORIGINALS},
    )
