"""What has the form of an identifier, a word for it nearby and a wrong check digit: no finding, but worth a mention."""

from collections.abc import Iterator, Sequence
from typing import Any

from presidio_analyzer import EntityRecognizer, PatternRecognizer

from app.engines.pii.recognizers.patterns import FLAGS, ScanTimeoutError, compiled, time_limit
from app.engines.pii.scan.image import image
from app.engines.pii.scan.plain_words import PlainWords
from app.engines.pii.scan.surroundings import Surroundings
from app.engines.pii.scan.weighing import PhraseWeighing

Refused = tuple[int, int, Any, str, str]
"""Start, end, the recognizer whose validator refused it, the pattern by name, the word of its context nearby."""


def refused(recognizers: Sequence[EntityRecognizer], text: str) -> Iterator[Refused]:
    """Yield what matches a pattern beside a word of its context and is refused by its validator."""
    weighing = PhraseWeighing()
    around = Surroundings(text, image(text), PlainWords(), weighing)
    for one in recognizers:
        support = weighing.support(one)
        if support is None or not isinstance(one, PatternRecognizer) or not _may_speak(one, text):
            continue
        for start, end, pattern in _matches(one, text):
            what = text[start:end]
            if (one.validate_result(what) is False or one.invalidate_result(what)) and (
                word := support(around.near(start))
            ):
                yield start, end, one, pattern, word


def _may_speak(recognizer: EntityRecognizer, text: str) -> bool:
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
