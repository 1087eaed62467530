"""The list of survivors that are equivalent or accepted, each with a reason, and the entries that match nothing."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERDICTS = {
    "equivalent": "no input tells it from the original",
    "accepted": "a test would cost more than the fault",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One listed survivor: the qualified function, its changed lines before and after, the verdict and the reason.

    Neither path nor line is named, so an entry survives shifted lines and moved modules.
    """

    function: str
    before: str
    after: str
    verdict: str
    reason: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what a mutant must have to be this one."""
        return self.function, self.before, self.after


def read_entries(path: Path) -> list[Entry]:
    """Return the entries of a file; raises ``ValueError`` for an unknown verdict, an empty reason, or a double."""
    entries = [Entry(**row) for row in tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", [])]
    seen: set[tuple[str, str, str]] = set()
    for entry in entries:
        if entry.verdict not in VERDICTS or not entry.reason.strip():
            raise ValueError(f"{entry.function}: the verdict is one of {sorted(VERDICTS)}, with a reason")
        if entry.key in seen:
            raise ValueError(f"{entry.function}: {entry.after!r} is listed twice")
        seen.add(entry.key)
    return entries


def unmatched(entries: Iterable[Entry], lines: Mapping[str, set[str]]) -> list[Entry]:
    """Return the entries whose function is gone, or no longer has the lines; ``lines`` are stripped, by function."""
    return [
        entry for entry in entries if not set(entry.before.split("\n")) <= lines.get(entry.function, set())
    ]


def verdicts_by_key(entries: Iterable[Entry]) -> dict[tuple[Any, ...], Entry]:
    """Return the entries by what a row of the results is looked up with."""
    return {entry.key: entry for entry in entries}
