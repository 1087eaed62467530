"""Make plain views of a text that may hide its message: normalised, respelled and decoded, mapped to its offsets.

Every view takes time linear in the length of the text, and the amount of decoded text is bounded.
"""

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from app.engines.injection.unmasking import unmasked
from app.engines.views.mapping import TextView
from app.engines.views.plain import PLAIN, plain_view
from app.engines.views.reading import disguises

Locate = Callable[[int, int], tuple[int, int]]
"""Maps offsets in a view to offsets in the text."""

_MAX_DEPTH = 3
_MAX_RUNS = 32
_MAX_DECODED = 20_000
"""Most characters of decoded runs that are checked in one text; more is data, not a message."""

_LOOKALIKES = str.maketrans(
    "АВЕЅЗІЈКМНОРСТХУҮаӓвеёзѕіїјкмнопрстгухһԁԛԝѵьΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβεγηικνοπρτυχωɑɡɩɪʟʏցօոսհՏ",
    "ABESZIJKMHOPCTXYYaabee3siijkmhonpctryxhdqwvbABEZHIKMNOPTYXaBeynikvonptuxwagiiLYgonuhS",
)
_LEET = str.maketrans("0134578@$!|+", "oieastbasilt")
_LEET_WORD = re.compile(r"[A-Za-z][0134578@$!|+]+[A-Za-z]|\b[0134578@$!|+][A-Za-z]{2}")
_ROT13 = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm",
)
_SPELLED = re.compile(r"(?:\b\w[ .\-_*|/,]{1,3}){5,}\w\b")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?:(?:\\x|0x)?[0-9A-Fa-f]{2}[ :,]?){10,}")
_ESCAPED = re.compile(r"(?:\\u[0-9A-Fa-f]{4}){4,}")
_PERCENT = re.compile(r"[\w.~+-]{0,16}(?:%[0-9A-Fa-f]{2}[\w.~+-]{0,16}){3,}")
_ENTITIES = re.compile(r"(?:&#(?:x[0-9A-Fa-f]{1,6}|[0-9]{1,7});){4,}")
_TAGS = re.compile("[\U000e0020-\U000e007e]{2,}")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_BINARY = re.compile(r"(?:[01]{8}\s?){6,}")
_LETTERS = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class InjectionView:
    """One reading of a text; ``hidden``: invisible to a reader of the text; ``encoded``: decoded from it."""

    text: str
    locate: Locate
    encoded: bool = False
    hidden: bool = False
    guessed: bool = False
    """The text was respelled on speculation: only rules check it, not the classifier."""
    unmasked: bool = False
    """Words in disguise are plain in it; it reads better than the text, and is no other text."""
    spelled: bool = False
    """The words were written letter by letter, so no blanks are left between them."""


def views(text: str) -> list[InjectionView]:
    """Return the views of ``text``, the plain one first."""
    plain = plain_view(text)
    first = InjectionView(text, _same) if plain is None else InjectionView(plain.text, plain.original_span)
    every_view = [first, *_respelled(first)]
    every_view += _unmasked(first)
    every_view += _read(text)
    if not text.isascii():
        every_view += list(_invisible(text))
    budget = _MAX_DECODED
    pending = [(first, 0)]
    while pending:
        view, depth = pending.pop(0)
        for decoded in _decoded(view):
            budget -= len(decoded.text)
            if budget < 0:
                return every_view
            every_view.append(decoded)
            if depth + 1 < _MAX_DEPTH:
                pending.append((decoded, depth + 1))
    return every_view


def _unmasked(first: InjectionView) -> Iterator[InjectionView]:
    """Yield the views in which words in disguise can be read; they read better, so the classifier checks them too."""
    for view in unmasked(first.text):

        def locate(start: int, end: int, view: TextView = view) -> tuple[int, int]:
            return first.locate(*view.original_span(start, end))

        yield InjectionView(view.text, locate, unmasked=True)


def _read(text: str) -> list[InjectionView]:
    """Return the last reading of ``text`` as detection of personal data reads it, if it undoes any encoding."""
    decoded = disguises(text)[-1:]
    return [
        InjectionView(view.text, view.original_span, encoded=True, guessed=True)
        for view in decoded
        if view.ways != PLAIN
    ]


