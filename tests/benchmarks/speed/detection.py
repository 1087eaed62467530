"""Detection beside vanilla Presidio, LangChain's detectors and ContextForge's filter: one process, the same texts."""

import asyncio
import logging
import statistics
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.ground.labels import NAME_LABELS
from app.engines.pii.processes.pool import PoolDetector
from tests.benchmarks.speed.corpora import CORPORA, prose
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import SMOKE, Sizes

PATTERNS = DetectionOptions(exclude=NAME_LABELS)
KILOBYTES = (1, 10, 100)
MESSAGE = 4096
TURNS = 50
TURN = 3_940
"""Characters of a turn, so that the last of fifty sends 197 KB."""

Find = Callable[[str], int]


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the tables of throughput, of one message, and of a conversation that grows."""
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    contenders = rivals()
    yield throughput(sizes, contenders)
    yield messages(sizes, contenders)
    yield conversation(sizes, contenders)


def rivals() -> dict[str, Find]:
    """Return what others offer and is installed: each finds in a text and returns how much."""
    found = {"Presidio": vanilla()}
    for title, build in (("LangChain", langchain), ("ContextForge", contextforge)):
        try:
            found[title] = build()
        except ImportError:
            continue
    return found


def throughput(sizes: Sizes, contenders: dict[str, Find]) -> str:
    """Return MB/s by kind and size of text: each text is new to whoever searches it."""
    rows = []
    head = ("text", "KB", *contenders, "ours", "ours, first", "with names", "ours / Presidio", "findings")
    patterns, named = ours(PATTERNS), ours(DetectionOptions())
    for kind, made in CORPORA.items():
        first = ""
        if sizes is not SMOKE:
            first = rate(patterns, [made(100_000, 1_000 + seed) for seed in range(2)])
            for find in (*contenders.values(), named):
                find(made(20_000, 1_100))
        for kilobytes in KILOBYTES[: 1 if sizes is SMOKE else None]:
            count = 1 if sizes is SMOKE else max(6, 60 // kilobytes)
            texts = [made(kilobytes * 1000, 31 + seed) for seed in range(count)]
            rates = {title: rate(find, texts[: count // 3 or 1]) for title, find in contenders.items()}
            mine, with_names = rate(patterns, texts), rate(named, texts)
            found = " / ".join(str(find(texts[0])) for find in (*contenders.values(), patterns))
            ratio = f"{mine / rates['Presidio']:.0f}x"
            rows.append(
                (
                    kind,
                    kilobytes,
                    *rates.values(),
                    mine,
                    first if kilobytes == 100 else "",
                    with_names,
                    ratio,
                    found,
                )
            )
    return table(
        "Detection of first seen text, MB/s of CPU",
        head,
        rows,
        "Patterns only, but for the column with names. Presidio: its default recognizers over spaCy's blank tokenizer, "
        "no model. Each has searched other texts of the kind before: rivals 20 KB, ours the 200 KB of *ours, first*, "
        "which compile patterns that no text of the process needed before. Findings: of the first text, in the order "
        "of the columns; more is not better where they are false.",
    )


def messages(sizes: Sizes, contenders: dict[str, Find]) -> str:
    """Return milliseconds of CPU for a message of 4 KB that nobody has seen."""
    count = 3 if sizes is SMOKE else 150
    finders = {
        **contenders,
        "ours, patterns": ours(PATTERNS),
        "ours, with names": ours(DetectionOptions()),
    }
    rows = []
    for title, find in finders.items():
        row: list[Any] = [title]
        for made in CORPORA.values():
            texts = [made(MESSAGE, 5_000 + seed) for seed in range(count)]
            took = [spent(find, text) * 1e3 for text in texts]
            row += [percentile(took, 0.5), percentile(took, 0.99)]
        rows.append(row)
    head = ["engine", *(f"{kind} {part}" for kind in CORPORA for part in ("p50", "p99"))]
    return table("Detection in an unseen message of 4 KB, ms of CPU", head, rows)


def conversation(sizes: Sizes, contenders: dict[str, Find]) -> str:
    """Return the CPU of a conversation in which each turn sends all turns before it again."""
    turns = [prose(TURN, 900 + turn, 0.3) for turn in range(4 if sizes is SMOKE else TURNS)]
    total, last, again = asyncio.run(grown(turns))
    rows: list[tuple[Any, ...]] = [
        ("ours, with names", total, last * 1e3),
        ("ours, the last turn once more", "", again * 1e3),
    ]
    for title, find in contenders.items():
        sampled = turns[:1] if sizes is SMOKE else turns[9::10]
        some = [spent(find, "\n".join(turns[: turns.index(turn) + 1])) for turn in sampled]
        rows.append((title, statistics.mean(some) * len(turns), some[-1] * 1e3))
    size = sum(map(len, turns)) // 1000
    return table(
        f"A conversation of {len(turns)} turns that is sent whole at each, CPU",
        ("engine", "s for all turns", "ms for the last"),
        rows,
        f"{size} KB at the end. Ours: server and detector process together. Others: estimated from every tenth turn, "
        "each as a whole, for they remember nothing.",
    )


async def grown(turns: list[str]) -> tuple[float, float, float]:
    """Return the CPU seconds of all turns, of the last, and of the last sent once more."""
    async with PoolDetector() as pool:
        await pool.wait_ready()
        await pool.detect(["Call Jane Roe."], DetectionOptions(), tenant="bench")
        workers = [psutil.Process(pid) for pid in pool.pids]
        marks = [cpu(workers)]
        for turn in [*range(len(turns)), len(turns) - 1]:
            await pool.detect(turns[: turn + 1], DetectionOptions(), tenant="bench")
            marks.append(cpu(workers))
    return marks[-2] - marks[0], marks[-2] - marks[-3], marks[-1] - marks[-2]


def cpu(workers: list[psutil.Process]) -> float:
    """Return the CPU seconds of this process and of ``workers``."""
    used = [worker.cpu_times() for worker in workers]
    return time.process_time() + sum(times.user + times.system for times in used)


def spent(find: Find, text: str) -> float:
    """Return the CPU seconds of one search."""
    begin = time.process_time()
    find(text)
    return time.process_time() - begin


def rate(find: Find, texts: list[str]) -> float:
    """Return MB/s of CPU over all texts."""
    took = sum(spent(find, text) for text in texts)
    return sum(len(text.encode()) for text in texts) / 1e6 / took


def vanilla() -> Find:
    """Return a count of what Presidio finds with its own recognizers over spaCy's blank English pipeline."""
    analyzer = vanilla_engine()

    def find(text: str) -> int:
        return len(analyzer.analyze(text, language="en"))

    find("Write to john@example.com or call 212-555-1234.")
    return find


