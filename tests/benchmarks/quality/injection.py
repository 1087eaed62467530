"""How well attacks on the model are told from harmless requests, on open sets where given; and how fast."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.core.content.sanitizing import sanitized
from app.engines.injection.detector import judged
from app.engines.injection.training.corpus import OWN_ATTACKS, OWN_HARMLESS, halves, own
from app.engines.injection.training.evaluate import Suspects, embedded, figures, share
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import SMOKE, Sizes
from tests.benchmarks.speed.texts import mail

FOLDER = "SLUICE_TEST_INJECTION_DATA"
ORDINARY_FOLDER = "SLUICE_TEST_MODERATION_DATA"
ORDINARY = "test_ordinary_requests.jsonl"
SIZE = 4096
_TRIGGERS = re.compile(
    r"(?i)ignore|disregard|forget|override|bypass|jailbreak|system prompt|instructions|pretend|act as|you are now|"
    r"developer mode|\bDAN\b|unrestricted|reveal"
)


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the tables of speed and of our own held-out texts, and those on open sets where there are some."""
    small = sizes is SMOKE
    yield _speed(10 if small else 300)
    yield _own(10 if small else None)
    given, ordinary = os.environ.get(FOLDER), os.environ.get(ORDINARY_FOLDER)
    if given:
        requests = Path(ordinary) / ORDINARY if ordinary else None
        yield _open_sets(Path(given), requests, 20 if small else None)


def _judges() -> dict[str, Suspects]:
    def rules(texts: Sequence[str]) -> list[bool]:
        return [score >= 0.5 for score in judged(texts, documents=True).scores]

    def words(texts: Sequence[str]) -> list[bool]:
        return [has_trigger_word(text) for text in texts]

    return {"embedded": embedded, "its rules for documents alone": rules, "a list of trigger words": words}


def has_trigger_word(text: str) -> bool:
    """Return whether ``text`` has a word that attacks often have, as a simple filter judges."""
    return _TRIGGERS.search(text) is not None


def _speed(rounds: int) -> str:
    page = "<p>{}</p><div style='display:none'>x</div><!-- y -->".format
    work = {
        "request": lambda text: judged([text], documents=False),
        "document": lambda text: judged([text], documents=True),
        "sanitizing of a page": lambda text: sanitized(page(text)),
    }
    rows = []
    for name, do in work.items():
        do("warm")
        times = []
        for seed in range(rounds):
            text = mail(SIZE, seed)
            begin = time.perf_counter()
            do(text)
            times.append((time.perf_counter() - begin) * 1e3)
        rows.append((name, percentile(times, 0.5), percentile(times, 0.95)))
    note = f"{rounds} texts of 4 KB, each seen for the first time, one after the other, engine warm."
    return table("Prompt injection in 4 KB, in milliseconds", ("judged as", "p50", "p95"), rows, note)


def _own(most: int | None) -> str:
    attacks, harmless = halves(own(OWN_ATTACKS))[1][:most], halves(own(OWN_HARMLESS))[1][:most]
    rows = [(name, share(judge(attacks)), share(judge(harmless))) for name, judge in _judges().items()]
    return table(
        "Prompt injection: our own texts, the half that nothing was learned from",
        ("judged by", "attacks found", "harmless flagged"),
        rows,
        f"{len(attacks)} attacks and {len(harmless)} harmless texts full of the words of attacks; level standard.",
    )


def _open_sets(folder: Path, ordinary: Path | None, most: int | None) -> str:
    rows = []
    for name, judge in _judges().items():
        found = list(figures(folder, ordinary, judge, most))
        rows += [(name, one.measured, one.value, one.texts) for one in found if "own" not in one.measured]
    return table(
        "Prompt injection on open test sets",
        ("judged by", "measured", "figure", "texts"),
        rows,
        "Never trained on; level standard. Neural scanners of others need downloads of models and are not measured.",
    )
