"""The vault as one request through the gateway sees it: what it may keep, restore and must not let out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from app.core.access import Caller, Role
from app.core.content.handles import LITERAL, Handle, Original, find_handles
from app.core.contracts.policy import SecretPolicy
from app.engines.originals import OriginalMatch
from app.services.gateway.opened_scopes import MAX_ORIGINALS, OpenedScope, OpenedScopes, full
from app.services.gateway.scopes import STABLE_OWNER, ConversationScope
from app.services.gateway.settled_items import SettledItems
from app.services.vault.vault import VaultReceipt, VaultService, VaultWrite
from app.store.vault.numbering import EPOCH_STRIDE, STABLE_ORDINALS

Place = tuple[str, int]


@dataclass(slots=True)
class RequestVault:
    """Stands in for ``VaultService`` while one request is served; made by ``RequestVaults``.

    Runs over ``system`` and ``tools`` with the stable scope come before those over the messages, and ``share_opening``
    between them: handles of the stable scope are known in the messages if they stand for something in ``system`` or
    ``tools``, and messages that hold the same get the same handles.
    """

    vault: VaultService
    scopes: OpenedScopes
    caller: Caller
    scope: ConversationScope
    texts: Callable[[], Sequence[str]]
    secrets: SecretPolicy
    now: Callable[[], datetime]
    _opened: dict[str, OpenedScope] = field(default_factory=dict)
    _visible: set[Place] = field(default_factory=set)
    shared: frozenset[Place] = frozenset()
    """Handles of the stable scope that messages get, too."""
    _whole: str | None = None
    _firsts: dict[Place, int] = field(default_factory=dict)

    async def begin(self) -> None:
        """Open the scopes as they are now."""
        self._visible = {_place(handle) for handle in self.scope.handles}
        for name in filter(None, (self.scope.name, self.scope.stable)):
            await self._open(name)

    @property
    def handles(self) -> list[Handle]:
        """Return the handles whose originals this conversation has met, without tags, in order."""
        return [Handle(*place) for place in sorted(self._visible)]

    async def commit(self, caller: Caller, write: VaultWrite) -> VaultReceipt:
        """See ``VaultService.commit``; raises ScopeFullError if the scope takes no new originals."""
        name = write.scope
        if name is None or name not in {self.scope.name, self.scope.stable}:
            return await self.vault.commit(caller, write)
        if name == self.scope.stable:
            return await self._commit(caller, name, replace(write, owner=STABLE_OWNER, above=STABLE_ORDINALS))
        write = replace(write, owner=self.scope.owner)
        shared = self._shared_handles(write)
        if not any(shared):
            return await self._commit(caller, name, write)

        def whole(receipt: VaultReceipt) -> VaultReceipt:
            own = iter(receipt.handles)
            return VaultReceipt(receipt.scope, [handle or next(own) for handle in shared])

        originals = [original for original, handle in zip(write.originals, shared, strict=True) if not handle]
        events = write.events
        write = replace(write, originals=originals, events=lambda receipt: events(whole(receipt)))
        return whole(await self._commit(caller, name, write))

    async def _commit(self, caller: Caller, name: str, write: VaultWrite) -> VaultReceipt:
        opened = self._opened.get(name)
        if opened is not None:
            _check_room(opened, write)
        receipt = await self.vault.commit(caller, write)
        if write.originals:
            self._visible.update(_place(handle) for handle in receipt.handles)
            if opened is None:
                await self._open(name)
            else:
                originals = [original for _, original in write.originals]
                opened.store(list(zip(receipt.handles, originals, strict=True)))
        return receipt

    async def read(self, caller: Caller, scope: str, handles: Iterable[Handle]) -> dict[Handle, Original]:
        """See ``VaultService.read``; only what this request may see."""
        if scope not in {self.scope.name, self.scope.stable}:
            return await self.vault.read(caller, scope, handles)
        originals = {handle: self.original(handle) for handle in handles}
        return {handle: original for handle, original in originals.items() if original is not None}

    async def known(self, caller: Caller, scope: str, handles: Iterable[Handle]) -> set[Handle]:
        """Return those of ``handles`` in the request's texts that are handles of this conversation, and no literals.

        In a derived scope these are the ones whose original stands in the texts before them, so that what a prefix of
        a conversation becomes depends on nothing behind it.
        """
        if scope not in {self.scope.name, self.scope.stable}:
            return await self.vault.known(caller, scope, handles)
        kept = {handle for handle in handles if self._is_known(handle)}
        self._visible.update(_place(handle) for handle in kept)
        return kept

    def forget_texts(self) -> None:
        """Let the request's texts go: it has left, and nothing asks ``known`` any more."""
        self.texts, self._whole = tuple, None
        self._firsts.clear()

    def resolve(self, handle: Handle) -> Original | None:
        """Return the original to put in place of ``handle`` in an answer, or None."""
        if Role.RESTORER not in self.caller.roles or not self.secrets.restorable((handle,), self.caller):
            return None
        return self.original(handle)

    def original(self, handle: Handle) -> Original | None:
        """Return what ``handle`` stands for in this request, to compare texts of it; to be shown, see ``resolve``."""
        name = self.scope.stable if _is_stable(handle) and self.scope.stable else self.scope.name
        opened = self._opened.get(name)
        if opened is None or not opened.usable(self.now()):
            return None
        restricted = self.scope.derived or name == self.scope.stable
        if restricted and _place(handle) not in self._visible:
            return None
        return opened.get(handle)

    def find_originals(self, text: str) -> list[OriginalMatch]:
        """Return where live originals of the conversation, or of the stable scope, stand in ``text``."""
        matches: list[OriginalMatch] = []
        for opened in self._opened.values():
            if opened.usable(self.now()):
                matches += opened.finder.find(text)
        matches.sort(key=lambda match: (match.start, -match.end, _place(match.handle) not in self.shared))
        chosen: list[OriginalMatch] = []
        for match in matches:
            if not chosen or match.start >= chosen[-1].end:
                chosen.append(match)
        return chosen

    def share_opening(self) -> None:
        """Let messages that hold what ``system`` and ``tools`` hold get the same handles."""
        self.shared = frozenset(
            place for place in self._visible if _is_stable(Handle(*place)) and place[0] != LITERAL
        )

    def meet(self, handle: Handle) -> None:
        """Note that the request holds the original of ``handle``."""
        self._visible.add(_place(handle))

    def settled(self, scope: str) -> SettledItems | None:
        """Return what became of messages that this scope has seen; None without a live scope of that name."""
        opened = self._opened.get(scope)
        return opened.settled if opened is not None and opened.usable(self.now()) else None

    def count_changed(self, before: Sequence[str], after: Sequence[str]) -> int:
        """Return how many texts went out in another form in an earlier turn, as far as this process remembers.

        ``before`` and ``after``: the texts as they came and as they leave, in the same order.
        """
        return self.scopes.forms_changed(f"{self.caller.tenant}\0{self.scope.name}", before, after)

    def _shared_handles(self, write: VaultWrite) -> list[Handle | None]:
        """Return the handle that each original has in ``system`` or ``tools``, or None."""
        opened = self._opened.get(self.scope.stable or "")
        if not self.shared or opened is None or not opened.usable(self.now()):
            return [None] * len(write.originals)
        handles: dict[tuple[str, bytes], Handle] = {}
        for label, ordinal in self.shared:
            original = opened.originals.get((label, ordinal))
            if original is not None:
                handles[label, original.encode()] = opened.handle(label, ordinal, tagged=write.options.tagged)
        return [handles.get((label, original.encode())) for label, original in write.originals]

    async def _open(self, name: str) -> None:
        stable = name == self.scope.stable
        identity = STABLE_OWNER if stable else self.vault.identity(self.caller)
        opened = await self.scopes.open(self.caller.tenant, name, identity)
        if opened is not None:
            self._opened[name] = opened

    def _is_known(self, handle: Handle) -> bool:
        met = any(_place(handle) == _place(other) for other in self.scope.handles)
        if met or not self.scope.derived:
            return self.original(handle) is not None
        stable = self.scope.stable if _is_stable(handle) else None
        opened = self._opened.get(stable or self.scope.name)
        if opened is None or not opened.usable(self.now()) or _place(handle) in opened.literals:
            return False
        original = opened.get(handle)
        return original is not None and self._stands_before(original.text, handle)

    def _stands_before(self, text: str, handle: Handle) -> bool:
        if self._whole is None:
            self._whole = "\0".join(self.texts())
            for match in find_handles(self._whole):
                self._firsts.setdefault(_place(match.handle), match.start)
        place = self._whole.find(text)
        return 0 <= place < self._firsts.get(_place(handle), 0)


@dataclass(frozen=True, slots=True)
class RequestVaults:
    """Opens the vault for one request at a time."""

    vault: VaultService
    scopes: OpenedScopes
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def open(
        self,
        caller: Caller,
        scope: ConversationScope,
        texts: Callable[[], Sequence[str]],
        secrets: SecretPolicy,
    ) -> RequestVault:
        """Return the vault for a request; ``texts`` reads its texts, in the order of the body, if that is needed."""
        opened = RequestVault(self.vault, self.scopes, caller, scope, texts, secrets, self.now)
        await opened.begin()
        return opened


def _place(handle: Handle) -> Place:
    return handle.label, handle.ordinal


def _is_stable(handle: Handle) -> bool:
    """Return whether the ordinal is one of a stable scope."""
    return (handle.ordinal - 1) % EPOCH_STRIDE >= STABLE_ORDINALS


def _check_room(opened: OpenedScope, write: VaultWrite) -> None:
    if len(opened.originals) + len(write.originals) <= MAX_ORIGINALS:
        return
    texts = {(place[0], original.encode()) for place, original in opened.originals.items()}
    new = {(label, original.encode()) for label, original in write.originals} - texts
    if new and len(opened.originals) + len(new) > MAX_ORIGINALS:
        raise full()
