"""Decode runs of base64 and hexadecimal that are text; keys, hashes and images stay unchanged."""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final, NamedTuple

import numpy as np

from app.engines.views import gates
from app.engines.views.controls import without_controls
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
_CALM: Final = 8
"""Tokens in a row that may be words, where all have the size of one that is none."""
_GAP: Final = 3
_PADDED_BEHIND: Final = re.compile(r"(?:[ \t\r\n]?=){1,2}(?![A-Za-z0-9=])")
_OUTSIDE: Final = re.compile(r"[^A-Za-z0-9+/=_\-]+")
"""What no decoder of base64 reads: blanks, the marks of a quoted mail, letters of any other alphabet."""
_STANDARD: Final = str.maketrans("-_", "+/")
_TEXT: Final = bytes((9, 10, 13, *range(32, 127)))
_SURE: Final = 24
_MOSTLY: Final = 0.85
"""The least share of printable ASCII for a long run to count as text, even if some of it is damaged."""
_RARE: Final = 12
"""Of so many characters of a text at most one is a control."""
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_UNSEEN: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
_MIXED: Final = re.compile(r"(?=.{0,256}[a-z])(?=.{0,256}[A-Z])(?=.{0,256}[0-9])[A-Za-z0-9+/]*+\Z")
_NUMBER: Final = re.compile(r"[0-9]{10}")


class _Token(NamedTuple):
    """A token between blanks; ``strange``: it is no word."""

    start: int
    end: int
    strange: bool


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
    if not (gates.passed(data, gates.MIXED) or gates.passed(data, gates.RUNS)):
        return
    # What follows the last run is a blank.
    classes = np.frombuffer((data + b" ").translate(_CLASSES), np.uint8)
    inside = classes < _AFTER
    edges = (inside[1:] != inside[:-1]).nonzero()[0] + 1
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
    chosen = sure | (telling & (sizes >= _SHORT))
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
        tokens = _row(data, *_token_at(data, _begin(data, place), end), end)
        strange = [number for number, token in enumerate(tokens) if token.strange]
        end = max(tokens[-1].end, end + 1)
        if len(strange) >= _LEAST_TOKENS:
            yield from _among(text, tokens, strange[0], strange[-1])


def _row(data: bytes, start: int, end: int, least: int) -> list[_Token]:
    """Return the tokens around one that is no word: one of every two is none, or all are of one size."""
    first = _token_of(data, start, end)
    size, calm, tokens = end - start, 0, [first]
    while calm < _CALM and (gap := _GAP_BEFORE.search(data, max(least, start - _GAP - 1), start)) is not None:
        start, before_end = _token_at(data, gap.start(), least)
        token = _token_of(data, start, before_end)
        calm = 0 if token.strange else calm + 1
        if calm > 1 and before_end - start != size:
            break
        tokens.insert(0, token)
    calm = 0 if first.strange else 1
    while (following := _FOLLOWING.match(data, end)) is not None:
        start, end = following.span(1)
        token = _token_of(data, start, end)
        calm = 0 if token.strange else calm + 1
        if calm <= 1 or (calm <= _CALM and end - start == size):
            tokens.append(token)
            size = end - start if token.strange else size
            continue
        if end - start < size:
            tokens.append(token)  # perhaps the rest
        break
    return tokens


def _token_of(data: bytes, start: int, end: int) -> _Token:
    return _Token(start, end, _STRANGE.match(data, start, end) is not None)


def _among(text: str, tokens: Sequence[_Token], low: int, high: int) -> Iterator[Substitution]:
    """Yield what the tokens of a row encode together; a token at either end may be a word or a part of it."""
    last = len(tokens) - 1
    # A sign by itself, such as the mark of an item, may stand at either end.
    inner = [number for number, token in enumerate(tokens) if token.strange and token.end - token.start > 1]
    size = Counter(tokens[number].end - tokens[number].start for number in inner or [low]).most_common(1)[0][
        0
    ]
    equal = [number for number, token in enumerate(tokens) if token.end - token.start == size]
    begins = {
        low,
        low - 1,
        low + 1,
        *(number + more for number in inner[:1] for more in (-1, 0)),
        *equal[:_CALM],
    }
    ends = {high, high + 1, high - 1, last, *(number + more for number in inner[-1:] for more in (0, 1))}
    ends |= {number + more for number in equal[-1:] for more in (0, 1)}
    for begin in sorted(number for number in begins if 0 <= number <= high):
        for end in sorted((number for number in ends if low <= number <= last), reverse=True):
            start, stop = tokens[begin].start, tokens[end].end
            padding = _PADDED_BEHIND.match(text, stop)
            stop = stop if padding is None else padding.end()
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
        return _shown(data.decode("ascii"))
    if len(data) >= _SURE and strange <= len(data) * (1 - _MOSTLY):
        return _shown(data.decode("utf-8", "replace"))
    if not len(data) % 2 and strange <= len(data) * 0.6:
        for zeros, encoding in ((data[1::2], "utf-16-le"), (data[::2], "utf-16-be")):
            if zeros.count(0) * 4 >= len(zeros) * 3:
                return _shown(data.decode(encoding, "replace")).lstrip("\ufeff")
    return _utf8(data)


def _utf8(data: bytes) -> str | None:
    """Return ``data`` decoded where it is UTF-8 that is mostly shown; a truncated last character is dropped."""
    try:
        plain = data.decode()
    except UnicodeDecodeError as error:
        if error.start < len(data) - 3 or error.reason != "unexpected end of data":
            return None
        plain = data[: error.start].decode()
    return _shown(plain) if is_text(plain) else None


def is_text(plain: str) -> bool:
    """Return whether characters are mostly printable, apart from those that no reader sees."""
    seen = _UNSEEN.sub("", plain)
    # Bytes that are no text have controls everywhere.
    if len(_CONTROL.findall(seen)) * _RARE > len(seen):
        return False
    seen = _shown(seen)
    return seen != "" and sum(map(str.isprintable, seen)) >= len(seen) * _MOSTLY


def _shown(plain: str) -> str:
    """Return text without control characters and terminal escapes."""
    view = without_controls(plain)
    return plain if view is None else view.text
