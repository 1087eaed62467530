"""Handles: their grammar, the originals behind them, and putting originals back, whole or streaming."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from app.core.content.positions import LEFT_CONTEXT, in_active_position
from app.core.content.secret_labels import SECRET_LABELS, SECRET_PREFIX

LITERAL = "LITERAL"
"""Label of text that already looked like a handle before redaction."""

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
"""Labels that are recognised in the altered spellings that models give to handles; others only as written."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A stand-in for one original within one vault scope; ``str()`` gives ``[PERSON_1]``."""

    label: str
    ordinal: int
    tag: str | None = None

    @property
    def name(self) -> str:
        """Return the handle without brackets, as metadata names it."""
        return f"{self.label}_{self.ordinal}" + (f"~{self.tag}" if self.tag else "")

    def __str__(self) -> str:
        return f"[{self.name}]"

    @classmethod
    def parse(cls, text: str) -> "Handle | None":
        """Return the handle spelled ``PERSON_1`` or ``[PERSON_1]``, or None."""
        bare = text if text.startswith("[") else f"[{text}]"
        found = _CANONICAL.fullmatch(bare)
        return cls(found[1], int(found[2]), found[3]) if found else None


@dataclass(frozen=True, slots=True)
class Original:
    r"""What a handle stands for.

    ``text`` is the value. Where it was cut from JSON inside a string in an unusual spelling (``\u00e9`` for é),
    ``spelling`` keeps the characters as they stood and ``depth`` how many string literals they stood in, so that
    putting it back is exact.
    """

    text: str
    spelling: str | None = None
    depth: int = 0

    def encode(self) -> bytes:
        """Return the bytes that are sealed and looked up; equal exactly when every character is."""
        value = self.text.encode("utf-8", "surrogatepass")
        if self.spelling is None:
            return b"\0" + value
        raw = self.spelling.encode("utf-8", "surrogatepass")
        return b"\1" + self.depth.to_bytes(1) + len(value).to_bytes(4) + value + raw

    @classmethod
    def decode(cls, data: bytes) -> "Original":
        """Return what ``encode`` was given."""
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
    """Return ``text`` as it is spelled inside ``depth`` nested JSON string literals."""
    for _ in range(depth):
        text = json.dumps(text, ensure_ascii=False)[1:-1]
        text = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text


class HandleMatch(NamedTuple):
    """A handle found in a text: offsets, what it names, and whether it is spelled exactly."""

    start: int
    end: int
    handle: Handle
    exact: bool


_SURROGATE = re.compile("[\ud800-\udfff]")
_GAP = r"(?:\\?_| )"
_ORDINAL = r"[1-9][0-9]{0,8}"
_TAG = r"(?:~[a-z2-7]{4})?"
_AS_WRITTEN = rf"([A-Z][A-Z0-9_]{{0,40}})_({_ORDINAL})(?:~([a-z2-7]{{4}}))?"
_SUFFIXES = sorted((label.removeprefix(SECRET_PREFIX) for label in SECRET_LABELS), key=len, reverse=True)
_OF_SECRETS = f"(?:_(?:{'|'.join(_SUFFIXES)}))?"
"""What may follow SECRET; written once behind it, so that hundreds of labels cost no more than one."""
_KNOWN = "|".join(
    label + (_OF_SECRETS if label == "SECRET" else "")
    for label in sorted(_PLAIN_LABELS, key=len, reverse=True)
)
_CANONICAL = re.compile(rf"\[{_AS_WRITTEN}\]")
_LOOSE_CORE = rf"[ `]{{0,2}}(?i:{_KNOWN.replace('_', _GAP)}) ?(?:\\?_|-| ) ?{_ORDINAL}(?i:{_TAG})[ `]{{0,2}}"


