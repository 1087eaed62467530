"""Secrets: how many of the documented formats are found, in each way of writing, and what is found in ordinary text."""

import asyncio
import gzip
import importlib.util
import json
import os
import random
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from app.core.contracts.engines import SecretOptions
from app.engines.secrets.scanner import RuleScanner
from app.engines.secrets.seeds import seed_words
from tests.benchmarks.judge.intervals import rate, share
from tests.benchmarks.judge.secret_formats import Shape, shapes
from tests.benchmarks.judge.secret_values import WORDS_OF_SEEDS, password, seed_phrase, spelled_phrases
from tests.benchmarks.judge.secret_ways import (
    FOR_KEYS,
    FOR_SHAPES,
    IN_ADDRESSES,
    IN_FILES,
    NEAR,
    ON_COMMAND_LINES,
    SAID,
    WITH_SEEDS,
)
from tests.benchmarks.speed.report import table

OPEN_DATA: Final = "SLUICE_TEST_OPEN_DATA"
"""Names the folder of the open data sets, of which the texts are read."""
_RIVAL_SHARE: Final = 25
_LEAST_TEXT: Final = 40

Find = Callable[[Sequence[str]], list[list[tuple[int, int]]]]
"""Returns the places of what is found in each text."""


class Item(NamedTuple):
    """A text of the test part: its group, the format it shows, and the secret in it (none for near misses)."""

    group: str
    format: str
    text: str
    secret: str


def items(each: int = 3) -> list[Item]:
    """Return the test part; ``each`` is how many values are drawn for a way of writing."""
    return [*_keys(each), *_passwords(each), *_seeds(each)]


def _keys(each: int) -> Iterator[Item]:
    for shape in shapes():
        draw = random.Random(f"judge {shape.title}")
        name = shape.name or shape.title.partition(",")[0].replace(" ", "_").upper()
        ways = FOR_KEYS[1:] if shape.name else (*FOR_KEYS, *FOR_SHAPES)
        for way in ways:
            for _ in range(each):
                value = shape.draw(draw)
                yield Item(_group(shape), shape.title, way.format(v=value, n=name), value)


def _group(shape: Shape) -> str:
    if shape.name:
        return "keys by their name"
    return "keys of other lengths" if "," in shape.title else "keys with a shape of their own"


def _passwords(each: int) -> Iterator[Item]:
    draw = random.Random("judge passwords")
    for title, ways in (
        ("passwords on command lines", ON_COMMAND_LINES),
        ("passwords in addresses", IN_ADDRESSES),
        ("passwords in files", IN_FILES),
        ("passwords in words", SAID),
    ):
        for row in filter(None, ways.split("\n")):
            language, _, way = row.rpartition("|") if ways is SAID else ("", "", row)
            for _ in range(4 * each):
                value = password(draw)
                if ways is IN_ADDRESSES:
                    value = value.replace("#", "-").replace("?", "-").replace("%", "-")
                group = f"{title}, {language}" if language else title
                yield Item(group, row, way.replace("{{", "{").replace("}}", "}").replace("{v}", value), value)


def _seeds(each: int) -> Iterator[Item]:
    draw, words = random.Random("judge seeds"), seed_words()
    for size in WORDS_OF_SEEDS:
        for way in WITH_SEEDS:
            for _ in range(each):
                for spelled in spelled_phrases(seed_phrase(draw, words, size)):
                    yield Item(
                        "seed phrases",
                        f"seed of {size} words",
                        way.replace("{v}", spelled),
                        spelled.lstrip("1. "),
                    )


