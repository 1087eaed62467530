"""Find the heads of tables: what names the cells of rows, in lists of columns and in first rows."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from app.core.content.telling_names import telling

COLUMNS: Final = frozenset(
    {
        *("columns", "column_names", "columnNames", "cols", "header", "headers", "fields", "heads"),
        *("labels", "keys", "names"),
    }
)
"""Members that hold the heads of the rows or values beside them, as strings or as objects with one of `_HEAD_NAMES`."""
ABOUT_ROWS: Final = frozenset({"schema", "meta", "metadata"})
_HEAD_NAMES: Final = frozenset({"name", "Name", "key", "label", "field", "title"})
_HEAD: Final = re.compile(r"[^\W\d][\w .#/()'\u2019\u00b0\u00ba\-]{0,48}")

Heads = dict[str, dict[str, str]]
"""By the pointer of a table, without marks of JSON in strings: its heads by the position of their column."""


def tables(strings: Iterable[tuple[str, str]]) -> tuple[Heads, Heads]:
    """Return the heads in lists of columns, by the object that holds them, and in first rows, by the table.

    ``strings`` are the pointers and texts of a context's strings.
    """
    columns: Heads = defaultdict(dict)
    first_rows: Heads = defaultdict(dict)
    for pointer, text in strings:
        holder, _, position = pointer.rpartition("/")
        if position in _HEAD_NAMES:
            holder, _, position = holder.rpartition("/")
        if not position.isdecimal():
            continue
        around, _, name = holder.rpartition("/")
        if name in COLUMNS:
            about = around.rpartition("/")
            table = about[0] if about[2] in ABOUT_ROWS else around
            columns[plain_pointer(table)].setdefault(position, text)
        elif name == "0" and holder + "/" + position == pointer:
            first_rows[plain_pointer(around)][position] = text
    return (
        {table: heads for table, heads in columns.items() if any(map(telling, heads.values()))},
        {table: heads for table, heads in first_rows.items() if _are_heads(heads)},
    )


def plain_pointer(pointer: str) -> str:
    """Return a pointer without the marks of JSON in strings."""
    return pointer.replace("#", "")


def is_table(value: Mapping[str, Any] | list[Any]) -> bool:
    """Return whether an object or a list holds heads of which one tells what is in its cells."""
    if isinstance(value, list):
        first = value[0] if value else None
        return (
            isinstance(first, list)
            and all(isinstance(head, str) for head in first)
            and _are_heads({str(position): head for position, head in enumerate(first)})
        )
    if any(_tell(value[name]) for name in COLUMNS.intersection(value)):
        return True
    about = (value[name] for name in ABOUT_ROWS.intersection(value))
    return any(
        isinstance(member, dict) and any(_tell(member[name]) for name in COLUMNS.intersection(member))
        for member in about
    )


def _tell(heads: Any) -> bool:
    if not isinstance(heads, list):
        return False
    names = ([head.get(name) for name in _HEAD_NAMES] if isinstance(head, dict) else [head] for head in heads)
    return any(isinstance(name, str) and telling(name) for of_head in names for name in of_head)


def _are_heads(heads: Mapping[str, str]) -> bool:
    """Return whether a first row has the form of heads, of which one at least tells something."""
    return (
        len(heads) > 1
        and all(str(position) in heads for position in range(len(heads)))
        and all(_HEAD.fullmatch(head) for head in heads.values())
        and any(map(telling, heads.values()))
    )
