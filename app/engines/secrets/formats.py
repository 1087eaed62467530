"""Formats of credentials, and the small notation in which they are written.

``ghp_{w36}`` is the text ``ghp_`` and 36 letters or digits; ``{b20-40}`` is 20 to 40 characters of base64url; ``{g}``
is a UUID. One line yields the RE2 pattern, the keyword of the gate, and examples, so that no file contains an example
of a key.
"""

import random
import re
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

_DIGITS, _LOWER, _UPPER = string.digits, string.ascii_lowercase, string.ascii_uppercase
ALPHABETS: Final[dict[str, tuple[str, str]]] = {
    "w": (_DIGITS + _UPPER + _LOWER, "A-Za-z0-9"),
    "b": (_DIGITS + _UPPER + _LOWER + "_-", r"A-Za-z0-9_\-"),
    "s": (_DIGITS + _UPPER + _LOWER + "+/", "A-Za-z0-9+/"),
    "x": (_DIGITS + "abcdef", "a-f0-9"),
    "h": (_DIGITS + "ABCDEFabcdef", "A-Fa-f0-9"),
    "u": (_DIGITS + _UPPER, "A-Z0-9"),
    "l": (_DIGITS + _LOWER, "a-z0-9"),
    "a": (_UPPER + _LOWER, "A-Za-z"),
    "i": (_DIGITS + _UPPER + _LOWER + "_", "A-Za-z0-9_"),
    "o": (_DIGITS + _UPPER + _LOWER + "_-.", r"A-Za-z0-9_.\-"),
    "d": (_DIGITS, "0-9"),
    "t": (_UPPER + "234567", "A-Z2-7"),
}
"""Letters of the notation: the characters, and the same as an RE2 class."""

