"""The findings of one scan beside those of Presidio, text by text, for each matcher."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import SMOKE, Sizes
from tests.pii_texts import some_text
from tests.scan_engines import (
    Find,
    default_recognizers,
    ours_plain,
    presidio,
    scans_like_presidio,
    scans_ours,
)

TEXTS = 5_000
OUR_SHARE = 5
"""The plain path over our registry is slow: it gets every fifth text."""


@dataclass(slots=True)
class Differences:
    """How many texts have other spans, other types at the same place, or other scores alone."""

    spans: int = 0
    types: int = 0
    scores: int = 0


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the table of differences."""
    rows: list[tuple[object, ...]] = []
    texts = 20 if sizes is SMOKE else TEXTS
    recognizers = default_recognizers()
    scans = scans_like_presidio(recognizers)
    rows += compared("Presidio's default registry", presidio(recognizers), scans, texts)
    own = {matcher: find for matcher, (_, find) in scans_ours().items()}
    rows += compared("our registry", ours_plain(), own, texts // OUR_SHARE)
    yield table(
        "Findings of one scan beside Presidio's analyzer over the same recognizers",
        ("registry", "matcher", "texts", "results", "other spans", "other types", "other scores"),
        rows,
        "Mutated texts with personal data and strings of odd characters, seeded; a difference counts once a text.",
    )


def compared(
    registry: str, plain: Find, scans: Mapping[str, Find], texts: int
) -> Iterator[tuple[object, ...]]:
    """Yield a row for each matcher."""
    rng, results = random.Random(2026), 0
    different = {matcher: Differences() for matcher in scans}
    for _ in range(texts):
        text = some_text(rng)
        expected = plain(text)
        results += len(expected)
        for matcher, find in scans.items():
            found, counts = find(text), different[matcher]
            if {one[1:3] for one in found} != {one[1:3] for one in expected}:
                counts.spans += 1
            elif {one[:3] for one in found} != {one[:3] for one in expected}:
                counts.types += 1
            elif found != expected:
                counts.scores += 1
    for matcher, counts in different.items():
        yield registry, matcher, texts, results, counts.spans, counts.types, counts.scores
