"""Handles: their grammar, the originals that they stand for, and restoration of whole or streamed texts."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from app.core.content.begun_calls import HeldPieces, Piece
from app.core.content.positions import RIGHT_CONTEXT, PositionReader
from app.core.content.secret_labels import SECRET_LABELS, SECRET_PREFIX

HANDLES_LEFT = "handlesLeft"
"""Member of the metadata of a restoration: how many texts like a handle its result still has."""

LITERAL = "LITERAL"
"""Label for text that looked like a handle before redaction."""

_PLAIN_LABELS = frozenset(
    {
        *(
            "PERSON",
            "SSN",
            "EMAIL",
            "PHONE",
            "CARD",
            "IBAN",
            "IP",
            "URL",
            "ADDRESS",
            "LOCATION",
            "ORGANIZATION",
        ),
        *(
            "DATE",
            "PASSPORT",
            "LICENSE",
            "BANK_ACCOUNT",
            "CRYPTO",
            "MEDICAL",
            "NHS",
            "SECRET",
            "CUSTOM",
            LITERAL,
        ),
    }
)
TOLERATED_LABELS = _PLAIN_LABELS | SECRET_LABELS
"""Labels whose handles are also recognised in spellings that models alter; others only in the exact spelling."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A placeholder for one original within one vault scope; ``str()`` gives ``[PERSON_1]``."""

    label: str
    ordinal: int
    tag: str | None = None

    @property
    def name(self) -> str:
        """Return the handle without brackets, the form used in metadata."""
        return f"{self.label}_{self.ordinal}" + (f"~{self.tag}" if self.tag else "")

    def __str__(self) -> str:
        return f"[{self.name}]"

    @classmethod
    def parse(cls, text: str) -> "Handle | None":
        """Return the handle spelled ``PERSON_1`` or ``[PERSON_1]``, or None."""
        bare = text if text.startswith("[") else f"[{text}]"
        match = _CANONICAL.fullmatch(bare)
        return cls(match[1], int(match[2]), match[3]) if match else None


@dataclass(frozen=True, slots=True)
class Original:
    r"""The original behind a handle.

    ``text`` is the value. If it came from JSON inside a string in an unusual spelling (``\u00e9`` for é),
    ``spelling`` keeps the characters as they were and ``depth`` the number of string literals around them, so that
    restoring is exact.
    """

    text: str
    spelling: str | None = None
    depth: int = 0

    def encode(self) -> bytes:
        """Return the bytes to seal and look up; they are equal exactly when every character is."""
        value = self.text.encode("utf-8", "surrogatepass")
        if self.spelling is None:
            return b"\0" + value
        raw = self.spelling.encode("utf-8", "surrogatepass")
        return b"\1" + self.depth.to_bytes(1) + len(value).to_bytes(4) + value + raw

    @classmethod
    def decode(cls, data: bytes) -> "Original":
        """Return the original that ``encode`` encoded."""
        if data[:1] == b"\0":
            return cls(data[1:].decode("utf-8", "surrogatepass"))
        size = int.from_bytes(data[2:6])
        value, raw = data[6 : 6 + size], data[6 + size :]
        return cls(value.decode("utf-8", "surrogatepass"), raw.decode("utf-8", "surrogatepass"), data[1])

    def at(self, depth: int) -> str:
        """Return the characters to write inside ``depth`` nested JSON string literals (0: plain text)."""
        if self.spelling is not None and self.depth == depth:
            return self.spelling
        text = self.text if depth else _SURROGATE.sub("\ufffd", self.text)
        return json_escaped(text, depth)


def json_escaped(text: str, depth: int) -> str:
    """Return ``text`` escaped for ``depth`` nested JSON string literals."""
    for _ in range(depth):
        text = json.dumps(text, ensure_ascii=False)[1:-1]
        text = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text


class HandleMatch(NamedTuple):
    """A handle found in a text: its offsets, the handle, and whether its spelling is exact."""

    start: int
    end: int
    handle: Handle
    exact: bool