def vanilla_engine() -> Any:
    """Return Presidio's engine as it comes, over spaCy's blank English pipeline."""
    import spacy
    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine
    from presidio_analyzer.recognizer_registry.recognizers_loader_utils import RecognizerListLoader

    # It loads its classes by name, from all that there are: ours, of the same names, must not be among them.
    every = RecognizerListLoader.get_all_existing_recognizers
    RecognizerListLoader.get_all_existing_recognizers = staticmethod(
        lambda cls=None: {found for found in every(cls) if found.__module__.startswith("presidio_analyzer.")}
    )

    # Else its e-mail recognizer asks the internet for the list of public suffixes, and keeps it in a file.
    tldextract.extract = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())

    class Blank(SpacyNlpEngine):
        """spaCy's tokenizer alone: no model needs to be downloaded."""

        def __init__(self) -> None:
            super().__init__(models=[{"lang_code": "en", "model_name": "blank"}])
            self.nlp: dict[str, Any] = {"en": spacy.blank("en")}

        def load(self) -> None:
            """Load nothing."""

    engine = Blank()
    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"], nlp_engine=engine)
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])


def ours(options: DetectionOptions) -> Find:
    """Return our analyzer, as warm as in a worker, with all its views of a text and without a memory of texts."""
    analyzer = built()
    return lambda text: len(analyzer.analyze(text, options))


@cache
def built() -> Any:
    """Return our analyzer, one for all tables."""
    # Presidio finds its recognizers by the names of classes: its own registry has to be there before ours.
    from app.engines.pii.processes.worker import WARM_UP
    from app.engines.pii.search.analyzer import Analyzer

    analyzer = Analyzer()
    analyzer.analyze(WARM_UP, DetectionOptions())
    return analyzer


def langchain() -> Find:
    """Return the detectors of LangChain's PII middleware: regular expressions for five types."""
    from langchain.agents.middleware._redaction import BUILTIN_DETECTORS  # type: ignore[import-not-found]

    return lambda text: sum(len(detect(text)) for detect in BUILTIN_DETECTORS.values())


def contextforge() -> Find:
    """Return the filter of IBM ContextForge, a library in Rust."""
    from cpex_pii_filter import PIIDetectorRust  # type: ignore[import-not-found]

    detector = PIIDetectorRust({})
    return lambda text: sum(map(len, detector.detect(text).values()))
