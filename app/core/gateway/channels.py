"""Describe a text of an answer to what may change it while it streams."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

Path = tuple[str | int, ...]


class ChannelKind(StrEnum):
    """What a text of an answer is."""

    TEXT = "text"
    REFUSAL = "refusal"
    REASONING = "reasoning"
    ARGUMENTS = "arguments"
    TOOL_RESULT = "tool_result"
    CITATION = "citation"
    ECHO = "echo"
    """The provider repeats what the request said: instructions, tools, metadata."""
    OTHER = "other"


class ToolRunner(StrEnum):
    """Who runs a tool: the caller's program or the provider."""

    CLIENT = "client"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class TextChannel:
    """One text of an answer, whole or in parts.

    ``path`` is its place in the whole answer, also while it streams. ``tool`` and ``runner`` are set inside of tool
    calls. ``inner`` is the JSON pointer of a string inside of JSON arguments; each such string is a channel of its
    own. ``address``: the text is a URL. ``run`` names the texts that a host shows one after the other, such as those
    of one choice.
    """

    path: Path
    kind: ChannelKind
    tool: str | None = None
    runner: ToolRunner | None = None
    inner: str | None = None
    address: bool = False
    run: str = ""


def index_in(value: Mapping[str, Any], name: str) -> int | None:
    """Return the index that an event names; None without one, or if it is no whole number."""
    index = value.get(name)
    return index if isinstance(index, int) and not isinstance(index, bool) else None


class TextPiece(NamedTuple):
    """A part of a channel's text and what it became."""

    source: str
    text: str


class ChannelText(Protocol):
    """Changes the text of one channel, which may arrive in parts; the sources of all pieces are that text."""

    def feed(self, text: str) -> Sequence[TextPiece]:
        """Return what of the text so far is complete."""
        ...

    def finish(self) -> Sequence[TextPiece]:
        """Return the rest, when the channel has ended."""
        ...


OpenChannel = Callable[[TextChannel], ChannelText | None]
"""Returns what changes a channel's text, or None if it passes as it is."""


@dataclass(slots=True)
class CollectedText:
    """One text of an answer as it went through its channel."""

    channel: TextChannel
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the whole text."""
        return "".join(self.parts)

    def feed(self, text: str) -> Sequence[TextPiece]:
        """Keep a part, and let it pass."""
        self.parts.append(text)
        return [TextPiece(text, text)]

    def finish(self) -> Sequence[TextPiece]:
        """Return nothing, since nothing is held back."""
        return ()


@dataclass(slots=True)
class CollectedTexts:
    """An ``OpenChannel`` that changes nothing and keeps every text."""

    texts: list[CollectedText] = field(default_factory=list)

    def __call__(self, channel: TextChannel) -> ChannelText:
        """Return what keeps the text of this channel."""
        self.texts.append(CollectedText(channel))
        return self.texts[-1]


TextPlace = tuple[Path, str | None, str]
"""A text of an answer: the path and the pointer of its channel, and the text itself."""


@dataclass(slots=True)
class RewrittenTexts:
    """An ``OpenChannel`` that puts whole texts in the place of others; each waits for its end."""

    texts: Mapping[TextPlace, str]
    _paths: frozenset[Path] = field(init=False)

    def __post_init__(self) -> None:
        """Note where a text changes; for a string inside of JSON, the text around it has a channel, too."""
        self._paths = frozenset(path for path, _, _ in self.texts)

    def __call__(self, channel: TextChannel) -> ChannelText | None:
        """Return what rewrites this channel."""
        return _RewrittenText(self.texts, channel) if channel.path in self._paths else None


@dataclass(slots=True)
class _RewrittenText:
    texts: Mapping[TextPlace, str]
    channel: TextChannel
    parts: list[str] = field(default_factory=list)

    def feed(self, text: str) -> Sequence[TextPiece]:
        self.parts.append(text)
        return ()

    def finish(self) -> Sequence[TextPiece]:
        text, self.parts = "".join(self.parts), []
        changed = self.texts.get((self.channel.path, self.channel.inner, text), text)
        return [TextPiece(text, changed)] if text else ()
