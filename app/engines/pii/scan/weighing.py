"""Adjust the score of a finding by the words nearby: with Presidio's rule, and with ours."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from presidio_analyzer import EntityRecognizer

from app.engines.pii.ground.labels import RULES
from app.engines.pii.names.nlp import WITHOUT_CONTEXT, PhraseContextEnhancer, context_words
from app.engines.pii.recognizers.patterns import ExactPatterns
from app.engines.pii.scan.bytesets import CAPITALS, EVERY, character, exactly, mask_of, rendered
from app.engines.pii.scan.image import CASED, UNCASED

_OTHERS: Final = EVERY & ~((1 << UNCASED) - 1) | mask_of(CASED)
_SMALL: Final = mask_of(*range(ord("a"), ord("z") + 1))
_LETTERS: Final = CAPITALS | _SMALL | _OTHERS
_BETWEEN: Final = EVERY & ~_LETTERS
_ENDS: Final = EVERY & ~(_SMALL | _OTHERS) | mask_of(ord("s"))
"""Bytes that may follow a word: no small letter, except the plural s."""

Support = Callable[[str], str]
"""Map the row of words nearby to the context word among them, or an empty string."""


class Weighing(Protocol):
    """How words nearby change the score of a finding."""

    before: int
    after: int

    def row(self, near: Sequence[str]) -> str:
        """Return the words nearby as the row for a `Support`."""

    def support(self, recognizer: EntityRecognizer) -> Support | None:
        """Return the function that finds context words of ``recognizer``; None if no word changes its scores."""

    def demands(self, recognizer: EntityRecognizer) -> bool:
        """Return whether findings of ``recognizer`` count only near one of its context words."""

    def expressions(self, word: str) -> list[bytes]:
        """Return expressions that all hit in the image of every text with the context word ``word``."""

    def weighed(self, entity: str, score: float, word: str, *, bare: bool) -> float:
        """Return the score of a finding near ``word``; if that is empty, no context word is nearby."""


class PresidioWeighing:
    """The rules of Presidio's `LemmaContextAwareEnhancer`, with its settings."""

    def __init__(self, enhancer: Any) -> None:
        self.before = enhancer.context_prefix_count
        self.after = enhancer.context_suffix_count
        self._factor = enhancer.context_similarity_factor
        self._least = enhancer.min_score_with_context_similarity
        self._whole = enhancer.context_matching_mode == "whole_word"

    def row(self, near: Sequence[str]) -> str:
        """Return the words, each between separators."""
        return "\0" + "\0".join(near) + "\0"

    def support(self, recognizer: EntityRecognizer) -> Support | None:
        """Return the function that finds context words of ``recognizer``."""
        words = recognizer.context or ()
        frame = "\0" if self._whole else ""
        return _finder([(word, f"{frame}{word.lower()}{frame}") for word in words])

    def demands(self, recognizer: EntityRecognizer) -> bool:
        """Return False: to Presidio a context word only adds to the score."""
        del recognizer
        return False

    def expressions(self, word: str) -> list[bytes]:
        """Return the word in any case."""
        return [_in_any_case(word)]

    def weighed(self, entity: str, score: float, word: str, *, bare: bool) -> float:
        """Return the raised score."""
        del entity, bare
        return min(max(score + self._factor, self._least), EntityRecognizer.MAX_SCORE) if word else score


class PhraseWeighing(PresidioWeighing):
    """Match context words whole and phrases in sequence; lower the score of findings that lack required context."""

    def __init__(self) -> None:
        super().__init__(PhraseContextEnhancer())

    def row(self, near: Sequence[str]) -> str:
        """Return the words, each between blanks; a phrase without words is in every row."""
        return f" {' '.join(near)} |  "

    def support(self, recognizer: EntityRecognizer) -> Support | None:
        """Return the function that finds context words and phrases of ``recognizer``."""
        words = recognizer.context or ()
        return _finder([(word, f" {' '.join(context_words(word))} ") for word in words])

    def demands(self, recognizer: EntityRecognizer) -> bool:
        """Return whether the entity needs context words and the recognizer, one of ours, has some."""
        entity = recognizer.supported_entities[0]
        return (
            isinstance(recognizer, ExactPatterns)
            and bool(recognizer.context)
            and RULES[entity].context == "yes"
        )

    def expressions(self, word: str) -> list[bytes]:
        """Return expressions for the words of a phrase, each at word boundaries."""
        return [_whole(part) for part in context_words(word)]

    def weighed(self, entity: str, score: float, word: str, *, bare: bool) -> float:
        """Return the raised or lowered score."""
        if word:
            return super().weighed(entity, score, word, bare=bare)
        need = RULES[entity].context if entity in RULES else "no"
        return score * WITHOUT_CONTEXT if need == "yes" or (need == "bare" and bare) else score


def _finder(wanted: Sequence[tuple[str, str]]) -> Support | None:
    """Return a function that finds the first word whose spelling is in a row."""

    def find(row: str) -> str:
        for word, spelled in wanted:
            if spelled in row:
                return word
        return ""

    return find if wanted else None


def _whole(word: str) -> bytes:
    """Return the expression of a word as our tokenizer splits it: also inside camel case, and in the plural."""
    first = character(ord(word[0]), re.IGNORECASE).may
    if not first & _LETTERS:
        return _in_any_case(word)
    begun = exactly(_BETWEEN) + exactly(first)
    if capital := first & CAPITALS:
        begun += b"|" + exactly(_LETTERS) + exactly(capital)
    return b"(?-i:%b)%b(?-i:%b)" % (begun, _in_any_case(word[1:]), exactly(_ENDS))


def _in_any_case(word: str) -> bytes:
    return b"".join(rendered(character(ord(letter), re.IGNORECASE).may) for letter in word)
