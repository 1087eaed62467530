"""What a door tells about a text of an answer, and what may change it while it streams."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

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
