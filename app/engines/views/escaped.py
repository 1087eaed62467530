"""Decode escapes of single characters: in URLs, HTML, JSON, programs and mail, and in addresses spelled out.

An escape that was applied repeatedly (``%2540``, ``&amp;#64;``) is decoded in one step.
"""

import html
import re
import sys
from collections.abc import Iterable, Iterator
from html.entities import html5
from typing import Final

from app.engines.views import gates
from app.engines.views.controls import control_places
from app.engines.views.mapping import Substitution

# Each expression begins with its sign and looks back from there, so that the search skips everything else quickly.
_PERCENT: Final = re.compile(
    r"%(?:u(?P<unit>[0-9A-Fa-f]{4})|(?:25)*[0-9A-Fa-f]{2}(?:%(?:25)*[0-9A-Fa-f]{2})*)"
)
_PERCENT_BYTE: Final = re.compile(r"%(?:25)*([0-9A-Fa-f]{2})")
_ENTITY: Final = re.compile(
    r"&(?:amp;)*+(?:#[xX]0*+[0-9A-Fa-f]{0,6}+;?|#0*+[0-9]{0,7}+;?|(?!amp;)[A-Za-z][A-Za-z0-9]{1,30}+;)|&(?:amp;)+"
)
_ZEROS: Final = re.compile(r"(&#[xX]?)0+(?=[0-9A-Fa-f])")
_ESCAPE: Final = re.compile(
    r"\\(?<!\\\\)\\*+(?:u\{0*+[0-9A-Fa-f]{0,6}\}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[0-3][0-7]{2}|[nrt]|[abefv0](?=[\d+(])|/)"
)
_BYTES: Final = re.compile(r"\\(?<!\\\\)\\*+x[0-9A-Fa-f]{2}(?:\\+x[0-9A-Fa-f]{2})++")
_BYTE: Final = re.compile(r"\\+x([0-9A-Fa-f]{2})")
_WHITE: Final = {**dict.fromkeys("abefv0", " "), "n": "\n", "r": "\r", "t": "\t", "/": "/"}
_QUOTED: Final = re.compile(
    r"=(?:[0-9A-F]{2}(?:=[0-9A-F]{2}){2,}|(?<=\S=)(?![0-9]{2,6}(?![\w.@=-])|20[0-9]{2}-[0-9]{2}-|(?<!\d=)[01])"
    r"(?:[0-9A-F]{2}(?:=[0-9A-F]{2})?|\r?\n)(?=\S))"
)
"""One or two escapes that are no small number, date or address: ``status=200``, ``ip=10.1.2.3``."""
_QUOTED_BYTE: Final = re.compile(r"=([0-9A-F]{2})")
_C1: Final = range(0x80, 0xA0)
_QUOTED_LEAST: Final = 3
"""Mail programs never escape letters and digits, so one or two (``x=42``) mean something else."""

_SPELLED: Final = {
    opening: re.compile(
        rf"\{opening}(?:(?<=\w\{opening})|(?<=\w \{opening})) ?(@|\.|\w{{1,12}}+(?: commercial)?) ?\{closing} ?(?=\w)"
    )
    for opening, closing in ("[]", "()", "{}", "<>")
}
_AT: Final = frozenset(
    {"@", "at", "ät", "aet", "arobase", "arobas", "arroba", "chiocciola", "klammeraffe", "a commercial", "a"}
    | {"apenstaartje", "kukac", "snabel"}
)
_DOT: Final = frozenset({".", "dot", "punkt", "point", "punto", "ponto", "punt", "period"})
_LOUD: Final = re.compile(
    r"(?<![\w.])[a-z0-9][\w.+-]{0,63}+(?P<at> AT )[\w-]{1,63}+(?:(?: DOT |\.)[\w-]{1,63}+){1,4}"
)
_SINGLY: Final = re.compile(
    r"[0-9](?<![0-9] .)(?<![0-9] - .)(?<![\w.,].)(?: (?:- )?[0-9](?![\w.,])){8,18}(?! (?:- )?[0-9])"
)
_LETTERS: Final = re.compile(r"(?<!\S)(?:\S ){5,120}\S(?!\S)")
_HIGH_SURROGATES: Final = range(0xD800, 0xDC00)
_LOW_SURROGATES: Final = range(0xDC00, 0xE000)
_LAST_OF_ASCII: Final = 127
_CONTROL: Final = frozenset(map(chr, (*range(9), 11, 12, *range(14, 32), 127)))


def escapes(text: str) -> Iterator[Substitution]:
    """Yield every escape in ``text`` with the characters that it stands for."""
    if "%" in text:
        yield from _percent(text)
    if "&" in text:
        yield from _entities(text)
    if "\\" in text:
        yield from _backslashes(text)
    if "=" in text and gates.opens(text, gates.QUOTED_PRINTABLE):
        yield from _quoted_printable(text)
    for opening in _SPELLED:
        if opening in text:
            yield from _spelled(text, opening)
    if " AT " in text and gates.opens(text, gates.LOUD):
        yield from _loud(text)
    yield from _spaced(text)


