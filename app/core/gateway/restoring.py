"""Put originals in place of handles in the channels of an answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.core.content.handles import Handle, Original, StreamScanner
from app.core.content.positions import PositionReader
from app.core.gateway.channels import ChannelKind, ChannelText, TextChannel, TextPiece, ToolRunner


def allowed_by_default(channel: TextChannel, _handle: Handle) -> bool:
    """Return whether originals may go here: not to tools that the provider runs."""
    return channel.kind is not ChannelKind.ARGUMENTS or channel.runner is ToolRunner.CLIENT


@dataclass(slots=True)
class HandleRestoration:
    """An ``OpenChannel`` that restores handles; use one for each answer.

    ``resolve`` returns the original of a handle, or None: unknown, foreign and erased handles stay as they are.
    ``allows`` narrows that by channel and handle. With ``safe``, nothing is restored in addresses, hosts, mail domains,
    link targets, markup that acts and commands that send.
    """

    resolve: Callable[[Handle], Original | None]
    allows: Callable[[TextChannel, Handle], bool] = allowed_by_default
    exact: bool = False
    safe: bool = True
    restored: dict[str, int] = field(default_factory=dict)
    """How many originals were put in, by label."""
    restorations: int = 0
    unresolved: int = 0
    withheld: int = 0
    """How many handles stayed because of their place or their tool."""
    _runs: dict[str, PositionReader] = field(default_factory=dict)

    def __call__(self, channel: TextChannel) -> ChannelText | None:
        """Return what restores this channel."""
        if channel.address and self.safe:
            return None
        joined, is_first = None, channel.run not in self._runs
        if channel.run and self.safe:
            joined = self._runs.setdefault(channel.run, PositionReader())
        # The first text of a run needs one reader: what came before it is nothing.
        positions = self.safe and not (joined is not None and is_first)
        scanner = StreamScanner(exact=self.exact, positions=positions, joined=joined)
        return _RestoredText(self, channel, scanner)

    def original(self, channel: TextChannel, handle: Handle, *, active: bool) -> str | None:
        """Return what to write for a handle, or None, and count it."""
        if active or not self.allows(channel, handle):
            self.withheld += 1
            return None
        original = self.resolve(handle)
        if original is None:
            self.unresolved += 1
            return None
        self.restored[handle.label] = self.restored.get(handle.label, 0) + 1
        self.restorations += 1
        return original.at(0)


@dataclass(slots=True)
class _RestoredText:
    restoration: HandleRestoration
    channel: TextChannel
    scanner: StreamScanner

    def feed(self, text: str) -> Sequence[TextPiece]:
        return self._written(self.scanner.feed(text))

    def finish(self) -> Sequence[TextPiece]:
        return self._written(self.scanner.finish())

    def _written(self, parts: Sequence[tuple[str, Handle | None, bool]]) -> list[TextPiece]:
        pieces = []
        for text, handle, active in parts:
            original = (
                None if handle is None else self.restoration.original(self.channel, handle, active=active)
            )
            pieces.append(TextPiece(text, text if original is None else original))
        return pieces
