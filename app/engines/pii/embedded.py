"""Detection in this very process, for commands that look at a few texts and end; the service uses `pool`."""

from collections.abc import Sequence

from app.core.engines import DetectionOptions, Explanation, Span
from app.core.errors import UpstreamUnavailableError
from app.engines.pii.lean import without_spacy
from app.engines.pii.taggers import settled


def found_in(texts: Sequence[str], options: DetectionOptions) -> list[list[Span]]:
    """Return the findings in each of ``texts``, which have nothing to do with each other.

    A tagger that is asked for and missing is an error: figures of another would mislead.
    """
    with without_spacy():
        from app.engines.pii.analyzer import Analyzer  # noqa: PLC0415 - Presidio: only where somebody asks
    plan = settled(options)
    if plan.warnings:
        raise UpstreamUnavailableError(plan.warnings[0])
    analyzer = Analyzer()
    return [analyzer.analyze(text, plan.options) for text in texts]


def explained(text: str, options: DetectionOptions) -> Explanation:
    """Return what was considered in ``text``, and why it won or lost."""
    with without_spacy():
        from app.engines.pii.analyzer import Analyzer  # noqa: PLC0415
        from app.engines.pii.explaining import explain  # noqa: PLC0415
        from app.engines.pii.languages import warnings_for  # noqa: PLC0415
    plan = settled(options)
    spans, candidates = explain(Analyzer(), text, plan.options)
    told = [*plan.warnings, *warnings_for([text], options.language)]
    return Explanation(spans, candidates, plan.engine, options.language, told)