_SURROGATE = re.compile("[\ud800-\udfff]")
_GAP = r"(?:\\?_| )"
_ORDINAL = r"[1-9][0-9]{0,8}"
_TAG = r"(?:~[a-z2-7]{4})?"
_EXACT_NAME = rf"([A-Z][A-Z0-9_]{{0,40}})_({_ORDINAL})(?:~([a-z2-7]{{4}}))?"
_SUFFIXES = sorted((label.removeprefix(SECRET_PREFIX) for label in SECRET_LABELS), key=len, reverse=True)
_SECRET_SUFFIX = f"(?:_(?:{'|'.join(_SUFFIXES)}))?"
"""Pattern of what may follow SECRET; one group after it keeps hundreds of labels as cheap as one."""
_LABEL = "|".join(
    label + (_SECRET_SUFFIX if label == "SECRET" else "")
    for label in sorted(_PLAIN_LABELS, key=len, reverse=True)
)
_CANONICAL = re.compile(rf"\[{_EXACT_NAME}\]")
_LOOSE_NAME = rf"[ `]{{0,2}}(?i:{_LABEL.replace('_', _GAP)}) ?(?:\\?_|-| ) ?{_ORDINAL}(?i:{_TAG})[ `]{{0,2}}"


def _bare_patterns() -> list[str]:
    """Return one pattern per first letter, for handles without brackets.

    The label is in capitals or begins with one: address_1 in code is no handle. The look-behind comes after the first
    letter so that every alternative of the whole pattern begins with a literal: the regex engine then skips to
    those characters instead of trying each position (ten times as fast on prose).
    """
    by_letter: dict[str, set[str]] = {}
    for label in _PLAIN_LABELS:
        endings = {label[1:], label.title()[1:]}
        if label == "SECRET":
            suffix = _SECRET_SUFFIX.replace("_", r"\\?_", 1)
            endings = {"ECRET" + suffix, "ecret" + suffix.replace("(?:", "(?i:", 1)}
        by_letter.setdefault(label[0], set()).update(endings)
    return [
        rf"{letter}(?<![A-Za-z0-9_\\]{letter})(?:{'|'.join(sorted(endings, key=len, reverse=True))})"
        rf"\\?_{_ORDINAL}{_TAG}(?![A-Za-z0-9_])"
        for letter, endings in sorted(by_letter.items())
    ]


_TOLERANT = re.compile(
    "|".join(
        (
            rf"\[(?:{_EXACT_NAME}|{_LOOSE_NAME})\]",
            rf"\\\[{_LOOSE_NAME}\\\]",
            rf"\({_LOOSE_NAME}\)",
            rf"\{{{_LOOSE_NAME}\}}",
            rf"<{_LOOSE_NAME}>",
            *_bare_patterns(),
        )
    )
)
_SPELLING = re.compile(
    r"[^A-Za-z]*([A-Za-z][A-Za-z0-9_ \\]*?) ?\\?[-_ ] ?([1-9][0-9]{0,8})(?:~([A-Za-z2-7]{4}))?[^0-9A-Za-z]*"
)


def find_handles(text: str, start: int = 0, *, exact: bool = False) -> Iterator[HandleMatch]:
    """Yield the handles of ``text`` that begin at or after ``start``, from left to right.

    ``exact`` matches only spellings such as ``[PERSON_1]``; otherwise spellings that models alter match too.
    """
    for match in (_CANONICAL if exact else _TOLERANT).finditer(text, start):
        label, ordinal, tag = match.groups()
        if label is not None:
            yield HandleMatch(match.start(), match.end(), _handle(label, int(ordinal), tag), exact=True)
            continue
        spelled = _SPELLING.fullmatch(match[0])
        if spelled is None:
            raise AssertionError("the two patterns disagree")
        label, ordinal, tag = spelled.groups()
        label = label.upper().replace(" ", "_").replace("\\", "")
        yield HandleMatch(
            match.start(), match.end(), _handle(label, int(ordinal), tag and tag.lower()), exact=False
        )


