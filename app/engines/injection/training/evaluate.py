"""Measure the detector on open sets and on the half of our own texts that nothing was learned from."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.engines.injection.detector import judged
from app.engines.injection.training.corpus import OWN_ATTACKS, OWN_HARMLESS, halves, own, read_jsonl

Suspects = Callable[[Sequence[str]], list[bool]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one set; ``texts`` is how many it rests on."""

    measured: str
    value: float
    texts: int


def embedded(texts: Sequence[str]) -> list[bool]:
    """Return which texts the embedded detector suspects at the level standard."""
    return [score >= 0.5 for score in judged(texts, documents=False).scores]  # noqa: PLR2004 - the level standard


def figures(
    folder: Path, ordinary: Path | None, suspects: Suspects = embedded, most: int | None = None
) -> Iterator[Figure]:
    """Yield what is measured on ``test.jsonl`` of ``folder``, on ordinary requests and on our held-out texts."""
    rows = read_jsonl(folder / "test.jsonl")
    mine = [row for row in rows if row["src"] == "deepset"][:most]
    yield f1_of([bool(row["injection"]) for row in mine], suspects([str(row["text"]) for row in mine]))
    wild = [str(row["text"]) for row in rows if row["src"] == "inthewild"][:most]
    yield Figure("in-the-wild jailbreaks found", share(suspects(wild)), len(wild))
    if ordinary is not None:
        asked = [str(row["text"]) for row in read_jsonl(ordinary)][:most]
        yield Figure("ordinary requests flagged", share(suspects(asked)), len(asked))
    attacks, harmless = halves(own(OWN_ATTACKS))[1][:most], halves(own(OWN_HARMLESS))[1][:most]
    yield Figure("own attacks found, held out", share(suspects(attacks)), len(attacks))
    yield Figure("own harmless look-alikes flagged, held out", share(suspects(harmless)), len(harmless))


def f1_of(wanted: Sequence[bool], said: Sequence[bool]) -> Figure:
    """Return the F1 of the suspicions."""
    hits = sum(one and other for one, other in zip(wanted, said, strict=True))
    return Figure("F1 on deepset test", 2 * hits / max(1, sum(wanted) + sum(said)), len(wanted))


def share(flags: Sequence[bool]) -> float:
    """Return how many are set."""
    return sum(flags) / max(1, len(flags))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds test.jsonl")
    parser.add_argument("--ordinary", type=Path, help="a file of requests that are none")
    given = parser.parse_args()
    for one in figures(given.folder, given.ordinary):
        print(f"{one.measured:45} {one.value:.3f}  ({one.texts} texts)")


if __name__ == "__main__":
    main()
