"""Shared by all commands: exit codes, errors in one sentence, tables and JSON on standard output."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
INTERRUPTED: Final = 130
_MOVING: Final = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]"
)
"""Characters that order a terminal to do something, or turn what is read around."""


class CommandError(Exception):
    """End the command with one sentence on standard error: what is wrong and how to fix it."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code


def fail(sentence: str, code: int = FAILED) -> NoReturn:
    """End the command with ``sentence``."""
    raise CommandError(sentence, code)


def note(sentence: str) -> None:
    """Print a message on standard error, where it does not mix with results."""
    print(harmless(sentence), file=sys.stderr, flush=True)


def show_text(sentence: str) -> None:
    """Print a result of one sentence, which may hold what a service said."""
    print(harmless(sentence))


def harmless(text: str) -> str:
    """Return a text, also of JSON, whose characters that could move something on a terminal are escaped as in JSON."""
    return _MOVING.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def show_json(value: Any) -> None:
    """Print ``value`` as indented JSON."""
    print(harmless(json.dumps(value, ensure_ascii=False, indent=2, default=str)))


def show_lines(values: Iterable[Any]) -> None:
    """Print one compact JSON value per line."""
    for value in values:
        print(harmless(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)))


def show_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in columns as wide as their widest cell; a missing value is a hyphen."""
    cells = [[*head], *([cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        print("  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())


def cell(value: object) -> str:
    """Return ``value`` as text for a table: times in UTC to the second, control characters escaped."""
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in str(value)
    )


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation before an irreversible step; without a terminal ``--yes`` is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail("This cannot be undone: confirm it with --yes.", USAGE)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        fail("Nothing was changed.")
