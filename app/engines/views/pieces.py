"""Join values that are written in pieces: numbers over lines and slashes, arrays of digits, strings that are added up.

Numbers stand beside numbers in every table. So digits are only joined where together they have the form of a value: a
card number with its check digit, or the groups of a social security number.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from string import digits
from typing import Final

from app.core.content.shapes.card_numbers import LENGTHS, is_card_number
from app.engines.views import gates
from app.engines.views.mapping import Substitution

PIECES: Final = "pieces"

_SIGNS: Final = r"\s\"'`,;:/|_*+.\\\-–—·•~=#&<>()\[\]{}"  # noqa: RUF001 - dashes as they occur in texts
_GROUPS: Final = re.compile(
    rf"[0-9](?<![A-Za-z0-9].)[0-9]{{0,18}}+(?:[{_SIGNS}]{{1,10}}+[0-9]{{1,19}}+){{1,255}}+(?![A-Za-z0-9])"
)
_GROUP: Final = re.compile(r"[0-9]+")
_IBAN: Final = re.compile(
    r"[A-Z](?<![A-Za-z0-9].)[A-Z][0-9]{2}(?:(?:[\s_/|*:.,]|-\s){1,3}[A-Z0-9]{2,4}){3,8}+(?![A-Za-z0-9])"
)
_TABULAR: Final = frozenset({",", ", ", ";", "; ", " ", "  ", "\t", "\n", "\r\n", "|", " | "})
"""What stands between the numbers of a table."""
_PLAINLY: Final = frozenset({"-", " ", "."})
"""What stands between the groups of a number as people write it, so that the patterns know it."""
_ORDINARY: Final = _TABULAR | _PLAINLY
_SSN: Final = (3, 2, 4)
_SSN_LINES: Final = re.compile(
    r"([0-9]{3})(?<![0-9\n]...)\r?\n([0-9]{2})\r?\n([0-9]{4})(?![0-9]|[ \t]*\r?\n[ \t]*[0-9])"
)
"""A social security number over three lines, behind which no column of numbers goes on."""
_UNUSUAL: Final = frozenset({(4, 4, 4, 3), (4, 4, 4, 2)})
"""Groups that people write, though no card has them so: the patterns do not know them."""
_FEW: Final = 6
_MANY: Final = 40
_LINE_BEFORE: Final = re.compile(r"(?<=[\w.+-])[ \t]*\r?\n[ \t>]{0,8}\Z")
_LINE_BEHIND: Final = re.compile(r"[ \t]*\r?\n[ \t>]{0,8}(?=\w+[.-])")
_REACH: Final = 32
"""Characters of a line break inside an address, with the blanks and margins around it."""
_LINE_BREAK: Final = re.compile(r"[ \t]?\r?\n[ \t>]{0,8}")
_ADDED: Final = re.compile(
    r"([\"'`])\s{0,4}(?:\+|\|\||&|\.\.?|<<)\s{0,4}(?:(?<=[\w.@+\-]\1)|(?<=[\"'`+|&.<\s]))\1(?=[\w.@+\-])"
)
_QUOTED: Final = re.compile(
    r"[\"'`][^\t\r\n\"'`\\,][\"'`](?:\s{0,8},\s{0,8}[\"'`][^\t\r\n\"'`\\,][\"'`]){4,}"
)
_BRACKETED: Final = {
    "[": re.compile(r"\[[^\s\[\]]\](?:[ ]?\[[^\s\[\]]\]){4,}"),
    "(": re.compile(r"\([^\s()]\)(?:[ ]?\([^\s()]\)){4,}"),
    "{": re.compile(r"\{[^\s{}]\}(?:[ ]?\{[^\s{}]\}){4,}"),
}


def numbers(text: str) -> Iterator[Substitution]:
    """Yield numbers in pieces as a whole, and what stands between the groups of an account number."""
    if not gates.holds_any(text, digits):
        return
    for run in gates.matches(_GROUPS, text, gates.GROUPS):
        yield from _numbers(text, run)
    for run in gates.matches(_IBAN, text, gates.ACCOUNTS):
        for gap in re.finditer(r"[^A-Z0-9]+", run.group()):
            if gap.group() != " ":
                yield Substitution(run.start() + gap.start(), run.start() + gap.end(), " ", PIECES)


def strings(text: str) -> Iterator[Substitution]:
    """Yield what stands between the pieces of any other value: line breaks at an address, quotes, brackets."""
    if "@" in text and "\n" in text:
        yield from _lines(text)
    yield from _quoted(text)
    for opening, pattern in _BRACKETED.items():
        if opening in text:
            for run in pattern.finditer(text):
                yield from _singles(run)


def _lines(text: str) -> Iterator[Substitution]:
    """Yield line breaks beside the sign of an address."""
    place = text.find("@")
    while place >= 0:
        before = _LINE_BEFORE.search(text, max(0, place - _REACH), place)
        behind = _LINE_BEHIND.match(text, place + 1)
        if before is not None and text[place + 1 : place + 2].isalnum():
            yield Substitution(before.start(), place + 1, "@", PIECES)
        elif behind is not None and text[place - 1 : place].isalnum():
            yield Substitution(place, behind.end(), "@", PIECES)
        place = text.find("@", place + 1)


def _quoted(text: str) -> Iterator[Substitution]:
    for added in gates.matches(_ADDED, text, gates.ADDED):
        yield Substitution(*added.span(), "", PIECES)
    for run in gates.matches(_QUOTED, text, gates.QUOTED):
        yield from _singles(run)


def _singles(run: re.Match[str]) -> Iterator[Substitution]:
    """Yield the signs of a row, each with what is around it."""
    for unit in re.finditer(r"[\[({\"'`](.)[\])}\"'`](?:[\s,]{1,17}(?=[\[({\"'`]))?", run.group()):
        yield Substitution(run.start() + unit.start(), run.start() + unit.end(), unit[1], PIECES)


def _numbers(text: str, run: re.Match[str]) -> Iterator[Substitution]:
    """Yield the numbers in a run of groups of digits: all of it, or groups with the same signs between them."""
    written = run.group()
    gaps = _GROUP.split(written)[1:-1]
    sizes, first = [len(group) for group in _GROUP.findall(written)], 0
    if _is_plain(sizes, gaps):
        return
    if len(sizes) <= _MANY and (plain := _joined(written, sizes, gaps)):
        yield Substitution(*run.span(), plain, PIECES)
        return
    if _ORDINARY.issuperset(gaps):
        for lines in _SSN_LINES.finditer(text, *run.span()):
            yield Substitution(*lines.span(), "-".join(lines.groups()), PIECES)
        return
    places = [group.span() for group in _GROUP.finditer(text, *run.span())]
    for _, same in groupby(gaps):
        last = first + len(list(same))
        of_group = sizes[first : last + 1]
        if last - first < min(_MANY, len(gaps)) and not _is_plain(of_group, gaps[first:last]):
            start, end = places[first][0], places[last][1]
            if plain := _joined(text[start:end], of_group, gaps[first:last]):
                yield Substitution(start, end, plain, PIECES)
        first = last


def _is_plain(sizes: Sequence[int], gaps: Sequence[str]) -> bool:
    """Return whether groups stand as people write a number, so that the patterns know it."""
    return len(gaps) < _FEW and _PLAINLY.issuperset(gaps) and tuple(sizes) not in _UNUSUAL


def _joined(written: str, sizes: Sequence[int], gaps: Sequence[str]) -> str:
    """Return the number that groups of ``sizes`` digits form together; empty if they form none."""
    if tuple(sizes) == _SSN:
        return "-".join(_GROUP.findall(written)) if _is_divided(gaps) else ""
    if sum(sizes) not in LENGTHS:
        return ""
    number = "".join(_GROUP.findall(written))
    return number if is_card_number(number, sizes) else ""


def _is_divided(gaps: Sequence[str]) -> bool:
    """Return whether three numbers are one: joined by signs that no list has, quoted each by itself, on three lines."""
    return all(
        any(sign in "-/_|*\\~–" for sign in gap)  # noqa: RUF001
        or gap.strip() in ('","', "','")
        or _LINE_BREAK.fullmatch(gap)
        for gap in gaps
    )
