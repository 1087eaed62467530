"""Decode runs of base64 and hexadecimal that are text; keys, hashes and images stay unchanged."""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

import numpy as np

from app.engines.views import gates
from app.engines.views.mapping import Substitution

_LEAST: Final = 11
_OF_TOKEN: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_TOKEN: Final = re.compile(rb"[A-Za-z0-9+/_\-]+")
_FOLLOWING: Final = re.compile(rb"[ \t\r\n][^A-Za-z0-9+/_\-]{0,2}([A-Za-z0-9+/_\-]+)")
_GAP_BEFORE: Final = re.compile(rb"[A-Za-z0-9+/_\-][ \t\r\n][^A-Za-z0-9+/_\-]{0,2}\Z")
_STRANGE: Final = re.compile(rb"(?=.*[A-Za-z])(?=.*[0-9])|(?=.+[A-Z])(?=.*[a-z])|.\Z")
"""A token that is no word: letters with digits, a capital inside, one character."""
_STEP: Final = 256
_NEXT_LINE: Final = re.compile(
    r"(?:\r?\n|(?:\\r)?\\n)[ \t>]{0,8}([A-Za-z0-9+/_\-]{1,1024}+={0,2})(?=[\s\"'<>\\\])},;]|\Z)"
)
_BETWEEN: Final = re.compile(r"[^/_\-]{11,}+")
_BYTES: Final = re.compile(rb"(?![0-9]{16})[0-9A-Fa-f]{16}|(?:[2-7][0-9]|00|09){8}")
_HEX: Final = re.compile(r"(?:0[xX])?((?:[0-9A-Fa-f]{2}){8,}+)\Z")
_SHORT: Final = 16
_LINE: Final = 16
_TRIES: Final = 4
"""How many lines of a block, such as an image, are tried as its first one; each line is also read by itself."""
_LEAST_TOKENS: Final = 3
_GAP: Final = 3
_PADDING: Final = 2
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
    data = text.encode("ascii", "replace")
    done = block = tries = 0
    yield from _spaced(text, data)
    for start, end in _runs(data):
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


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end, without padding, of the runs that may encode text: no words, no names."""
    if not gates.passed(data, gates.RUNS):
        return
    # What follows the last run is a blank.
    classes = np.frombuffer((data + b" ").translate(_CLASSES), np.uint8)
    inside = classes < _AFTER
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    if inside[0]:
        edges = np.concatenate(([0], edges))
    sizes = edges[1::2] - edges[::2]
    wide = np.repeat(sizes >= _LEAST, 2)
    sizes, edges = sizes[wide[::2]], edges[wide]
    if not len(edges):
        return
    kinds, after = np.bitwise_or.reduceat(classes, edges)[::2], classes[edges[1::2]]
    capital, small, digit, plus = (kinds & bit != 0 for bit in (_CAPITAL, _SMALL, _DIGIT, _PLUS))
    long = sizes >= _SHORT - 2
    # A short word without a digit encodes nothing.
    spoken = digit | (capital & (long | (after == _PADDED)))
    telling = spoken & (long | (capital == small) | plus)
    # Base64 mixes capitals and small letters, or has signs; all else is lines of a block, or hexadecimal.
    # Only digits can be written without small letters.
    mixed = (capital & (small | (digit & (after == _PADDED)))) | (plus & (capital | small))
    sure = telling & (mixed | ((after > _AFTER) & (sizes >= _LINE)))
    chosen = sure | (telling & (sizes >= _SHORT)) if gates.passed(data, gates.BYTES) else sure
    starts, ends = edges[::2][chosen].tolist(), edges[1::2][chosen].tolist()
    for start, end, is_sure in zip(starts, ends, sure[chosen].tolist(), strict=True):
        if is_sure or _BYTES.search(data, start, end):
            yield start, end


def _classes() -> bytes:
    """Return the class of every byte: what it is in a run, or what it says behind one."""
    classes = bytearray([_AFTER]) * 256
    for characters, value in (
        (ascii_lowercase, _SMALL),
        (ascii_uppercase, _CAPITAL),
        (digits, _DIGIT),
        ("+", _PLUS),
        ("/_-", 0),
        ("=", _PADDED),
        ("\n\r\\", _BROKEN),
    ):
        for character in characters:
            classes[ord(character)] = value
    return bytes(classes)


_SMALL, _CAPITAL, _DIGIT, _PLUS, _AFTER, _BROKEN, _PADDED = 1, 2, 4, 8, 16, 17, 18
_CLASSES: Final = _classes()


def _begin(data: bytes, place: int) -> int:
    """Return where there is a token at ``place``; a gate may begin with the character before it."""
    return place if data[place] in _OF_TOKEN else place + 1


def _token_at(data: bytes, place: int, least: int) -> tuple[int, int]:
    """Return start and end of the token around ``place``, which begins at ``least`` or later."""
    token = _TOKEN.match(data, place)
    end = place if token is None else token.end()
    start = place
    while start > least:
        before = data[max(least, start - _STEP) : start]
        inside = len(before) - len(before.rstrip(_OF_TOKEN))
        start -= inside
        if inside < len(before):
            break
    return start, end


def _spaced(text: str, data: bytes) -> Iterator[Substitution]:
    """Yield base64 with blanks or line breaks inside: tokens in a row that are no words."""
    end = 0
    while (place := gates.place(data, gates.SPACED, end)) >= 0:
        tokens = list(_row(data, *_token_at(data, _begin(data, place), end), end))
        strange = [number for number, token in enumerate(tokens) if token[2]]
        end = max(tokens[-1][1], end + 1)
        if len(strange) >= _LEAST_TOKENS:
            yield from _among(text, tokens, strange[0], strange[-1])


def _row(data: bytes, start: int, end: int, least: int) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of the tokens around a strange one, one of every two strange, and whether each is."""
    gap = _GAP_BEFORE.search(data, max(least, start - _GAP - 1), start)
    if gap is not None:
        before = _token_at(data, gap.start(), least)
        yield *before, _STRANGE.match(data, *before) is not None
    strange = _STRANGE.match(data, start, end) is not None
    yield start, end, strange
    while (following := _FOLLOWING.match(data, end)) is not None:
        start, end = following.span(1)
        was_strange, strange = strange, _STRANGE.match(data, start, end) is not None
        if not (strange or was_strange or data[end : end + 1] == b"="):
            return
        yield start, end, strange