def count_handles(text: str) -> int:
    """Return how many handles a reader would see in ``text``, in any spelling that is recognised."""
    return sum(1 for _ in _TOLERANT.finditer(text))


@lru_cache(maxsize=4096)
def _handle(label: str, ordinal: int, tag: str | None) -> Handle:
    return Handle(label, ordinal, tag)


def restore_text(
    text: str, originals: Mapping[Handle, Original], *, exact: bool = False, safe_positions: bool = False
) -> str:
    """Return ``text`` with every handle in ``originals`` replaced in one pass; never scan inserted values again."""
    stream = StreamingRestoration(originals.get, exact=exact, safe_positions=safe_positions)
    return stream.feed(text) + stream.finish()


def _prefixes(labels: Iterable[str], open_secret: str) -> str:
    """Return a pattern of every prefix of ``labels``; ``open_secret`` covers the longer labels after SECRET."""
    beginnings = {label[:size] for label in labels for size in range(1, len(label) + 1)}
    return "|".join((open_secret, *sorted(beginnings, key=len, reverse=True)))


_PREFIXES = _prefixes(_PLAIN_LABELS, r"SECRET\\?[_ ](?:[A-Z0-9]|\\?[_ ]){0,30}\\?")
_TITLE_PREFIXES = _prefixes(map(str.title, _PLAIN_LABELS), r"Secret\\?_(?:[A-Za-z0-9]|\\?_){0,30}\\?")
_SPACED_PREFIXES = re.sub(r"(?<![\[\\?])_", r"\\\\?[_ ]", _PREFIXES)
_LOOSE_REST = r" ?(?:\\?(?:_ ?|\Z)|- ?| ?)[0-9]{0,9}(?:~[A-Za-z2-7]{0,4})?[ `]{0,2}\\?"
_OPEN_HANDLE = re.compile(
    rf"(?:\[(?:[A-Z][A-Z0-9_]{{0,50}}(?:~[a-z2-7]{{0,4}})?)?"
    rf"|\\(?:\[?(?:[ `]{{0,2}}(?:(?i:{_SPACED_PREFIXES})(?:{_LOOSE_REST})?)?)?)"
    rf"|[\[({{<][ `]{{0,2}}(?:(?i:{_SPACED_PREFIXES})(?:{_LOOSE_REST})?)?"
    rf"|(?<![A-Za-z0-9_\\])(?:{_PREFIXES}|{_TITLE_PREFIXES})(?:\\?(?:_[0-9]{{0,9}}(?:~[a-z2-7]{{0,4}})?)?)?"
    rf")\Z"
)
_OPEN_EXACT_HANDLE = re.compile(r"\[(?:[A-Z][A-Z0-9_]{0,50}(?:~[a-z2-7]{0,4})?)?\Z")
_OPENING_CHARACTER = re.compile(r"[\[({<\\A-Z]")
_OPEN_REACH = 80
"""Longest possible open handle, in characters."""


