"""Tell programs called like people (Jenkins, Cassandra) by the programs in camel case that are named beside them."""

import re
from typing import Final

_ITEM: Final = r"[A-Z][\w.+#]{1,30}"
_ROW: Final = re.compile(rf"{_ITEM}(?:, (?:and |or )?{_ITEM}| (?:and|or) {_ITEM}){{2,12}}")
_MOVED: Final = re.compile(
    rf"\b(?:migrat|mov|switch|upgrad|port|chang)(?:e|ed|ing|ped)? (?:\w+ ){{0,3}}from ({_ITEM}) to ({_ITEM})"
)
_CAMEL: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_AROUND: Final = 160


def is_program(text: str, start: int, end: int) -> bool:
    """Return whether the word ``text[start:end]`` stands in a row of three or more with a program in camel case.

    So does a word from which, or to which, somebody moved, where the other word is in camel case.
    """
    if " " in text[start:end] or not text[start:end][:1].isupper():
        return False
    low, high = max(0, start - _AROUND), min(len(text), end + _AROUND)
    return any(
        match.start() <= start and end <= match.end() and _CAMEL.search(match.group()) is not None
        for rows in (_ROW, _MOVED)
        for match in rows.finditer(text, low, high)
    )
