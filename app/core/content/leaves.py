"""Values and leaves: the strings of a context that can be scanned and rewritten, and where they are."""

from dataclasses import dataclass
from enum import StrEnum

from app.core.content.shapes.encodings import TextCodec


class LeafPlace(StrEnum):
    """The kind of place of a leaf in its item."""

    TEXT = "text"
    TOOL_INPUT = "tool_input"
    TOOL_RESULT = "tool_result"
    STRUCTURED = "structured"
    RESOURCE = "resource"
    URI = "uri"
    KEY = "key"
    NUMBER = "number"
    FIELD = "field"
    DEFINITION = "definition"
    USER = "user"


REPORTED_PLACES = frozenset({LeafPlace.URI, LeafPlace.KEY, LeafPlace.NUMBER, LeafPlace.FIELD})
"""Places that are scanned and reported, but changed only if an option allows it."""


@dataclass(frozen=True, slots=True, eq=False)
class ContextValue:
    """One string value (or number) of an item and its path in the context; compared by identity.

    ``encoding`` is ``base64`` for a blob whose decoded text is edited (``codec`` encodes it again), ``number`` for a
    number that an edit turns into a string, ``name`` for the name of the member at ``path``, and otherwise ``text``.
    """

    path: tuple[str | int, ...]
    text: str
    encoding: str = "text"
    codec: TextCodec | None = None

    @property
    def is_plain_text(self) -> bool:
        """Return whether text may be added here."""
        return self.encoding == "text"


@dataclass(frozen=True, slots=True)
class LiteralOffsets:
    """The offsets of a decoded JSON string's characters in the enclosing text.

    ``begin`` is the offset after the opening quote. ``table`` has one raw offset per decoded character and one
    for the end, or is None if nothing is escaped.
    """

    begin: int
    table: tuple[int, ...] | None

    def raw(self, position: int) -> int:
        """Return the raw offset of decoded character ``position``."""
        return self.begin + (position if self.table is None else self.table[position])


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One string that is scanned.

    ``pointer`` is its JSON pointer in the context; the part after ``#`` points into JSON inside that string.
    ``depth`` counts the JSON string literals around it (0: the text itself). ``tool`` is the name of the tool of a
    tool_use. Compared by identity.
    """

    value: ContextValue
    text: str
    pointer: str
    place: LeafPlace
    role: str | None = None
    tool: str | None = None
    depth: int = 0
    offsets: tuple[LiteralOffsets, ...] = ()

    @property
    def is_member_name(self) -> bool:
        """Return whether this is the name of a member of data, which an edit can change."""
        return self.place is LeafPlace.KEY and (self.value.encoding == "name" or self.depth > 0)

    @property
    def scannable(self) -> str:
        """Return the text with lone surrogates (only possible inside JSON strings) replaced, same length."""
        if not self.depth or self.text.isascii():
            return self.text
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in self.text)

    def raw_range(self, start: int, end: int) -> tuple[int, int]:
        """Return the offsets of ``text[start:end]`` in the value's text."""
        for literal in reversed(self.offsets):
            start, end = literal.raw(start), literal.raw(end)
        return start, end
