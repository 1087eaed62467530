"""Decode runs of base64 and hexadecimal that are text; keys, hashes and images stay unchanged."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from app.engines.views.mapping import Substitution

_LEAST: Final = 11
_SMALL, _CAPITAL, _DIGIT, _PLUS, _SIGN = 1, 2, 4, 8, 16


def _kind(char: str) -> int:
    """Return the role of a character in a run; 0 where it belongs to none."""
    kinds = (
        (_SMALL, char.islower()),
        (_CAPITAL, char.isupper()),
        (_DIGIT, char.isdigit()),
        (_PLUS, char == "+"),
        (_SIGN, char in "/_-"),
    )
    return sum(kind for kind, is_so in kinds if is_so)


_KINDS: Final = np.array([_kind(chr(code)) for code in range(128)], np.uint8)
_NEXT_LINE: Final = re.compile(
    r"(?:\r?\n|(?:\\r)?\\n)[ \t>]{0,8}([A-Za-z0-9+/_\-]{1,1024}+={0,2})(?=[\s\"'<>\\\])},;]|\Z)"
)
_BETWEEN: Final = re.compile(r"[^/_\-]{11,}+")
_BYTES: Final = re.compile(r"[0-9A-Fa-f]{16}")
_HEX: Final = re.compile(r"(?:0[xX])?((?:[0-9A-Fa-f]{2}){8,}+)\Z")
_SHORT: Final = 16
_LINE: Final = 16
_TRIES: Final = 4
"""How many lines of a block, such as an image, are tried as its first one; each line is also read by itself."""
_LEAST_TOKENS: Final = 3
_GAP: Final = 3
_PADDING: Final = 2
_WHITE: Final = np.frombuffer(b" \t\r\n", np.uint8)
_OUTSIDE: Final = re.compile(r"[^A-Za-z0-9+/=_\-]+")
"""What no decoder of base64 reads: blanks, the marks of a quoted mail, letters of any other alphabet."""
_STANDARD: Final = str.maketrans("-_", "+/")
_TEXT: Final = bytes((9, 10, 13, *range(32, 127)))
_SURE: Final = 24
_MOSTLY: Final = 0.85
"""The least share of printable ASCII for a long run to count as text, even if some of it is damaged."""
_MIXED: Final = re.compile(r"(?=.{0,256}[a-z])(?=.{0,256}[A-Z])(?=.{0,256}[0-9])[A-Za-z0-9+/]*+\Z")
_NUMBER: Final = re.compile(r"[0-9]{10}")


def encoded_runs(text: str) -> Iterator[Substitution]:
    """Yield the runs that are text in base64 or hexadecimal, each as a whole."""
    done = block = tries = 0
    yield from _spaced(text)
    for start, end in _runs(text):
        if start < done:
            continue
        while text.startswith("=", end) and text[end - 2 : end] != "==":
            end += 1  # noqa: PLW2901 - the padding belongs to the run
        if start >= block:
            tries = 0
        last, lines = _continued(text, start, end) if tries < _TRIES else (end, "")
        if lines:
            tries, block = tries + 1, last
            if (plain := _from_base64(lines)) is not None:
                yield Substitution(start, last, f" {plain} ", "base64")
                done = last
                continue
        yield from _readings(text[start:end], start)


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end, without padding, of the runs that may encode text: no words, no names."""
    # A text has tens of thousands of runs, of which few are long; a regular expression would be ten times slower.
    seen = np.frombuffer(b" %b " % text.encode("ascii", "replace"), np.uint8)
    kinds = _KINDS.take(seen)
    inside = kinds > 0
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    begins, ends = edges[::2], edges[1::2]
    long = ends - begins >= _LEAST
    if not long.any():
        return
    begins, ends = begins[long], ends[long]
    # Every second result belongs to the gap between two runs.
    kinds_in_run = np.bitwise_or.reduceat(kinds, np.column_stack((begins, ends)).ravel() + 1)[::2]
    cases = kinds_in_run & (_SMALL | _CAPITAL)
    wide = ends - begins >= _SHORT - 2
    # A short word without a digit encodes nothing; base64 has letters of both cases, so all else is hexadecimal.
    spoken = (kinds_in_run & _DIGIT > 0) | (cases & _CAPITAL > 0) & (wide | (seen[ends + 1] == ord("=")))
    telling = spoken & (wide | (cases == 0) | (cases == _SMALL | _CAPITAL) | (kinds_in_run & _PLUS > 0))
    yield from zip(begins[telling].tolist(), ends[telling].tolist(), strict=True)


def _spaced(text: str) -> Iterator[Substitution]:
    """Yield base64 with blanks or line breaks inside: tokens in a row that are no words."""
    seen = np.frombuffer(b" %b " % text.encode("ascii", "replace"), np.uint8)
    kinds = _KINDS.take(seen)
    edges = np.flatnonzero((kinds[1:] > 0) != (kinds[:-1] > 0))
    begins, ends = edges[::2], edges[1::2]
    if len(begins) < _LEAST_TOKENS:
        return
    capitals = np.add.reduceat(
        (kinds & _CAPITAL) > 0, np.column_stack((begins, ends)).ravel() + 1, dtype=np.int32
    )[::2]
    within = np.bitwise_or.reduceat(kinds, np.column_stack((begins, ends)).ravel() + 1)[::2]
    inner = capitals - ((kinds[begins + 1] & _CAPITAL) > 0) > 0
    letters = within & (_SMALL | _CAPITAL) > 0
    strange = (letters & (within & _DIGIT > 0)) | (inner & (within & _SMALL > 0)) | (ends - begins == 1)
    near = begins[1:] - ends[:-1]
    linked = (near > 0) & (near <= _GAP) & np.isin(seen[ends[:-1] + 1], _WHITE) & (strange[1:] | strange[:-1])
    bounds = np.flatnonzero(np.diff(np.concatenate(([0], linked.view(np.int8), [0]))))
    for first, last in zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True):
        odd = np.flatnonzero(strange[first : last + 1]) + first
        if len(odd) >= _LEAST_TOKENS:
            yield from _among(text, begins, ends, (first, int(odd[0]), int(odd[-1]), last))