def _bare_spellings() -> list[str]:
    """Return one pattern per first letter, for handles without brackets.

    Only in capitals or with a capital: address_1 in code is no handle. The look-behind stands after the first
    letter so that every alternative of the whole pattern begins with a literal: the engine then skips to
    those characters instead of trying each position (ten times as fast on prose).
    """
    by_letter: dict[str, set[str]] = {}
    for label in _PLAIN_LABELS:
        rests = {label[1:], label.title()[1:]}
        if label == "SECRET":
            ending = _OF_SECRETS.replace("_", r"\\?_", 1)
            rests = {"ECRET" + ending, "ecret" + ending.replace("(?:", "(?i:", 1)}
        by_letter.setdefault(label[0], set()).update(rests)
    return [
        rf"{letter}(?<![A-Za-z0-9_\\]{letter})(?:{'|'.join(sorted(rests, key=len, reverse=True))})"
        rf"\\?_{_ORDINAL}{_TAG}(?![A-Za-z0-9_])"
        for letter, rests in sorted(by_letter.items())
    ]


_TOLERANT = re.compile(
    "|".join(
        (
            rf"\[(?:{_AS_WRITTEN}|{_LOOSE_CORE})\]",
            rf"\\\[{_LOOSE_CORE}\\\]",
            rf"\({_LOOSE_CORE}\)",
            rf"\{{{_LOOSE_CORE}\}}",
            rf"<{_LOOSE_CORE}>",
            *_bare_spellings(),
        )
    )
)
_SPELLED = re.compile(
    r"[^A-Za-z]*([A-Za-z][A-Za-z0-9_ \\]*?) ?\\?[-_ ] ?([1-9][0-9]{0,8})(?:~([A-Za-z2-7]{4}))?[^0-9A-Za-z]*"
)


def find_handles(text: str, start: int = 0, *, exact: bool = False) -> Iterator[HandleMatch]:
    """Yield the handles of ``text`` that begin at or after ``start``, from left to right.

    ``exact`` takes only ``[PERSON_1]`` as written; otherwise the spellings that models make of it too.
    """
    for found in (_CANONICAL if exact else _TOLERANT).finditer(text, start):
        label, ordinal, tag = found.groups()
        if label is not None:
            yield HandleMatch(found.start(), found.end(), _handle(label, int(ordinal), tag), exact=True)
            continue
        spelled = _SPELLED.fullmatch(found[0])
        if spelled is None:
            raise AssertionError("the two patterns disagree")
        label, ordinal, tag = spelled.groups()
        label = label.upper().replace(" ", "_").replace("\\", "")
        yield HandleMatch(
            found.start(), found.end(), _handle(label, int(ordinal), tag and tag.lower()), exact=False
        )


@lru_cache(maxsize=4096)
def _handle(label: str, ordinal: int, tag: str | None) -> Handle:
    return Handle(label, ordinal, tag)


def restore_text(
    text: str, originals: Mapping[Handle, Original], *, exact: bool = False, safe_positions: bool = False
) -> str:
    """Return ``text`` with every known handle replaced in one pass; inserted values are never scanned again."""
    stream = StreamingRestoration(originals.get, exact=exact, safe_positions=safe_positions)
    return stream.feed(text) + stream.finish()


def _prefixes(labels: Iterable[str], open_secret: str) -> str:
    """Return every beginning of ``labels``; behind SECRET whatever its longer labels may go on with."""
    beginnings = {label[:size] for label in labels for size in range(1, len(label) + 1)}
    return "|".join((open_secret, *sorted(beginnings, key=len, reverse=True)))


