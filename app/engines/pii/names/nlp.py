"""Presidio's NlpEngine with the embedded tagger, and context enhancers that are linear on any text."""

import copy
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from presidio_analyzer import EntityRecognizer, RecognizerResult
from presidio_analyzer.context_aware_enhancers import ContextAwareEnhancer, LemmaContextAwareEnhancer
from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine

from app.engines.pii.ground.labels import NAME_LABELS, RULES
from app.engines.pii.names.tagger import TaggedSpan

NameTagger = Callable[[str, float], list[TaggedSpan]]

LANGUAGE = "en"
"""The only language that Presidio sees: every recognizer is registered under it and works in all languages."""

WITHOUT_CONTEXT = 0.3
"""The factor for the score of a finding that needs a context word and has none."""

_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_|\w")
_HUMPS = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+|[A-Z]")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_DIGITS = re.compile(r"\d(?:\S*\d)?")
_LONG = 5
_AROUND_DIGIT = 96
"""More characters than any finding with a digit has on either side of that digit."""

_STOPPED = """
a an the and or but if of at by for with to from in on is are was were be been am i you he she it we they
my your his her its our their this that these those not no do does did as so than too very can will just s
"""
_STOP_WORDS = frozenset(_STOPPED.split())


@lru_cache(maxsize=32_768)
def lemma(word: str) -> str:
    """Return the lower-case word without a regular plural s; this suffices for context words."""
    word = word.lower()
    return (
        word[:-1]
        if len(word) >= _LONG and word.endswith("s") and not word.endswith(("ss", "us", "is"))
        else word
    )


class NlpToken(str):
    """A token as Presidio expects it, with its text as ``text``."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """Return the token itself."""
        return str(self)


class NlpTokens(list[str]):
    """Tokens that become `NlpToken` only during iteration."""

    def __iter__(self) -> Iterator[NlpToken]:
        return map(NlpToken, super().__iter__())


def words(text: str) -> list[tuple[int, str]]:
    """Return offset and token of all words (camel case split), numbers and single symbols. Linear in the text."""
    tokens: list[tuple[int, str]] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if len(token) >= _LONG and _CAMEL.search(token) and token.isascii():
            tokens += [(match.start() + hump.start(), hump.group()) for hump in _HUMPS.finditer(token)]
        else:
            tokens.append((match.start(), token))
    return tokens


def counts(word: str) -> bool:
    """Return whether a lemma counts as context."""
    return word not in _STOP_WORDS and (len(word) > 1 or word.isalnum())


def digit_windows(text: str) -> list[tuple[int, int]]:
    """Return the parts of ``text`` that contain every possible finding with a digit: cut at white space, in order."""
    windows: list[tuple[int, int]] = []
    for match in _DIGITS.finditer(text):
        low, high = max(0, match.start() - _AROUND_DIGIT), min(len(text), match.end() + _AROUND_DIGIT)
        while low > 0 and not text[low].isspace():
            low -= 1
        while high < len(text) and not text[high].isspace():
            high += 1
        if windows and low <= windows[-1][1]:
            low = windows.pop()[0]
        windows.append((low, high))
    return windows


@dataclass(frozen=True, slots=True)
class Entity:
    """A finding of the tagger in the form that Presidio's NLP recognizer expects."""

    text: str
    label_: str
    start_char: int
    end_char: int


class EmbeddedArtifacts(NlpArtifacts):
    """What recognizers may query about a text: tokens, lemmas, names, and which findings are impossible in it."""

    def __init__(
        self, engine: "EmbeddedNlpEngine", text: str, entities: Sequence[TaggedSpan], language: str
    ) -> None:
        text_words = words(text)
        # Presidio annotates spaCy's types here but needs no more than these provide.
        tokens: Any = NlpTokens([token for _, token in text_words])
        names: Any = [Entity(text[e.start : e.end], e.label, e.start, e.end) for e in entities]
        super().__init__(
            entities=names,
            tokens=tokens,
            tokens_indices=[start for start, _ in text_words],
            lemmas=[lemma(token) for _, token in text_words],
            nlp_engine=engine,
            language=language,
            scores=[e.score for e in entities],
        )
        self.vocabulary: frozenset[str] = frozenset(self.keywords)
        self.digit_windows = digit_windows(text)
        self.demands_context = False

    def to_json(self) -> str:
        """Return the record for Presidio's tracing, which a service must never turn on: it holds content."""
        shown = {"entities": [entity.text for entity in self.entities], "tokens": list(map(str, self.tokens))}
        return json.dumps({**shown, "lemmas": self.lemmas, "keywords": self.keywords, "scores": self.scores})

    @staticmethod
    def set_keywords(nlp_engine: "EmbeddedNlpEngine", lemmas: list[str], language: str) -> list[str]:
        """Return the lemmas that count as context, in order."""
        del nlp_engine, language
        return [word for word in lemmas if counts(word)]


