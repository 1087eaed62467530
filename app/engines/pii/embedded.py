"""Detection in this very process, for commands that look at a few texts and end; the service uses `pool`."""

from collections.abc import Sequence

from app.core.engines import DetectionOptions, Explanation, Span
from app.engines.pii.lean import without_spacy
from app.engines.pii.pool import ENGINE


def found_in(texts: Sequence[str], options: DetectionOptions) -> list[list[Span]]:
    """Return the findings in each of ``texts``, which have nothing to do with each other."""
    with without_spacy():
        from app.engines.pii.analyzer import Analyzer  # noqa: PLC0415 - Presidio: only where somebody asks
    analyzer = Analyzer()
    return [analyzer.analyze(text, options) for text in texts]


def explained(text: str, options: DetectionOptions) -> Explanation:
    """Return what was considered in ``text``, and why it won or lost."""
    with without_spacy():
        from app.engines.pii.analyzer import Analyzer  # noqa: PLC0415
        from app.engines.pii.explaining import explain  # noqa: PLC0415
        from app.engines.pii.languages import warnings_for  # noqa: PLC0415
    spans, candidates = explain(Analyzer(), text, options)
    return Explanation(spans, candidates, ENGINE, options.language, warnings_for([text], options.language))