_PREFIXES = _prefixes(_PLAIN_LABELS, r"SECRET\\?[_ ](?:[A-Z0-9]|\\?[_ ]){0,30}\\?")
_TITLE_PREFIXES = _prefixes(map(str.title, _PLAIN_LABELS), r"Secret\\?_(?:[A-Za-z0-9]|\\?_){0,30}\\?")
_SPACED_PREFIXES = re.sub(r"(?<![\[\\?])_", r"\\\\?[_ ]", _PREFIXES)
_LOOSE_REST = r" ?(?:\\?(?:_ ?|\Z)|- ?| ?)[0-9]{0,9}(?:~[A-Za-z2-7]{0,4})?[ `]{0,2}\\?"
_OPEN = re.compile(
    rf"(?:\[(?:[A-Z][A-Z0-9_]{{0,50}}(?:~[a-z2-7]{{0,4}})?)?"
    rf"|\\(?:\[?(?:[ `]{{0,2}}(?:(?i:{_SPACED_PREFIXES})(?:{_LOOSE_REST})?)?)?)"
    rf"|[\[({{<][ `]{{0,2}}(?:(?i:{_SPACED_PREFIXES})(?:{_LOOSE_REST})?)?"
    rf"|(?<![A-Za-z0-9_\\])(?:{_PREFIXES}|{_TITLE_PREFIXES})(?:\\?(?:_[0-9]{{0,9}}(?:~[a-z2-7]{{0,4}})?)?)?"
    rf")\Z"
)
_OPEN_EXACT = re.compile(r"\[(?:[A-Z][A-Z0-9_]{0,50}(?:~[a-z2-7]{0,4})?)?\Z")
_MAY_OPEN = re.compile(r"[\[({<\\A-Z]")
_OPEN_REACH = 80
"""No open handle is longer than this."""


class StreamScanner:
    """Split a text that arrives in chunks into plain pieces and handles, the same for every chunking.

    Only an open handle is held back: the shortest tail that more text could still turn into a handle.
    ``positions`` asks to tell handles in active positions from others.
    """

    def __init__(self, *, exact: bool = False, positions: bool = False) -> None:
        self._exact = exact
        self._positions = positions
        self._held = ""
        self._left = ""

    def feed(self, chunk: str) -> "list[tuple[str, Handle | None, bool]]":
        """Return ``(text, handle or None, in an active position)`` for all that is now settled."""
        text = self._held + chunk
        if not self._held and _MAY_OPEN.search(text) is None:
            self._left = (self._left + text)[-LEFT_CONTEXT:]
            return [(text, None, False)] if text else []
        return self._pieces(text, self._open_at(text))

    def finish(self) -> "list[tuple[str, Handle | None, bool]]":
        """Return what was held back: no more text comes."""
        return self._pieces(self._held, len(self._held))

    def _open_at(self, text: str) -> int:
        window = self._left[-1:] + text
        shift = len(window) - len(text)
        pattern = _OPEN_EXACT if self._exact else _OPEN
        found = pattern.search(window, max(shift, len(window) - _OPEN_REACH))
        return found.start() - shift if found else len(text)

    def _pieces(self, text: str, settled: int) -> "list[tuple[str, Handle | None, bool]]":
        window = self._left + text
        shift = len(self._left)
        end = shift + settled
        position = shift
        pieces: list[tuple[str, Handle | None, bool]] = []
        for match in find_handles(window, shift, exact=self._exact):
            if match.start >= end:
                break
            if match.start > position:
                pieces.append((window[position : match.start], None, False))
            active = self._positions and in_active_position(
                window[max(0, match.start - LEFT_CONTEXT) : match.start]
            )
            pieces.append((window[match.start : match.end], match.handle, active))
            position = match.end
        if position < end:
            pieces.append((window[position:end], None, False))
            position = end
        self._left = window[max(0, position - LEFT_CONTEXT) : position]
        self._held = window[position:]
        return pieces


class StreamingRestoration:
    """Put originals back into a text that arrives in chunks.

    ``resolve`` gives the original of a handle or None (unknown, foreign, expired and erased look the same: the
    handle stays verbatim and is counted in ``unresolved``).
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
        self._safe = safe_positions
        self.restored = 0
        self.unresolved = 0

    def feed(self, chunk: str) -> str:
        """Return the text that is now settled, originals in place."""
        return self._render(self._scanner.feed(chunk))

    def finish(self) -> str:
        """Return the rest."""
        return self._render(self._scanner.finish())

    def _render(self, pieces: "list[tuple[str, Handle | None, bool]]") -> str:
        return "".join(
            text if handle is None else self._one(text, handle, active) for text, handle, active in pieces
        )

    def _one(self, text: str, handle: Handle, active: bool) -> str:
        original = None if active and self._safe else self._resolve(handle)
        if original is None:
            self.unresolved += 1
            return text
        self.restored += 1
        return original.at(0)