def ours() -> Find:
    """Return the embedded scanner."""
    scanner = RuleScanner()

    def find(texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        made = asyncio.run(scanner.scan(texts, SecretOptions()))
        return [[(span.start, span.end) for span in spans] for spans in made.spans]

    return find


def detect_secrets() -> Find:
    """Return the rival, which tells lines and not places: a line of a finding counts as hidden."""
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    def find(texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        found: list[list[tuple[int, int]]] = []
        with tempfile.TemporaryDirectory() as folder, default_settings():
            for number, text in enumerate(texts):
                path = Path(folder, f"{number}.txt")
                path.write_text(text, encoding="utf-8")
                secrets = SecretsCollection()
                secrets.scan_file(str(path))
                lines = {secret.line_number for _, secret in secrets}
                found.append([(0, len(text))] * len(lines))
        return found

    return find


def is_hidden(item: Item, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether findings cover the whole secret; for near misses, whether there is any."""
    if not item.secret:
        return bool(spans)
    at = item.text.find(item.secret)
    return any(start <= at and end >= at + len(item.secret) for start, end in spans)


def tables(smoke: bool = False) -> Iterator[str]:
    """Yield the tables; where ``smoke``, of one value for each way of writing, and little ordinary text."""
    finders = {"Sluice": ours()}
    if importlib.util.find_spec("detect_secrets") is not None:
        finders["detect-secrets"] = detect_secrets()
    everything = items(1 if smoke else 3)
    rows, misses = [], []
    for name, find in finders.items():
        some = everything if name == "Sluice" else everything[::_RIVAL_SHARE]
        hits = [
            is_hidden(item, spans) for item, spans in zip(some, find([i.text for i in some]), strict=True)
        ]
        rows += list(_by_group(name, some, hits))
        if name == "Sluice":
            misses = _misses(some, hits)
    yield table(
        "Secrets found, in texts that no rule was made from", ("scanner", "what", "texts", "found"), rows
    )
    yield table("What is missed most", ("format", "found"), misses)
    yield _false_alarms(finders, smoke)


def _by_group(name: str, some: Sequence[Item], hits: Sequence[bool]) -> Iterator[tuple[object, ...]]:
    groups, formats = defaultdict(list), defaultdict(list)
    for item, hit in zip(some, hits, strict=True):
        groups[item.group].append(hit)
        formats[item.format].append(hit)
    for group, found in groups.items():
        yield name, group, len(found), share(found)
    yield name, "all", len(hits), share(hits)
    whole = [sum(found) >= 0.9 * len(found) for found in formats.values()]
    yield name, "formats that are found in nine of ten of their texts", len(whole), share(whole)


def _misses(some: Sequence[Item], hits: Sequence[bool]) -> list[tuple[str, str]]:
    formats = defaultdict(list)
    for item, hit in zip(some, hits, strict=True):
        formats[item.format].append(hit)
    worst = sorted(formats.items(), key=lambda pair: sum(pair[1]) / len(pair[1]))
    return [
        (f"`{title.replace('|', ' ')}`", f"{sum(found)} of {len(found)}")
        for title, found in worst
        if sum(found) < 0.9 * len(found)
    ][:20]


def ordinary() -> Iterator[tuple[str, list[str]]]:
    """Yield sets of texts without secrets of anybody: a title, and the texts."""
    yield "sentences written to be near a secret", list(NEAR)
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    yield "Python's standard library", _sources(sorted(stdlib.rglob("*.py")), without="site-packages")
    packages = Path(sysconfig.get_paths()["purelib"])
    yield "installed Python packages, one file in eight", _sources(sorted(packages.rglob("*.py"))[::8])
    folder = os.environ.get(OPEN_DATA)
    if folder:
        yield "texts of the open sets", _open(Path(folder))


def _sources(paths: Sequence[Path], without: str = " ") -> list[str]:
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths if without not in path.parts]


def _open(folder: Path) -> list[str]:
    texts = []
    for path in sorted(folder.rglob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        part = [
            value
            for row in rows
            for value in row.values()
            if isinstance(value, str) and len(value) > _LEAST_TEXT
        ]
        if part:
            texts.append("\n".join(part)[:400_000])
    return texts


def _false_alarms(finders: dict[str, Find], smoke: bool) -> str:
    rows = []
    for title, whole in ordinary():
        texts = whole[:60] if smoke else whole
        for name, find in finders.items():
            some = [text for text in (texts if name == "Sluice" else texts[::_RIVAL_SHARE]) if text]
            counts = [len(spans) for spans in find(some)]
            size = sum(map(len, some)) / 1e6
            per = rate(counts, [len(text) for text in some], 1_000_000)
            rows.append((name, title, f"{size:.2f} MB", sum(counts), per))
    return table(
        "Secrets found where nobody wrote one down",
        ("scanner", "texts", "size", "findings", "per MB"),
        rows,
        "Some findings in source are true: test keys and passwords that its authors wrote down.",
    )