def _among(text: str, begins: Any, ends: Any, row: tuple[int, int, int, int]) -> Iterator[Substitution]:
    """Yield what the tokens of a row encode together; a token at either end may be a word or a part of it."""
    first, low, high, last = row
    for begin in sorted({low, max(first, low - 1), min(low + 1, high)}):
        for end in sorted({high, min(last, high + 1), max(low, high - 1)}, reverse=True):
            start, stop = int(begins[begin]), int(ends[end])
            while text.startswith("=", stop) and stop - int(ends[end]) < _PADDING:
                stop += 1
            joined = _OUTSIDE.sub("", text[start:stop])
            if len(joined) >= _SHORT and end > begin and (plain := _from_base64(joined)) is not None:
                yield Substitution(start, stop, f" {plain} ", "base64")
                return


def is_settled(run: str) -> bool:
    """Return whether a long run is base64: of text, which is decoded, or of something else that hides no number."""
    bare = run.rstrip("=").translate(_STANDARD)
    return _MIXED.match(bare) is not None and (_from_base64(run) is not None or not _NUMBER.search(bare))


def _readings(spelled: str, start: int) -> Iterator[Substitution]:
    """Yield the decoded text of a run, or of its parts between the separators of a path."""
    # Base64 mixes capitals and small letters, so an identifier or a time can only be bytes in hexadecimal.
    if (spelled.islower() or spelled.isupper()) and "+" not in spelled and not _BYTES.search(spelled):
        return
    whole = _decoded(spelled)
    if whole is not None:
        yield Substitution(start, start + len(spelled), f" {whole[0]} ", whole[1])
        return
    if "-" in spelled and (plain := _from_base64(spelled.replace("-", ""))) is not None:
        yield Substitution(start, start + len(spelled), f" {plain} ", "base64")
        return
    if "/" in spelled or "-" in spelled or "_" in spelled:
        for part in _BETWEEN.finditer(spelled):
            if (piece := _decoded(part.group())) is not None:
                yield Substitution(start + part.start(), start + part.end(), f" {piece[0]} ", piece[1])


def _continued(text: str, start: int, end: int) -> tuple[int, str]:
    """Return end and characters of the lines of equal width that continue a run, as in mail; "" where none do."""
    width = end - start
    if width < _LINE or width % 4 or text[end : end + 1] not in ("\n", "\r", "\\"):
        return end, ""
    lines, last = [text[start:end]], end
    while (line := _NEXT_LINE.match(text, last)) is not None and len(line[1]) <= width:
        lines.append(line[1])
        last = line.end()
        if len(line[1]) < width:
            break
    return (last, "".join(lines)) if len(lines) > 1 else (end, "")


def _decoded(run: str) -> tuple[str, str] | None:
    """Return the text of a run and how it was encoded."""
    if (pairs := _HEX.match(run)) is not None:
        plain = _readable(bytes.fromhex(pairs[1]))
        if plain is not None:
            return plain, "hex"
    plain = _from_base64(run)
    return None if plain is None else (plain, "base64")


def _from_base64(run: str) -> str | None:
    bare = run.rstrip("=")
    if len(bare) % 4 == 1 or bare.isdigit() or bare.islower() or bare.isupper():
        return None
    if len(bare) < _SHORT and len(bare) == len(run) and not any(map(str.isdigit, bare)):
        return None
    try:
        return _readable(base64.b64decode(bare.translate(_STANDARD) + "=" * (-len(bare) % 4)))
    except binascii.Error:
        return None


def _readable(data: bytes) -> str | None:
    """Return ``data`` as text where it is UTF-8, UTF-16 or mostly printable, else None."""
    strange = len(data.translate(None, _TEXT))
    if not strange:
        return data.decode("ascii")
    if len(data) >= _SURE and strange <= len(data) * (1 - _MOSTLY):
        return data.decode("utf-8", "replace")
    if not len(data) % 2 and strange <= len(data) * 0.6:
        for zeros, encoding in ((data[1::2], "utf-16-le"), (data[::2], "utf-16-be")):
            if zeros.count(0) * 4 >= len(zeros) * 3:
                return data.decode(encoding, "replace").lstrip("\ufeff")
    return _utf8(data)


def _utf8(data: bytes) -> str | None:
    """Return ``data`` decoded where it is UTF-8 without control characters; a truncated last character is dropped."""
    try:
        plain = data.decode()
    except UnicodeDecodeError as error:
        if error.start < len(data) - 3 or error.reason != "unexpected end of data":
            return None
        plain = data[: error.start].decode()
    controls = any(char < " " and char not in "\t\r\n" for char in plain)
    return plain if not controls and _mostly_printable(plain) else None


def _mostly_printable(plain: str) -> bool:
    return sum(map(str.isprintable, plain)) >= len(plain) * _MOSTLY