def _percent(text: str) -> Iterator[Substitution]:
    for run in _PERCENT.finditer(text):
        if run["unit"]:
            yield from _character(*run.span(), int(run["unit"], 16), "percent")
            continue
        units = _PERCENT_BYTE.finditer(text, *run.span())
        yield from _characters(((unit.start(), unit.end(), int(unit[1], 16)) for unit in units), "percent")


def _entities(text: str) -> Iterator[Substitution]:
    for entity in _ENTITY.finditer(text):
        name = entity.group().rpartition("amp;")[2] or "&amp;"
        name = name if name[0] == "&" else f"&{name}"
        name = _ZEROS.sub(r"\1", name)
        plain = html.unescape(name) if name[1] == "#" else html5.get(name[1:])
        if plain is not None and plain != name:
            yield Substitution(*entity.span(), "" if plain in _CONTROL else plain, "html")


def _backslashes(text: str) -> Iterator[Substitution]:
    half, begin, end = "", -1, -1
    for row in _BYTES.finditer(text):
        units = _BYTE.finditer(text, *row.span())
        yield from _characters(((unit.start(), unit.end(), int(unit[1], 16)) for unit in units), "escapes")
    for escape in _ESCAPE.finditer(text):
        written = escape.group().lstrip("\\")
        if written in _WHITE:
            yield Substitution(*escape.span(), _WHITE[written[0]], "escapes")
            continue
        octal = written[0] in "0123"
        number = int(written, 8) if octal else int(written[1:].strip("{}"), 16)
        if end == escape.start() and number in _LOW_SURROGATES:
            number = ord((half + chr(number)).encode("utf-16", "surrogatepass").decode("utf-16"))
            yield from _character(begin, escape.end(), number, "escapes")
        elif number in _HIGH_SURROGATES:
            half, (begin, end) = chr(number), escape.span()
        else:
            yield from _character(*escape.span(), number, "escapes")


def _quoted_printable(text: str) -> Iterator[Substitution]:
    for run in _QUOTED.finditer(text):
        if run.group()[1].isspace():
            yield Substitution(*run.span(), "", "quoted-printable")
            continue
        units = [
            (unit.start(), unit.end(), int(unit[1], 16)) for unit in _QUOTED_BYTE.finditer(text, *run.span())
        ]
        # A lone byte of this range is no character, but a part of a number: ``id=92d0``.
        if len(units) == 1 and units[0][2] in _C1:
            continue
        if len(units) >= _QUOTED_LEAST or not bytes(value for _, _, value in units).isalnum():
            yield from _characters(units, "quoted-printable")


def _characters(units: Iterable[tuple[int, int, int]], way: str) -> Iterator[Substitution]:
    """Yield the characters of bytes in UTF-8, each with its place; other bytes count as Latin-1."""
    pending = list(units)
    data = bytes(value for _, _, value in pending)
    characters: list[tuple[int, int, str]] = []
    place = 0
    while place < len(pending):
        plain = _first_of(data[place : place + 4]) if data[place] > _LAST_OF_ASCII else None
        size = 1 if plain is None else len(plain.encode())
        spelled = chr(data[place]) if plain is None else plain
        characters.append((pending[place][0], pending[place + size - 1][1], spelled))
        place += size
    # What follows a control character may belong to it: the colour of a terminal escape.
    controls = control_places("".join(plain for _, _, plain in characters))
    for number, (start, end, plain) in enumerate(characters):
        yield Substitution(start, end, "" if number in controls or plain in _CONTROL else plain, way)


def _first_of(data: bytes) -> str | None:
    """Return the character that ``data`` begins with in UTF-8, or None."""
    for size in range(1, len(data) + 1):
        try:
            return data[:size].decode()
        except UnicodeDecodeError:
            continue
    return None


def _character(start: int, end: int, number: int, way: str) -> Iterator[Substitution]:
    if number <= sys.maxunicode and number not in _LOW_SURROGATES and number not in _HIGH_SURROGATES:
        plain = chr(number)
        yield Substitution(start, end, "" if plain in _CONTROL else plain, way)


def _spelled(text: str, opening: str) -> Iterator[Substitution]:
    """Yield ``(at)`` and ``[dot]`` between words, in some languages, in one kind of brackets."""
    for sign in _SPELLED[opening].finditer(text):
        word = sign[1].lower()
        plain = "@" if word in _AT else "." if word in _DOT else ""
        if plain:
            start = sign.start() - (text[sign.start() - 1] == " ")
            yield Substitution(start, sign.end(), plain, "spelled")


def _loud(text: str) -> Iterator[Substitution]:
    for address in _LOUD.finditer(text):
        yield Substitution(*address.span("at"), "@", "spelled")
        for dot in re.finditer(" DOT ", text[: address.end()][address.end("at") :]):
            yield Substitution(address.end("at") + dot.start(), address.end("at") + dot.end(), ".", "spelled")


def _spaced(text: str) -> Iterator[Substitution]:
    """Yield the blanks between digits that stand alone, and between the letters of an address."""
    runs = list(_SINGLY.finditer(text)) if gates.opens(text, gates.SINGLY) else []
    if "@" in text and " @ " in text and gates.opens(text, gates.LETTERS):
        runs += [run for run in _LETTERS.finditer(text) if "@" in run.group() and "." in run.group()]
    for run in runs:
        for place in range(*run.span()):
            if text[place] == " ":
                yield Substitution(place, place + 1, "", "spaced")
