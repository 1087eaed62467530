"""Common first and last names by country, from a list in the public domain (CC0)."""

import gzip
import json
from pathlib import Path
from typing import Final

_FILE: Final = Path("names_by_country", "names.jsonl.gz")


def world_names(folder: Path) -> tuple[list[str], list[str]]:
    """Return first and last names in Latin letters; raise FileNotFoundError without the list below ``folder``."""
    first: list[str] = []
    last: list[str] = []
    with gzip.open(folder / _FILE, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            (first if row["kind"] == "given" else last).append(row["romanized"] or row["name"])
    return first, last