def _same(start: int, end: int) -> tuple[int, int]:
    return start, end


def _whole(start: int, end: int, locate: Locate) -> Locate:
    """Return a map of every offset to one run, as decoded text stands for the whole run."""
    place = locate(start, end)
    return lambda _start, _end: place


def _respelled(view: InjectionView) -> Iterator[InjectionView]:
    text, size = view.text, len(view.text)
    folded = text.translate(_LOOKALIKES)
    if folded != text:
        yield InjectionView(folded, view.locate, guessed=True)
    if _LEET_WORD.search(folded):
        yield InjectionView(folded.translate(_LEET), view.locate, guessed=True)
    yield InjectionView(text.translate(_ROT13), view.locate, encoded=True, guessed=True)
    yield InjectionView(
        text[::-1],
        lambda start, end: view.locate(size - end, size - start),
        encoded=True,
        guessed=True,
    )
    yield from _spelled(view)


def _spelled(view: InjectionView) -> Iterator[InjectionView]:
    """Yield words that were written letter by letter, without the separators."""
    for number, run in enumerate(_SPELLED.finditer(view.text)):
        if number >= _MAX_RUNS:
            return
        joined = re.sub(r"\W|_", "", run[0])
        yield InjectionView(joined, _whole(*run.span(), view.locate), guessed=True, spelled=True)


def _invisible(text: str) -> Iterator[InjectionView]:
    for run in _TAGS.finditer(text):
        decoded = "".join(chr(ord(char) - 0xE0000) for char in run[0])
        yield InjectionView(decoded, _whole(*run.span(), _same), encoded=True, hidden=True)
    for run in _SELECTORS.finditer(text):
        raw = bytes(ord(char) - 0xFE00 if char <= "\ufe0f" else ord(char) - 0xE0100 + 16 for char in run[0])
        decoded = raw.decode("utf-8", "replace")
        if _says_something(decoded):
            yield InjectionView(decoded, _whole(*run.span(), _same), encoded=True, hidden=True)


def _decoded(view: InjectionView) -> Iterator[InjectionView]:
    for sign, pattern, decode in _DECODERS:
        if sign not in view.text:
            continue
        for number, run in enumerate(pattern.finditer(view.text)):
            if number >= _MAX_RUNS:
                break
            text = decode(run[0])
            if text is not None and text != run[0] and _says_something(text):
                yield InjectionView(text, _whole(*run.span(), view.locate), encoded=True)


def _says_something(text: str) -> bool:
    """Return whether ``text`` may be a message: mostly letters and blanks, no control characters."""
    sample = text[:400]
    if len(sample) < 8 or any(ord(char) < 32 and char not in "\t\n\r" for char in sample):  # noqa: PLR2004 - a word
        return False
    plain = len(_LETTERS.findall(sample)) + sample.count(" ")
    return plain >= 0.7 * len(sample) and "\ufffd" not in sample


def _from_base64(run: str) -> str | None:
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    if len(body) % 4 == 1:
        body = body[:-1]
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4)).decode()
    except (binascii.Error, ValueError):
        return None


def _from_hex(run: str) -> str | None:
    digits = re.sub(r"\\x|0x|[ :,]", "", run)
    try:
        return bytes.fromhex(digits[: len(digits) // 2 * 2]).decode()
    except ValueError:
        return None


def _from_binary(run: str) -> str | None:
    bits = re.sub(r"\s", "", run)
    try:
        return bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits) - 7, 8)).decode()
    except ValueError:
        return None


def _from_escapes(run: str) -> str | None:
    return "".join(chr(int(digits, 16)) for digits in run.split("\\u")[1:])


_DECODERS: tuple[tuple[str, re.Pattern[str], Callable[[str], str | None]], ...] = (
    ("", _BASE64, _from_base64),
    ("", _HEX, _from_hex),
    ("01", _BINARY, _from_binary),
    ("\\u", _ESCAPED, _from_escapes),
    ("%", _PERCENT, unquote),
    ("&#", _ENTITIES, html.unescape),
)
