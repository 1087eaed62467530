"""Report values with the form of an identifier and a context word nearby, but with a wrong check digit."""

from collections.abc import Iterator, Sequence
from typing import Any

from presidio_analyzer import EntityRecognizer, PatternRecognizer

from app.engines.pii.recognizers.patterns import FLAGS, ScanTimeoutError, compiled, time_limit
from app.engines.pii.scan.image import image
from app.engines.pii.scan.plain_words import PlainWords
from app.engines.pii.scan.surroundings import Surroundings
from app.engines.pii.scan.weighing import PhraseWeighing

Refused = tuple[int, int, Any, str, str]
"""Start, end, the recognizer whose validator rejected it, the name of the pattern, the context word nearby."""


def refused(recognizers: Sequence[EntityRecognizer], text: str) -> Iterator[Refused]:
    """Yield matches that have a context word nearby but are rejected by the validator of their recognizer."""
    weighing = PhraseWeighing()
    around = Surroundings(text, image(text), PlainWords(), weighing)
    for recognizer in recognizers:
        support = weighing.support(recognizer)
        if (
            support is None
            or not isinstance(recognizer, PatternRecognizer)
            or not _mentions_context(recognizer, text)
        ):
            continue
        for start, end, pattern in _matches(recognizer, text):
            value = text[start:end]
            if (recognizer.validate_result(value) is False or recognizer.invalidate_result(value)) and (
                word := support(around.near(start))
            ):
                yield start, end, recognizer, pattern, word


def _mentions_context(recognizer: EntityRecognizer, text: str) -> bool:
    lower = text.casefold()
    return any(word.split()[-1].casefold() in lower for word in recognizer.context or ())


def _matches(recognizer: Any, text: str) -> Iterator[tuple[int, int, str]]:
    try:
        for pattern in recognizer.patterns:
            search: Any = compiled(pattern.regex, recognizer.global_regex_flags or FLAGS)
            group = "value" if "value" in search.groupindex else 0
            for match in search.finditer(text, timeout=time_limit(len(text))):
                if match.end(group) > match.start(group):
                    yield *match.span(group), pattern.name
    except TimeoutError:
        raise ScanTimeoutError(recognizer.name) from None