_UUID: Final = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_UUID_LENGTH: Final = 36
_FIELD: Final = re.compile(r"\{(?:(g)|([a-z])(\d+)(?:-(\d+))?)\}")
NAME_REACH: Final = 70
"""Longest distance from a name to the beginning of its value."""
_HEXADECIMAL: Final = 16
PREFIX_ENDS: Final = "_-."
_ORDINARY: Final = frozenset(
    [
        "secret",
        "live",
        "api",
        "web",
        "key",
        "sdk",
        "test",
        "private",
        "mint",
        "app",
        "sess",
        "access",
        "token",
        "cal",
        "re",
        "sk",
        "pk",
        "cs",
        "ck",
        "pa",
        "fc",
        "b",
        "s",
        "v1.0",
        "t1",
        "as",
        "y0",
        "cu",
        "https",
        "sl",
        "sm",
        "2",
    ]
)
"""Prefixes that begin names of other things, too."""
_TOO_SHORT: Final = 12


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a template: literal text, or ``least`` to ``most`` characters of an alphabet (``g``: a UUID)."""

    literal: str = ""
    alphabet: str = ""
    least: int = 0
    most: int = 0

    def pattern(self) -> str:
        """Return the RE2 pattern of this part."""
        if self.literal:
            return re.escape(self.literal)
        if self.alphabet == "g":
            return _UUID
        # The window of a search bounds the length; with an upper limit RE2 would expand every optional character.
        size = f"{self.least}" if self.least == self.most else f"{self.least},"
        return f"[{ALPHABETS[self.alphabet][1]}]{{{size}}}"

    def example(self, draw: random.Random) -> str:
        """Return a random text that matches this part."""
        if self.literal:
            return self.literal
        if self.alphabet == "g":
            return str(uuid.UUID(int=draw.getrandbits(128), version=4))
        return "".join(draw.choices(ALPHABETS[self.alphabet][0], k=draw.randint(self.least, self.most)))


def read_template(template: str) -> tuple[Piece, ...]:
    """Return the parts of a template."""
    pieces: list[Piece] = []
    position = 0
    for field in _FIELD.finditer(template):
        if field.start() > position:
            pieces.append(Piece(template[position : field.start()]))
        if field[1]:
            pieces.append(Piece(alphabet="g", least=_UUID_LENGTH, most=_UUID_LENGTH))
        else:
            pieces.append(Piece("", field[2], int(field[3]), int(field[4] or field[3])))
        position = field.end()
    if position < len(template):
        pieces.append(Piece(template[position:]))
    return tuple(pieces)


@dataclass(frozen=True)
class SecretFormat:
    """One format of one provider.

    With ``name`` (``datadog``), only the name to which a value is assigned identifies it; otherwise the template
    contains a text that no other format has: ``keyword``, by default its longest literal part. ``check`` verifies a
    format's own checksum, which decides the score, not whether there is a finding: a mistyped key is one, too.
    """

    provider: str
    template: str
    name: str = ""
    keyword: str = ""
    check: Callable[[str], bool] | None = None
    sign: Callable[[str], str] | None = None
    """Sets the right checksum in an example."""

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Return the template's parts."""
        return read_template(self.template)

    @property
    def label(self) -> str:
        """Return the label of its findings."""
        return f"SECRET_{self.provider.upper()}"

    @cached_property
    def gate(self) -> str:
        """Return the lower-case text that must occur before this format is searched for."""
        literals = [piece.literal for piece in self.pieces if piece.literal]
        return (self.name or self.keyword or max(literals, key=len)).lower()

    @cached_property
    def literal(self) -> bytes:
        """Return the keyword as the format spells it."""
        texts = (piece.literal for piece in self.pieces)
        places = ((text, text.lower().find(self.gate)) for text in texts)
        return next((text[at : at + len(self.gate)] for text, at in places if at >= 0), "").encode()

    @cached_property
    def before(self) -> int:
        """Return how many characters of the format may precede its keyword."""
        if self.name:
            return 0
        total = 0
        for piece in self.pieces:
            at = piece.literal.lower().find(self.gate) if piece.literal else -1
            if at >= 0:
                return total + at
            total += len(piece.literal) or piece.most
        raise ValueError(f"no part of {self.template!r} holds its keyword")

    @cached_property
    def prefix(self) -> str:
        """Return the prefix by which keys of this format are known at any length, empty without one."""
        first = self.pieces[0].literal
        if self.name or len(self.pieces) == 1 or first[-1:] not in tuple(PREFIX_ENDS) or "/" in first:
            return ""
        ordinary = first.rstrip(PREFIX_ENDS).lower() in _ORDINARY or not any(map(str.isalpha, first))
        return "" if ordinary or self.pieces[1].alphabet == "g" else first

    @cached_property
    def reach(self) -> int:
        """Return the longest distance from the beginning of its keyword to its end."""
        return sum(len(piece.literal) or piece.most for piece in self.pieces)

    @cached_property
    def pattern(self) -> str:
        """Return the RE2 pattern of the secret."""
        return "".join(piece.pattern() for piece in self.pieces)

    @cached_property
    def random_part(self) -> tuple[int, int]:
        """Return how many characters at the beginning and the end are literal and thus not random."""
        first, last = self.pieces[0].literal, self.pieces[-1].literal
        return len(first), len(last) if len(self.pieces) > 1 else 0

    @cached_property
    def variety(self) -> int:
        """Return the size of the alphabet of its longest part."""
        longest = max(self.pieces, key=lambda piece: piece.most)
        return _HEXADECIMAL if longest.alphabet == "g" else len(ALPHABETS[longest.alphabet][0])

    def example(self, draw: random.Random) -> str:
        """Return a secret of this format."""
        made = "".join(piece.example(draw) for piece in self.pieces)
        return self.sign(made) if self.sign is not None else made

    def in_context(self, secret: str) -> str:
        """Return ``secret`` in a typical context: after its name, where the format needs one."""
        return (
            f'{self.name.upper().replace(" ", "_")}_API_KEY="{secret}"' if self.name else f"use {secret} now"
        )

    def near_misses(self, draw: random.Random) -> Iterator[str]:
        """Yield texts that resemble this format but do not match: too short, glued to a word, or without variety."""
        whole = self.example(draw)
        fixed = [number for number, piece in enumerate(self.pieces) if piece.alphabet not in ("", "g")]
        if self.prefix:
            yield self.in_context(whole[: len(self.prefix) + _TOO_SHORT])
        elif fixed:
            parts = [piece.example(draw) for piece in self.pieces]
            last = fixed[-1]
            parts[last] = parts[last][: self.pieces[last].least - 1]
            yield self.in_context("".join(parts))
        yield self.in_context(whole.replace(whole[len(whole) // 2 :], "x" * (len(whole) - len(whole) // 2)))
        if not self.name:
            yield f"Q7{whole}"
