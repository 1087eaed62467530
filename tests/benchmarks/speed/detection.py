"""Detection beside vanilla Presidio, in one process, on the same texts."""

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from app.core.engines import DetectionOptions
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.texts import mail

SIZE = 4096


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the table of milliseconds per KB."""
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    texts = [mail(SIZE, seed) for seed in range(max(1, sizes.kilobytes // 4))]
    contenders: dict[str, Callable[[str], int]] = {
        "Presidio's analyzer as it comes, spaCy tokenizer, no model (finds no names)": vanilla(),
        "ours, balanced": ours(DetectionOptions()),
        "ours, strict": ours(DetectionOptions(strict=True)),
    }
    rows = []
    for name, find in contenders.items():
        find(texts[0])
        begin = time.process_time()
        found = sum(find(text) for text in texts)
        rows.append((name, (time.process_time() - begin) / len(texts) / (SIZE / 1024) * 1e3, found))
    yield table(
        "Detection, CPU in one process",
        ("engine", "ms/KB", "findings"),
        rows,
        f"{len(texts)} texts of 4 KB, support mail with personal data in every fourth sentence.",
    )


def ours(options: DetectionOptions) -> Callable[[str], int]:
    """Return our analyzer, with names, places, organizations and disguises."""
    from app.engines.pii.analyzer import Analyzer

    analyzer = Analyzer()
    return lambda text: len(analyzer.analyze(text, options))


def vanilla() -> Callable[[str], int]:
    """Return Presidio with its own recognizers over spaCy's blank English pipeline."""
    import spacy
    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

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
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])
    return lambda text: len(analyzer.analyze(text, language="en"))