class StreamScanner:
    """Split a text that arrives in chunks into plain pieces and handles; the result does not depend on the chunks.

    Only an open handle is kept for the next chunk: the shortest tail that more text could still turn into a handle.
    ``positions`` marks handles in active positions (see ``PositionReader``); then a handle is also kept until what
    follows shows whether it is the begin of a host name, or on a line that sends its text, and inside of an object of
    JSON until that shows itself to be a call or ends (see ``HeldPieces``). ``joined`` has followed the texts that a
    host shows before this one: a position that is active after them is active here too.
    """

    def __init__(
        self, *, exact: bool = False, positions: bool = False, joined: PositionReader | None = None
    ) -> None:
        self._exact = exact
        own = [PositionReader()] if positions else []
        self._readers = [*own, joined] if joined is not None else own
        self._in_objects: HeldPieces[Handle] | None = HeldPieces() if self._readers else None
        self._pending = ""
        self._before = ""

    def feed(self, chunk: str) -> list[Piece[Handle]]:
        """Return ``(text, handle or None, in an active position)`` for all text that is now complete."""
        pieces = self._settled(chunk)
        return pieces if self._in_objects is None else self._in_objects.pass_on(pieces)

    def finish(self) -> list[Piece[Handle]]:
        """Return the pieces of the pending text at the end of the stream."""
        pieces = self._pieces(self._pending, len(self._pending), ends=True)
        return pieces if self._in_objects is None else self._in_objects.pass_on(pieces, ends=True)

    def _settled(self, chunk: str) -> list[Piece[Handle]]:
        text = self._pending + chunk
        if not self._pending and _OPENING_CHARACTER.search(text) is None:
            self._note(text)
            return [(text, None, False)] if text else []
        return self._pieces(text, self._open_at(text), ends=False)

    def _open_at(self, text: str) -> int:
        window = self._before + text
        shift = len(window) - len(text)
        pattern = _OPEN_EXACT_HANDLE if self._exact else _OPEN_HANDLE
        opening = pattern.search(window, max(shift, len(window) - _OPEN_REACH))
        return opening.start() - shift if opening else len(text)

    def _pieces(self, text: str, settled_length: int, *, ends: bool) -> list[Piece[Handle]]:
        window = self._before + text
        position = len(self._before)
        end = position + settled_length
        pieces: list[Piece[Handle]] = []
        for match in find_handles(window, position, exact=self._exact):
            if match.start >= end:
                break
            if match.start > position:
                self._note(window[position : match.start])
                pieces.append((window[position : match.start], None, False))
                position = match.start
            active = self._is_active(window, match.end, ends=ends)
            if active is None:
                end = position
                break
            pieces.append((window[match.start : match.end], match.handle, active))
            self._note_handle(match)
            position = match.end
        if position < end:
            self._note(window[position:end])
            pieces.append((window[position:end], None, False))
            position = end
        self._before = window[max(0, position - 1) : position]
        self._pending = window[position:]
        return pieces

    def _is_active(self, window: str, place: int, *, ends: bool) -> bool | None:
        right = window[place : place + RIGHT_CONTEXT]
        ends = ends and place + len(right) == len(window)
        judged = [reader.is_active(right, ends=ends) for reader in self._readers]
        return True if True in judged else None if None in judged else False

    def _note(self, text: str) -> None:
        for reader in self._readers:
            reader.add(text)
        self._before = text[-1:] or self._before

    def _note_handle(self, match: HandleMatch) -> None:
        for reader in self._readers:
            reader.pass_handle(match.handle.label)


class StreamingRestoration:
    """Restore originals in a text that arrives in chunks.

    ``resolve`` returns the original of a handle or None. Unknown, foreign, expired and erased handles look the same:
    the handle stays verbatim and counts in ``unresolved``.
    """

    def __init__(
        self,
        resolve: Callable[[Handle], Original | None],
        *,
        exact: bool = False,
        safe_positions: bool = False,
    ) -> None:
        self._scanner = StreamScanner(exact=exact, positions=safe_positions)
        self._resolve = resolve
        self._safe_positions = safe_positions
        self.restored = 0
        self.unresolved = 0

    def feed(self, chunk: str) -> str:
        """Return the text that is now complete, with originals restored."""
        return self._render(self._scanner.feed(chunk))

    def finish(self) -> str:
        """Return the rest of the text at the end of the stream."""
        return self._render(self._scanner.finish())

    def _render(self, pieces: list[Piece[Handle]]) -> str:
        return "".join(
            text if handle is None else self._restored(text, handle, active)
            for text, handle, active in pieces
        )

    def _restored(self, text: str, handle: Handle, active: bool) -> str:
        original = None if active and self._safe_positions else self._resolve(handle)
        if original is None:
            self.unresolved += 1
            return text
        self.restored += 1
        return original.at(0)
