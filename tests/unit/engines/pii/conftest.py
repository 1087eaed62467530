"""One analyzer for all tests of detection: it takes a second to build and keeps no state between texts."""

from collections.abc import Callable

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.search.analyzer import Analyzer

Find = Callable[..., list[tuple[str, str]]]


@pytest.fixture(scope="session")
def analyzer() -> Analyzer:
    return Analyzer()


@pytest.fixture(scope="session")
def find(analyzer: Analyzer) -> Find:
    """Return a function from a text and options to the findings as (what, label)."""

    def found(text: str, **options: object) -> list[tuple[str, str]]:
        spans = analyzer.analyze(text, DetectionOptions(**options))  # type: ignore[arg-type]
        return [(text[span.start : span.end], span.label) for span in spans]

    return found
