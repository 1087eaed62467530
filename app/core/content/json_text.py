"""Locate the strings, keys and numbers of JSON inside strings, so that they can be edited in place."""

import json
import re
from dataclasses import dataclass

from app.core.content.leaves import LiteralOffsets

MAX_NESTING = 64
MAX_LITERALS = 8
"""How many levels of JSON inside JSON strings are read; deeper levels are plain text."""

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|([{\[])|([}\]])|(,)|(-?[0-9][0-9.eE+-]*)')
_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)
_PAIRS = {"{": "}", "[": "]", '"': '"'}


@dataclass(frozen=True, slots=True)
class JsonText:
    """One string, key or number of a JSON text: decoded, with the offsets that locate it in the enclosing text."""

    kind: str
    text: str
    pointer: str
    depth: int
    offsets: tuple[LiteralOffsets, ...]


def is_json_text(text: str) -> bool:
    """Return whether ``text`` is a JSON object, array or string (not a bare number or word) within the limits."""
    stripped = text.strip(" \t\r\n")
    if len(stripped) < 2 or _PAIRS.get(stripped[0]) != stripped[-1]:  # noqa: PLR2004 - two quotes or brackets
        return False
    try:
        json.loads(stripped)
    except (ValueError, RecursionError):
        return False
    return _nesting(stripped) <= MAX_NESTING


def read_json_text(text: str) -> list[JsonText] | None:
    """Return the parts of a JSON text in the order of the text, or None if it is no JSON text."""
    if not is_json_text(text):
        return None
    parts: list[JsonText] = []
    _read_parts(text, "", (), parts)
    return parts


def json_objects(text: str) -> list[tuple[int, int, dict[str, str]]]:
    """Return begin, end and members of every object of a JSON text; members that are no strings have an empty value."""
    objects: list[tuple[int, int, dict[str, str]]] = []
    open_objects: list[tuple[int, dict[str, str]]] = []
    key = ""
    for token in _TOKEN.finditer(text):
        if token[3]:
            open_objects.append((token.start(), {}))
        elif token[4]:
            start, members = open_objects.pop()
            if token[4] == "}":
                objects.append((start, token.end(), members))
        elif token[2]:
            key = token[1]
            open_objects[-1][1].setdefault(key, "")
        elif token[1] is not None and open_objects and key in open_objects[-1][1]:
            open_objects[-1][1][key] = token[1]
    return objects


def _nesting(text: str) -> int:
    level = deepest = 0
    for token in _TOKEN.finditer(text):
        if token[3]:
            level += 1
            deepest = max(deepest, level)
        elif token[4]:
            level -= 1
    return deepest


def _read_parts(text: str, base: str, around: tuple[LiteralOffsets, ...], parts: list[JsonText]) -> None:
    steps: list[str | int] = []
    for token in _TOKEN.finditer(text):
        if token[3]:
            steps.append(0 if token[3] == "[" else "")
        elif token[4]:
            steps.pop()
        elif token[5]:
            if isinstance(steps[-1], int):
                steps[-1] += 1
        elif token[6] is not None:
            offsets = (*around, LiteralOffsets(token.start(6), None))
            parts.append(JsonText("number", token[6], base + _pointer(steps), len(around), offsets))
        else:
            _read_string(token, base, steps, around, parts)


def _read_string(
    token: re.Match[str],
    base: str,
    steps: list[str | int],
    around: tuple[LiteralOffsets, ...],
    parts: list[JsonText],
) -> None:
    raw = token[1]
    decoded: str = json.loads(f'"{raw}"', strict=False) if "\\" in raw else raw
    offsets = (*around, literal_offsets(raw, token.start(1)))
    if token[2]:
        steps[-1] = decoded
        parts.append(JsonText("key", decoded, base + _pointer(steps), len(offsets), offsets))
    elif len(offsets) < MAX_LITERALS and is_json_text(decoded):
        _read_parts(decoded, base + _pointer(steps) + "#", offsets, parts)
    else:
        parts.append(JsonText("string", decoded, base + _pointer(steps), len(offsets), offsets))


def literal_offsets(raw: str, begin: int) -> LiteralOffsets:
    """Return the offset of each decoded character of the literal ``raw``, which begins at ``begin``."""
    if "\\" not in raw:
        return LiteralOffsets(begin, None)
    starts = [character.start() for character in _CHARACTER.finditer(raw)]
    return LiteralOffsets(begin, (*starts, len(raw)))


def _pointer(steps: list[str | int]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