class EmbeddedNlpEngine(NlpEngine):
    """Provide names from the embedded tagger and lower-case lemmas, without a model to download or spaCy."""

    engine_name = "embedded"

    def __init__(self, tagger: NameTagger | None = None) -> None:
        self._tagger = tagger

    def load(self) -> None:
        """Load the weights that ship inside the package, unless there is a tagger already."""
        if self._tagger is None:
            from app.engines.pii.names.tagger import Tagger  # noqa: PLC0415 - numpy and the weights: first use only

            self._tagger = Tagger.embedded()

    def is_loaded(self) -> bool:
        """Return whether a tagger is loaded."""
        return self._tagger is not None

    def tagged(self, text: str, threshold: float | None, language: str = LANGUAGE) -> EmbeddedArtifacts:
        """Return the artifacts of ``text``; with a ``threshold`` of None, names are not searched."""
        return EmbeddedArtifacts(self, text, self.names(text, threshold), language)

    def names(self, text: str, threshold: float | None) -> list[TaggedSpan]:
        """Return the names in ``text``; none if ``threshold`` is None or no tagger is loaded."""
        if threshold is None or self._tagger is None:
            return []
        return self._tagger(text, threshold)

    def process_text(self, text: str, language: str) -> EmbeddedArtifacts:
        """Return tokens, lemmas and names of ``text``."""
        return self.tagged(text, 0.5, language)

    def process_batch(
        self,
        texts: Iterable[Any],
        language: str,
        batch_size: int = 1,
        n_process: int = 1,
        as_tuples: bool = False,
        **_options: Any,
    ) -> Iterator[tuple[Any, ...]]:
        """Yield each text with its artifacts; with ``as_tuples`` items are texts with tags, yielded too."""
        del batch_size, n_process
        for item in texts:
            text = item[0] if as_tuples else item
            result = text, self.process_text(text, language)
            yield (*result, item[1]) if as_tuples else result

    def is_stopword(self, word: str, language: str) -> bool:
        """Return whether ``word`` never counts as context."""
        del language
        return word.lower() in _STOP_WORDS

    def is_punct(self, word: str, language: str) -> bool:
        """Return whether ``word`` is a symbol."""
        del language
        return len(word) == 1 and not word.isalnum()

    def get_supported_entities(self) -> list[str]:
        """Return the labels of the tagger."""
        return sorted(NAME_LABELS)

    def get_supported_languages(self) -> list[str]:
        """Return the only language, under which everything is registered."""
        return [LANGUAGE]


class LinearContextEnhancer(LemmaContextAwareEnhancer):
    """Give the same results as Presidio, but find tokens by bisection and skip all words that are not keywords."""

    def enhance_using_context(
        self,
        text: str,
        raw_results: list[RecognizerResult],
        nlp_artifacts: NlpArtifacts,
        recognizers: list[EntityRecognizer],
        context: list[str] | None = None,
    ) -> list[RecognizerResult]:
        """Return copies of the results, with a higher score if a context word is nearby."""
        del text
        caller_words = [word.lower() for word in context or ()]
        by_id = {recognizer.id: recognizer for recognizer in recognizers}
        vocabulary = frozenset(nlp_artifacts.keywords)
        lemmas = [word.lower() for word in nlp_artifacts.lemmas]
        places = [place for place, word in enumerate(lemmas) if word in vocabulary]
        enhanced = [copy.copy(result) for result in raw_results]
        for result in enhanced:
            metadata = result.recognition_metadata or {}
            recognizer = by_id.get(metadata.get(RecognizerResult.RECOGNIZER_IDENTIFIER_KEY))
            if recognizer is None or metadata.get(RecognizerResult.IS_SCORE_ENHANCED_BY_CONTEXT_KEY):
                continue
            if recognizer.context:
                near = self._near(result.start, nlp_artifacts, lemmas, places)
                self._weigh(result, recognizer, near, caller_words)
        return enhanced

    def _near(self, start: int, artifacts: NlpArtifacts, lemmas: list[str], places: list[int]) -> list[str]:
        """Return the keywords before and at the token of ``start``, then those after it, in the order of the text."""
        if not lemmas:
            return [""]
        token = bisect_right(artifacts.tokens_indices, start) - 1
        if token < 0 or start >= artifacts.tokens_indices[token] + len(artifacts.tokens[token]):
            token = min(token + 1, len(lemmas) - 1)
        upto = bisect_right(places, token)
        before = places[max(0, upto - self.context_prefix_count - 1) : upto]
        first = upto - 1 if upto and places[upto - 1] == token else upto
        after = places[first : first + self.context_suffix_count + 1]
        return [lemmas[place] for place in (*before, *(place for place in after if place not in before))]

    def _weigh(
        self, result: RecognizerResult, recognizer: EntityRecognizer, near: list[str], caller_words: list[str]
    ) -> None:
        """Raise the score of ``result`` if a context word is near."""
        word = self._find_supportive_word_in_context(
            [*near, *caller_words], recognizer.context, self.context_matching_mode
        )
        if word:
            raised = max(
                result.score + self.context_similarity_factor, self.min_score_with_context_similarity
            )
            result.score = min(raised, ContextAwareEnhancer.MAX_SCORE)


class PhraseContextEnhancer(LinearContextEnhancer):
    """Match context words whole and phrases in sequence; lower the score of findings that lack required context."""

    def __init__(self) -> None:
        super().__init__(context_matching_mode="whole_word")
        self._phrases: dict[str, str] = {}

    def _weigh(
        self, result: RecognizerResult, recognizer: EntityRecognizer, near: list[str], caller_words: list[str]
    ) -> None:
        before = result.score
        joined = f" {' '.join(near)} | {' '.join(caller_words)} "
        if any(self._phrase(word) in joined for word in recognizer.context):
            raised = max(before + self.context_similarity_factor, self.min_score_with_context_similarity)
            result.score = min(raised, ContextAwareEnhancer.MAX_SCORE)
            return
        need = RULES[result.entity_type].context if result.entity_type in RULES else "no"
        if need == "yes" or (need == "bare" and result.recognition_metadata.get("bare")):
            result.score = before * WITHOUT_CONTEXT

    def _phrase(self, word: str) -> str:
        """Return a context word or phrase in the spelling of the keywords, between blanks."""
        phrase = self._phrases.get(word)
        if phrase is None:
            phrase = self._phrases[word] = f" {' '.join(context_words(word))} "
        return phrase


def context_words(phrase: str) -> list[str]:
    """Return the keywords of a context word or phrase, spelled like the keywords of a text."""
    return [word for _, token in words(phrase) if counts(word := lemma(token))]