def _among(text: str, tokens: Sequence[tuple[int, int, bool]], low: int, high: int) -> Iterator[Substitution]:
    """Yield what the tokens of a row encode together; a token at either end may be a word or a part of it."""
    last = len(tokens) - 1
    # A sign by itself, such as the mark of an item, may stand at either end.
    longer = [number for number, token in enumerate(tokens) if token[1] - token[0] > 1]
    inner = [number for number in longer if tokens[number][2]] or [low]
    begins = {low, low - 1, low + 1, inner[0] - 1, inner[0]}
    ends = {high, high + 1, high - 1, inner[-1], inner[-1] + 1, last}
    for begin in sorted(number for number in begins if 0 <= number <= high):
        for end in sorted((number for number in ends if low <= number <= last), reverse=True):
            start, stop = tokens[begin][0], tokens[end][1]
            while text.startswith("=", stop) and stop - tokens[end][1] < _PADDING:
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
    mixed = spelled.lower() != spelled != spelled.upper()
    signed = "+" in spelled and spelled.lower() != spelled.upper()
    padded = spelled.endswith("=")
    if not (mixed or signed or padded) and not _BYTES.search(spelled.encode("ascii")):
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
    if len(bare) % 4 == 1 or bare.isdigit() or bare.islower() or (bare.isupper() and bare == run):
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
