"""Presidio as it comes and our registry, each as Presidio runs it and as one scan: what the equality tests compare."""

import copy
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import spacy
import tldextract
from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerRegistry, predefined_recognizers
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer
from presidio_analyzer.nlp_engine import NlpArtifacts, SpacyNlpEngine
from presidio_analyzer.predefined_recognizers import SpacyRecognizer

from app.engines.pii.ground.lean import compiled_once
from app.engines.pii.names.nlp import LANGUAGE, EmbeddedNlpEngine, PhraseContextEnhancer
from app.engines.pii.recognizers.patterns import FLAGS
from app.engines.pii.recognizers.registry import FixedRegistry, build_registry
from app.engines.pii.scan.matchers import MatcherName, build
from app.engines.pii.scan.once import ScanOnce, WantedRecognizers
from app.engines.pii.scan.plain_words import PlainWords
from app.engines.pii.scan.surroundings import Keywords
from app.engines.pii.scan.weighing import PhraseWeighing, PresidioWeighing

Result = tuple[str, int, int, float]
Find = Callable[[str], set[Result]]

MATCHERS: tuple[MatcherName, ...] = ("hyperscan", "re2", "plain")
_DEFAULT = [
    "CreditCard",
    "UsBank",
    "UsLicense",
    "UsItin",
    "UsPassport",
    "UsSsn",
    "Nhs",
    "Crypto",
    "Date",
    "Email",
    "Iban",
    "Ip",
    "MedicalLicense",
    "MacAddress",
    "Uuid",
    "Phone",
    "Url",
]


class LowerCase(SpacyNlpEngine):
    """spaCy's tokenizer with the lower-case word as lemma, so that context words work without a model."""

    def __init__(self) -> None:
        super().__init__(models=[{"lang_code": LANGUAGE, "model_name": "blank"}])
        self.nlp: dict[str, Any] = {LANGUAGE: spacy.blank(LANGUAGE)}

    def load(self) -> None:
        """Load nothing."""

    def _doc_to_nlp_artifact(self, doc: Any, language: str) -> NlpArtifacts:
        return NlpArtifacts(
            entities=[],
            tokens=doc,
            tokens_indices=[token.idx for token in doc],
            lemmas=[token.lower_ for token in doc],
            nlp_engine=self,
            language=language,
            scores=[],
        )


class SpacyWords:
    """The keywords of Presidio's NLP engine, as its tokenizer cuts them: a text once for all who ask in a row."""

    def __init__(self, nlp: Any) -> None:
        self._cut = lru_cache(maxsize=1)(nlp.tokenizer)
        self._vocabulary = nlp.vocab

    def tokens(self, text: str, seen: bytes) -> tuple[list[int], list[int]]:
        """Return begins and ends of all tokens; white space may be one, and is a keyword to Presidio then."""
        del seen
        tokens = list(self._cut(text))
        return [token.idx for token in tokens], [token.idx + len(token) for token in tokens]

    def keywords(self, token: str) -> Keywords:
        """Return the token where it is a keyword."""
        lower = self._vocabulary[token].lower_
        return Keywords((0,), (len(token),), (lower,)) if self._counts(lower) else Keywords((), (), ())

    def _counts(self, word: str) -> bool:
        lexeme = self._vocabulary[word]
        return not (lexeme.is_stop or lexeme.is_punct or word in {"be", "-pron-"} or ":" in word)


def default_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers that Presidio has switched on by default for English."""
    # Else its e-mail recognizer asks the internet for the list of public suffixes, and keeps it in a file.
    tldextract.extract = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())
    return [getattr(predefined_recognizers, f"{name}Recognizer")() for name in _DEFAULT]


def presidio(recognizers: list[EntityRecognizer]) -> Find:
    """Return Presidio's analyzer over ``recognizers``, all results."""
    registry = RecognizerRegistry(recognizers, FLAGS, [LANGUAGE])
    engine = AnalyzerEngine(registry=registry, nlp_engine=LowerCase(), supported_languages=[LANGUAGE])
    return lambda text: {_result(one) for one in engine.analyze(text, LANGUAGE)}


def scans_like_presidio(recognizers: list[EntityRecognizer]) -> dict[str, Find]:
    """Return the scan over the same recognizers with each matcher, with Presidio's context words."""
    words = SpacyWords(LowerCase().nlp[LANGUAGE])
    plain = ScanOnce(recognizers, PresidioWeighing(LemmaContextAwareEnhancer()), words, "plain")
    return {matcher: _all(with_matcher(plain, matcher)) for matcher in MATCHERS}


def ours_plain() -> Find:
    """Return Presidio's analyzer over our own registry, without names."""
    engine = AnalyzerEngine(
        registry=FixedRegistry(our_recognizers()),
        nlp_engine=EmbeddedNlpEngine(lambda _text, _threshold: []),
        supported_languages=[LANGUAGE],
        context_aware_enhancer=PhraseContextEnhancer(),
    )
    return lambda text: {_result(one) for one in engine.analyze(text, LANGUAGE)}


def our_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers of our registry that look for patterns."""
    with compiled_once():
        return [one for one in build_registry().recognizers if not isinstance(one, SpacyRecognizer)]


def scans_ours() -> dict[str, tuple[ScanOnce, Find]]:
    """Return the scan over our own registry with each matcher."""
    plain = ScanOnce(our_recognizers(), PhraseWeighing(), PlainWords(), "plain")
    return {matcher: (scan, _all(scan)) for matcher in MATCHERS for scan in [with_matcher(plain, matcher)]}


def with_matcher(scan: ScanOnce, matcher: MatcherName) -> ScanOnce:
    """Return ``scan`` with another matcher."""
    other = copy.copy(scan)
    other.matcher = build(
        matcher, scan.plan.expressions, scan.plan.first_word, scan.plan.reaches, scan.plan.parts
    )
    return other


def _all(scan: ScanOnce) -> Find:
    chosen = WantedRecognizers(dict.fromkeys(range(len(scan.recognizers)), 0.0))
    return lambda text: {
        (one.entity, one.start, one.end, round(one.score, 4)) for one in scan.search(text, chosen)
    }


def _result(one: Any) -> Result:
    return one.entity_type, one.start, one.end, round(one.score, 4)
