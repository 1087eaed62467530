# ruff: noqa: RUF001 - apostrophes are those of texts
"""Read tables as forms: put the head of a column, which alone describes its cells, before each cell.

This covers CSV and similar formats, tables of Markdown and of consoles, and ``INSERT`` with a list of columns.
``7,1990-01-02`` below ``id,dob`` becomes ``dob: 1990-01-02``, so that a date of birth is found as in a form.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from app.core.content.cues.reading import in_english
from app.engines.views.mapping import Substitution, TextView, respelled

_WAY: Final = "table"
_MOST_COLUMNS: Final = 200
_LONGEST_ROW: Final = 20_000
_HEAD: Final = re.compile(r"[^\W\d][\w .#/()'’°º\-]{0,48}")
_TELLING: Final = re.compile(
    r"(?<![^\W_])(?:ids?|no|nr|num|number|nbr|code|ssn|sin|dob|tin|ein|vin|mrn|pin|cvv|pan|imei|mac|iban|bic|swift|dni|nif|cpf|bsn)(?![^\W_])"
    r"|(?-i:(?<=[a-z])(?:Id|No|Nr|Number|Code)(?![a-z]))|number|nummer|birth|born|geb|naiss|nac|nasc|name|nom|user|login|passw|passport|licen[cs]e"
    r"|account|acct|konto|compte|cuenta|conto|conta|card|phone|tel|mobile|fax|address|street|zip|post|routing|plate|serial|polic|claim|member"
    r"|patient|client|customer|employee|insur|tax",
    re.IGNORECASE,
)
"""Matches heads that the cells of their column need; other columns stay unchanged."""

_DELIMITERS: Final = ("\t", "|", ";", ",")
_AROUND_HEAD: Final = " \"'*`"
_FIRST: Final = re.compile(rf"[\t|;,{_AROUND_HEAD}]*+{_HEAD.pattern}+[{_AROUND_HEAD}]*+[\t|;,]")
"""Beginning of a row that may contain heads; a quick check, as few rows do."""

_CELLS: Final = {
    mark: re.compile(rf"(?:[ ]?\"(?:[^\"\n]|\"\")*\"[ ]?(?=[{re.escape(mark)}]|\Z)|[^{re.escape(mark)}\n]*)")
    for mark in _DELIMITERS
}
_RULE: Final = re.compile(r"[\s|+:=\-]+")
_VALUES: Final = re.compile(r"\)\s{0,9}[vV][aA][lL][uU][eE]")
"""Text after the columns of every ``INSERT``; rarer and faster to find than the word itself."""

_INSERT: Final = re.compile(
    r"insert\s{1,9}into\s{1,9}[\w.\"`\[\]]{1,128}\s{0,9}\((?P<heads>[^()']{1,4000})\)\s{0,9}values?\s{0,9}(?=\()",
    re.IGNORECASE,
)
_QUOTED: Final = r"'(?:[^']|'')*+'"
_VALUE: Final = re.compile(rf"\s*+(?P<value>(?:{_QUOTED}|[^',()]|\((?:{_QUOTED}|[^()'])*+\))*+)(?P<end>[,)])")
_NEXT_ROW: Final = re.compile(r"\s*,\s*\(")

Cell = tuple[int, int]


def table_view(text: str) -> TextView | None:
    """Return ``text`` with the heads of columns before the cells of its tables; None where it has no tables."""
    changes = [*_inserted(text), *_delimited(text)]
    if not changes:
        return None
    kept: list[Substitution] = []
    for change in sorted(changes):
        if not kept or change.start >= kept[-1].end:
            kept.append(change)
    return respelled(text, kept)


def _delimited(text: str) -> Iterator[Substitution]:
    """Yield the heads of tables whose rows are lines."""
    mark, heads = "", [""]
    begin = 0
    for line in text.splitlines(keepends=True):
        row = line.rstrip("\r\n")
        cells = list(_cells(row, mark)) if mark and len(row) <= _LONGEST_ROW else []
        if mark and len(cells) == len(heads):
            yield from _headed(row, begin, cells, heads)
        elif not (mark and row and _RULE.fullmatch(row)):
            mark, heads = _heads(row)
        begin += len(line)


def _heads(row: str) -> tuple[str, list[str]]:
    """Return delimiter and heads of a row that may be the first of a table; no delimiter where it cannot be.

    Heads that do not describe cells are empty.
    """
    if len(row) > _LONGEST_ROW or not _FIRST.match(row):
        return "", []
    mark = next(mark for mark in _DELIMITERS if mark in row)
    heads: list[str] = []
    for start, end in _cells(row, mark):
        head = row[start:end].strip(_AROUND_HEAD)
        if head and not _HEAD.fullmatch(head):
            return "", []
        heads.append(head)
    named = [head for head in heads if head]
    framed = mark == "|" and len(heads) - len(named) <= 2  # noqa: PLR2004 - one at either end
    fits = 1 < len(named) <= _MOST_COLUMNS and (framed or len(named) == len(heads))
    # Check the meaning of the heads last: it costs most, and few rows have the form of heads.
    telling = list(map(_telling, heads)) if fits else []
    return (mark, telling) if any(telling) else ("", [])


@lru_cache(maxsize=4096)
def _telling(head: str) -> str:
    """Return a head that describes its cells, in English if it is a word of another language; else an empty string."""
    head = in_english(head.lower())
    return head if _TELLING.search(head) else ""


def _cells(row: str, mark: str) -> Iterator[Cell]:
    """Yield start and end of the cells of a row."""
    start = 0
    if '"' not in row:
        for cell in row.split(mark, _MOST_COLUMNS + 1)[: _MOST_COLUMNS + 1]:
            yield start, start + len(cell)
            start += len(cell) + 1
        return
    pattern = _CELLS[mark]
    for _ in range(_MOST_COLUMNS + 1):
        quoted_cell = pattern.match(row, start)
        end = quoted_cell.end() if quoted_cell else start
        yield start, end
        if end >= len(row) or row[end] != mark:
            break
        start = end + 1


def _headed(row: str, begin: int, cells: Sequence[Cell], heads: Sequence[str]) -> Iterator[Substitution]:
    for (start, end), head in zip(cells, heads, strict=True):
        if head and row[start:end].strip(" \"'"):
            low = begin + start
            # Replace the delimiter before a cell by a line break.
            yield Substitution(low - 1 if start else low, low, f"\n{head}: " if start else f"{head}: ", _WAY)


def _inserted(text: str) -> Iterator[Substitution]:
    """Yield insertions of the names of columns before the values of ``INSERT``."""
    for statement in _INSERT.finditer(text) if _VALUES.search(text) else ():
        heads = [_telling(head.strip(' \t\r\n"`[]')) for head in statement["heads"].split(",")]
        place = statement.end() + 1
        while len(heads) <= _MOST_COLUMNS:
            values: list[Cell] = []
            value = None
            while len(values) < len(heads) and (value := _VALUE.match(text, place)):
                values.append(value.span("value"))
                place = value.end()
                if value["end"] == ")":
                    break
            if value is None or value["end"] != ")" or len(values) != len(heads):
                break
            for (start, end), head in zip(values, heads, strict=True):
                if head and start < end:
                    yield Substitution(start, start, f"\n{head}: ", _WAY)
            following = _NEXT_ROW.match(text, place)
            if following is None:
                break
            place = following.end()
