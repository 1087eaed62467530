"""Restore a text that arrives in chunks; recorded before the first original is sent."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.core.access import Role
from app.core.audit import OUTCOME_OK
from app.core.content.handles import HANDLES_LEFT, Handle, Original, StreamScanner, count_handles
from app.core.contracts.policy import SecretPolicy
from app.middlewares.pii_restoration import PiiRestorationArguments, given_originals
from app.services.invoke.calls import MiddlewareCall
from app.services.vault.vault import VaultService


async def restored_stream(
    call: MiddlewareCall,
    vault: VaultService,
    arguments: PiiRestorationArguments,
    secrets: SecretPolicy,
    chunks: AsyncIterator[str],
    on_end: Callable[[Mapping[str, int]], None],
) -> AsyncIterator[str]:
    """Yield the restored text of ``chunks``; what is not decided yet waits (see ``StreamScanner``).

    An event is recorded at the start, before any original is sent, and one with the counts at the end. ``on_end`` is
    told the metadata that the same text has in a call of the middleware.
    """
    given_by_caller = given_originals(arguments)
    call.caller.require(Role.INVOKER if arguments.scope is None else Role.RESTORER)
    call.details = {"stage": "started"}
    await call.audit.record(call.event(OUTCOME_OK, scope=arguments.scope))
    originals = _Originals(call, vault, arguments, secrets, given_by_caller)
    scanner = StreamScanner(exact=arguments.exact, positions=arguments.positions == "safe")
    try:
        async for chunk in chunks:
            originals.count_seen(chunk)
            if text := await originals.render(scanner.feed(chunk)):
                yield text
        if text := await originals.render(scanner.finish()):
            yield text
        on_end(originals.metadata())
    finally:
        call.counts = {
            "restored": originals.restored,
            "unresolved": originals.unresolved,
            "withheld": originals.withheld,
        }
        call.details = {"stage": "ended"}
        await call.audit.record(call.event(OUTCOME_OK, scope=arguments.scope))


@dataclass(slots=True)
class _Originals:
    call: MiddlewareCall
    vault: VaultService
    arguments: PiiRestorationArguments
    secrets: SecretPolicy
    from_caller: Mapping[Handle, str]
    read: dict[Handle, Original | None] = field(default_factory=dict)
    restored: int = 0
    unresolved: int = 0
    """Handles that stay, with those that are ``withheld`` because of their position."""
    withheld: int = 0
    left: int = 0
    """Texts like a handle in originals that were put in."""
    seen: int = 0
    """Texts like a handle in the given text, in any spelling; counted only where ``exact`` leaves some of them."""
    any_spelling: StreamScanner = field(default_factory=StreamScanner)

    def count_seen(self, chunk: str, *, ends: bool = False) -> None:
        """Count what looks like a handle, across chunks."""
        if self.arguments.exact:
            pieces = self.any_spelling.finish() if ends else self.any_spelling.feed(chunk)
            self.seen += sum(1 for _, handle, _ in pieces if handle is not None)

    def metadata(self) -> dict[str, int]:
        """Return the metadata of the whole restoration."""
        self.count_seen("", ends=True)
        spelled_otherwise = self.seen - self.restored - self.unresolved if self.arguments.exact else 0
        left = spelled_otherwise + self.unresolved + self.left
        return {
            "unresolved": self.unresolved,
            **({"withheld": self.withheld} if self.withheld else {}),
            **({HANDLES_LEFT: left} if left else {}),
        }

    async def render(self, pieces: Sequence[tuple[str, Handle | None, bool]]) -> str:
        """Return the text of ``pieces`` with originals in place; each handle is read from the vault once."""
        if self.arguments.scope is not None:
            new = {handle for _, handle, active in pieces if handle is not None and not active}
            new -= self.read.keys() | self.from_caller.keys()
            if new:
                allowed = self.secrets.restorable(new, self.call.caller)
                originals = await self.vault.read(self.call.caller, self.arguments.scope, allowed)
                self.read.update({handle: originals.get(handle) for handle in new})
        return "".join(
            text if handle is None else self._restored(text, handle, active)
            for text, handle, active in pieces
        )

    def _restored(self, text: str, handle: Handle, active: bool) -> str:
        if active:
            self.withheld += 1
            original: Any = None
        elif handle in self.from_caller:
            original = Original(self.from_caller[handle])
        else:
            original = self.read.get(handle)
        if original is None:
            self.unresolved += 1
            return text
        self.restored += 1
        written = str(original.at(0))
        self.left += count_handles(written)
        return written
