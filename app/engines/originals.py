"""Look for the originals of a vault scope in a text, all of them in one pass (Aho-Corasick)."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_plus

from app.core.content.handles import LITERAL, Handle, Original, find_handles, json_escaped

LEAST_LETTERS: Final = 4
"""Characters of a shorter original are those of ordinary words: May, Bo, 42."""
LEAST_SIGNS: Final = 3
"""The same for scripts that write a syllable or a word as one character."""
LEAST_DIGITS: Final = 6
"""Digits of an original without letters: fewer are years, times and amounts."""

_HEAD: Final = 1_024
"""Characters of a longer original that the automata look for; only where they stand is the whole looked for.

An automaton has a node for each character and walks down its words by recursion: a word of 200,000 ends the process.
"""
_NOBODY: Final = (0, None)
_FIRST_SIGN: Final = 0x2E80
_MERGED_FROM: Final = 8
_PER_PATTERN: Final = 120
_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}|\+(?<=\w\+)\w")
"""Each alternative begins with its sign, so that the regex engine skips to those instead of trying each letter."""
_WORD: Final = re.compile(r"[^\W_\u2e80-\U0010ffff]+")
_RUN: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_CALENDAR_NAMES: Final = """
january february march april june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
januar februar märz juni juli oktober dezember
montag dienstag mittwoch donnerstag freitag samstag sonntag
janvier février mars avril juin juillet août septembre octobre novembre décembre
lundi mardi mercredi jeudi vendredi samedi dimanche
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
lunes martes miércoles jueves viernes sábado domingo
gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
lunedì martedì mercoledì giovedì venerdì sabato domenica
"""
_CALENDAR: Final = frozenset(_CALENDAR_NAMES.split())
_ESCAPE_BEFORE: Final = re.compile(r"(?:\\(?:[nrtbf]|u[0-9A-Fa-f]{4})|%[0-9A-Fa-f]{2})\Z")
_ESCAPE_REACH: Final = 6


class OriginalMatch(NamedTuple):
    """Where an original stands in a text, and its handle."""

    start: int
    end: int
    handle: Handle


@dataclass(slots=True)
class OriginalFinder:
    """Finds originals as they are written, inside of JSON strings, and in URLs.

    A text that an original ends or begins in the middle of a word does not count, nor do originals that are too short
    or that name a day or month. Additions are cheap: they go to small automata that are merged as they grow.
    """

    _levels: list[Any] = field(default_factory=list)
    _longer: dict[str, dict[str, Handle]] = field(default_factory=dict)
    """Originals that are longer than what the automata know of them, by their beginnings."""
    size: int = 0
    """Bytes that it takes, about."""

    def add(self, originals: Iterable[tuple[Handle, Original]]) -> None:
        """Look for these originals too; of those that are written alike, the first one counts."""
        patterns: dict[str, tuple[int, Handle | None]] = {}
        for handle, original in originals:
            for form in _forms(handle.label, original):
                if len(form) > _HEAD:
                    self._longer.setdefault(form[:_HEAD], {}).setdefault(form, handle)
                    patterns.setdefault(form[:_HEAD], (_HEAD, None))
                elif patterns.get(form, _NOBODY)[1] is None:
                    patterns[form] = (len(form), handle)
        patterns = {form: value for form, value in patterns.items() if not self._has(form, value[1])}
        if not patterns:
            return
        while self._levels and len(self._levels[-1]) <= _MERGED_FROM * len(patterns):
            earlier = dict(self._levels.pop().items())
            patterns |= {form: value for form, value in earlier.items() if value[1] or form not in patterns}
        self._levels.append(_automaton(patterns))
        self.size = sum(level.get_stats()["total_size"] + _PER_PATTERN * len(level) for level in self._levels)
        self.size += sum(len(form) + _PER_PATTERN for forms in self._longer.values() for form in forms)

    def _has(self, form: str, handle: Handle | None) -> bool:
        """Return whether a form is looked for: as an original, or where it has no ``handle``, as a beginning."""
        values = [level.get(form, None) for level in self._levels]
        return any(value is not None and (value[1] is not None or handle is None) for value in values)

    def find(self, text: str) -> list[OriginalMatch]:
        """Return where originals stand in ``text``, from left to right, the longest of those that overlap."""
        matches = [match for match in self._candidates(text) if _is_bounded(text, match)]
        if _ENCODED.search(text):
            matches += self._find_encoded(text)
        if not matches:
            return []
        handles = [(match.start, match.end) for match in find_handles(text, exact=True)]
        matches.sort(key=lambda match: (match.start, -match.end))
        chosen: list[OriginalMatch] = []
        for match in matches:
            if chosen and match.start < chosen[-1].end:
                continue
            if not any(start < match.end and match.start < end for start, end in handles):
                chosen.append(match)
        return chosen

    def _candidates(self, text: str) -> Iterator[OriginalMatch]:
        heads: set[str] = set()
        for automaton in self._levels:
            for last, (length, handle) in automaton.iter(text):
                start = last + 1 - length
                if handle is not None:
                    yield OriginalMatch(start, last + 1, handle)
                if length == _HEAD:
                    heads.add(text[start : last + 1])
        for head in heads & self._longer.keys():
            for form, owner in self._longer[head].items():
                yield from _all_of(form, owner, text)

    def _find_encoded(self, text: str) -> Iterator[OriginalMatch]:
        """Yield where originals stand as URLs write them."""
        decoded = unquote_plus(text)
        matches = [match for match in self._candidates(decoded) if _is_bounded(decoded, match)]
        originals = {decoded[match.start : match.end]: match for match in matches}
        places: _Places | None = None
        for original, match in originals.items():
            if len(original) <= _HEAD:
                for place in re.finditer(_encoded_pattern(original), text):
                    yield OriginalMatch(place.start(), place.end(), match.handle)
                continue
            places = places or _Places.of(text)
            for start, end, handle in _all_of(original, match.handle, places.decoded):
                yield OriginalMatch(places.encoded_at(start), places.encoded_at(end), handle)


@dataclass(frozen=True, slots=True)
class _Places:
    """A text without percent-encoding, and where its parts stood: ``starts`` in it, ``encoded`` in the text."""

    decoded: str
    starts: Sequence[int]
    encoded: Sequence[int]

    @classmethod
    def of(cls, text: str) -> "_Places":
        parts: list[str] = []
        starts, encoded, length, at = list[int](), list[int](), 0, 0
        for run in [*_RUN.finditer(text), None]:
            end = len(text) if run is None else run.start()
            pieces = [(text[at:end].replace("+", " "), at)]
            if run is not None:
                for character in bytes.fromhex(run[0].replace("%", "")).decode("utf-8", "surrogateescape"):
                    pieces.append((character, end))
                    end += 3 * len(character.encode("utf-8", "surrogateescape"))
            for piece, place in pieces:
                parts.append(piece)
                starts.append(length)
                encoded.append(place)
                length += len(piece)
            at = end
        return cls("".join(parts), starts, encoded)

    def encoded_at(self, offset: int) -> int:
        """Return where in the text stands what is at ``offset`` without encoding."""
        entry = bisect_right(self.starts, offset) - 1
        return self.encoded[entry] + offset - self.starts[entry]


def _all_of(original: str, handle: Handle, text: str) -> Iterator[OriginalMatch]:
    """Yield where a long original stands between words; in linear time, as ``str.find`` looks for it."""
    start = text.find(original)
    while start >= 0:
        match = OriginalMatch(start, start + len(original), handle)
        bounded = _is_bounded(text, match)
        if bounded:
            yield match
        start = text.find(original, match.end if bounded else _after_word(text, start))


def _after_word(text: str, start: int) -> int:
    """Return where the next word, or character beside words, begins."""
    word = _WORD.match(text, start)
    return start + 1 if word is None else word.end()


def _automaton(patterns: Mapping[str, tuple[int, Handle | None]]) -> Any:
    import ahocorasick  # noqa: PLC0415 - loaded on the first use, so start-up does not pay for it

    automaton = ahocorasick.Automaton()
    for form, value in patterns.items():
        automaton.add_word(form, value)
    automaton.make_automaton()
    return automaton


def _encoded_pattern(original: str) -> str:
    """Return a pattern of ``original`` with any of its characters percent-encoded, and spaces as URLs write them."""
    pieces: list[str] = []
    for character in original:
        encoded = "".join(f"%{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
        plus = r"|\+" if character == " " else ""
        pieces.append(f"(?:{re.escape(character)}|(?i:{encoded}){plus})")
    return "".join(pieces)


def _forms(label: str, original: Original) -> set[str]:
    """Return how an original may be written in a body; nothing if it must not be looked for."""
    text = original.text.strip()
    if label == LITERAL or not is_telling(text):
        return set()
    escaped = json_escaped(text, 1)
    ascii_only = re.sub(r"[^\x00-\x7f]", lambda sign: _json_sign(sign[0]), escaped)
    forms = {text, escaped, ascii_only}
    if original.spelling is not None:
        forms.add(original.spelling)
    return {form for form in forms if form}


def _json_sign(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def is_telling(text: str) -> bool:
    """Return whether ``text`` is long and rare enough to be looked for wherever it may stand."""
    if not any(character.isalpha() for character in text):
        return sum(character.isdigit() for character in text) >= LEAST_DIGITS
    if sum(ord(character) >= _FIRST_SIGN for character in text) >= LEAST_SIGNS:
        return True
    return len(text) >= LEAST_LETTERS and text.casefold() not in _CALENDAR


def _is_bounded(text: str, match: OriginalMatch) -> bool:
    """Return whether the match neither begins nor ends in the middle of a word or number."""
    start, end = match.start, match.end
    after = text[end : end + 1]
    if _joins(text[end - 1], after):
        return False
    before = text[start - 1 : start]
    if not _joins(text[start], before):
        return True
    return _ESCAPE_BEFORE.search(text[max(0, start - _ESCAPE_REACH) : start]) is not None


def _joins(edge: str, beside: str) -> bool:
    """Return whether two neighbouring characters belong to one word or number."""
    if not beside or not edge.isalnum() or not beside.isalnum():
        return False
    return ord(edge) < _FIRST_SIGN or (edge.isdigit() and beside.isdigit())
