"""Common names by country (CC0), names by language (public domain), and towns of the world (CC BY 4.0)."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from app.engines.pii.training.frames import World

_FILE: Final = Path("names_by_country", "names.jsonl.gz")
_BY_LANGUAGE: Final = Path("name_databases", "names.jsonl.gz")
_TOWNS: Final = Path("world_cities", "cities.jsonl.gz")
_LANGUAGES: Final = {
    "Türkiye": "tr",
    "Indonesia": "id",
    "Romania": "ro",
    "Norway": "nb",
    "Denmark": "da",
    "Portugal": "pt",
    "Brazil": "pt",
}
_LATIN: Final = re.compile(r"[A-Za-zÀ-ɏḀ-\u1eff'\u2019 .\-]+")
_NAME: Final = re.compile(r"[^\W\d_]{3,}(?:[ '\-][^\W\d_]+)?")


def world_names(folder: Path) -> tuple[list[str], list[str]]:
    """Return first and last names in Latin letters; raise FileNotFoundError without both lists below ``folder``."""
    first: list[str] = []
    last: list[str] = []
    for file in (_FILE, _BY_LANGUAGE):
        for row in _rows(folder / file):
            (first if row["kind"] == "given" else last).append(row.get("romanized") or row["name"])
    return first, last


def world(folder: Path) -> World:
    """Return last names and towns in Latin letters; raise FileNotFoundError without the lists below ``folder``."""
    last = {row["name"] for row in _rows(folder / _BY_LANGUAGE) if row["kind"] == "family"}
    towns: dict[str, list[str]] = defaultdict(list)
    for row in _rows(folder / _TOWNS):
        if _LATIN.fullmatch(row["name"]):
            towns[_LANGUAGES.get(row["country"], "")].append(row["name"])
    return World(
        tuple(sorted(name for name in last if _NAME.fullmatch(name) and name[0].isupper())),
        {language: tuple(names) for language, names in towns.items() if language},
        tuple(name for names in towns.values() for name in names),
    )


def single_words(towns: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the towns of one word; the words of others are often common ones."""
    return [town for names in towns.values() for town in names if town.isalpha()]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
