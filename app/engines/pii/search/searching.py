"""Search a text for what the recognizers and the tagger find, before lists, overlaps and names carried on."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from presidio_analyzer.predefined_recognizers import SpacyRecognizer

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.ground.labels import NAME_LABELS, RULES, extend, thresholds
from app.engines.pii.names.nlp import EmbeddedArtifacts, EmbeddedNlpEngine, NameTagger
from app.engines.pii.names.plausible import plausible_parts
from app.engines.pii.names.taggers import Taggers
from app.engines.pii.recognizers.patterns import ExactPatterns
from app.engines.pii.recognizers.registry import build_registry
from app.engines.pii.recognizers.user import Definitions, build
from app.engines.pii.scan.matchers import MatcherName
from app.engines.pii.scan.once import ScanOnce, WantedRecognizers
from app.engines.pii.scan.plain_words import PlainWords
from app.engines.pii.scan.weighing import PhraseWeighing
from app.engines.pii.search.refused import refused

CHUNK = 8_192
"""Characters that the tagger sees at once; more would only cost memory."""

OVERLAP = 512
"""Characters that two chunks share; longer than any name."""

_CONSIDERED = 0.1
"""The score from which on words are worth a mention as a possible name."""

_CUT = 256
_LONGEST_WORD = 4_096
_CHOICES = 64
_UNBROKEN = re.compile(r"\A[^\s\"'`<>{}()\[\],;]+")


class Finding(NamedTuple):
    """What one recognizer found, and why: offsets ``[start, end)``, the label, the score after context words.

    ``entity`` is Presidio's type, ``base`` the score before context, ``context`` the words that changed it,
    ``pattern`` the name of the pattern where there is one, ``view`` how the text was read (``text``, ``plain``,
    ``base64`` ...).
    """

    start: int
    end: int
    label: str
    score: float
    entity: str = ""
    recognizer: str = ""
    pattern: str = ""
    base: float = 0.0
    context: str = ""
    view: str = "text"


class Search:
    """Our recognizers and the tagger over a text; not for use by two threads at once.

    ``matcher`` says how the places are found at which a recognizer has to look, never what it finds there;
    ``database`` is what `serialized` of another process gave, so that nothing has to be compiled. ``definitions`` are a
    user's recognizers, whose types are this process's from then on.
    """

    def __init__(
        self,
        tagger: NameTagger | None = None,
        matcher: MatcherName = "auto",
        database: bytes | None = None,
        definitions: Definitions | None = None,
    ) -> None:
        added = definitions or Definitions()
        extend(added.rules())
        self._taggers = Taggers(tagger)
        self._nlp = EmbeddedNlpEngine(self._taggers.tagger("fast"))
        offered: list[Any] = [*build_registry().recognizers, *build(added.custom)]
        recognizers = [
            each
            for each in offered
            if not isinstance(each, SpacyRecognizer) and each.name not in added.taken_away
        ]
        self._scan = ScanOnce(recognizers, PhraseWeighing(), PlainWords(), matcher, database)
        self._choices: dict[DetectionOptions, tuple[dict[str, float], WantedRecognizers]] = {}

    @cached_property
    def engine(self) -> str:
        """Return the name of the matcher in use."""
        return self._scan.matcher.name

    def serialized(self) -> bytes | None:
        """Return the compiled database for other processes; None where the matcher has none."""
        return self._scan.matcher.serialized()

    def findings(
        self, text: str, options: DetectionOptions, windows: Sequence[tuple[int, int]] | None = None
    ) -> Iterator[Finding]:
        """Yield what ``options`` ask for in ``text``, or in its ``windows`` alone; in any order, overlaps and all."""
        least, chosen = self._choice(options)
        names = [least[label] for label in NAME_LABELS if label in least]
        for low, high in windows if windows is not None else [(0, len(text))]:
            part = text if high - low == len(text) else text[low:high]
            if chosen.least:
                yield from self._patterns(part, low, least, chosen)
            if names:
                yield from self._names(part, low, least, min(names), self._taggers.tagger(options.names))

    def considered(self, text: str, options: DetectionOptions) -> Iterator[Finding]:
        """Yield all that anybody takes for anything in ``text``, whatever its type and score; takes longer.

        A score of zero stands for what a validator refused beside a word for it.
        """
        least = {entity: _CONSIDERED if entity in NAME_LABELS else 0.0 for entity in RULES}
        chosen = WantedRecognizers(dict.fromkeys(range(len(self._scan.recognizers)), 0.0))
        yield from self._patterns(text, 0, least, chosen)
        yield from self._names(text, 0, least, _CONSIDERED, self._taggers.tagger(options.names))
        for start, end, one, pattern, word in refused(self._scan.recognizers, text):
            entity = one.supported_entities[0]
            label = RULES[entity].label
            yield Finding(start, end, label, 0.0, entity, one.name, pattern, context=word)

    def context_words(self, found: Finding) -> Sequence[str]:
        """Return the words that raise the score of what a recognizer finds, one of them nearby is enough."""
        recognizers: list[Any] = self._scan.recognizers
        return next(
            (
                one.context or ()
                for one in recognizers
                if one.name == found.recognizer and found.entity in one.supported_entities
            ),
            (),
        )

    def _patterns(
        self, part: str, low: int, least: dict[str, float], chosen: WantedRecognizers
    ) -> Iterator[Finding]:
        recognizers: list[Any] = self._scan.recognizers
        for one in self._scan.search(part, chosen, lambda: self._artifacts(part)):
            if one.entity in least and one.score >= least[one.entity]:
                yield Finding(
                    low + one.start,
                    low + one.end,
                    RULES[one.entity].label,
                    round(one.score, 4),
                    one.entity,
                    recognizers[one.owner].name,
                    one.pattern,
                    one.base,
                    one.word,
                )

    def _artifacts(self, part: str) -> EmbeddedArtifacts:
        return self._nlp.tagged(part, None)

    def _names(
        self, part: str, low: int, least: dict[str, float], threshold: float, tagger: NameTagger
    ) -> Iterator[Finding]:
        for start, end in chunks(part, 0, len(part)):
            for name in tagger(part[start:end], threshold):
                if name.score < least.get(name.label, 2.0):
                    continue
                first, last = _beyond_cut(
                    part,
                    (start + name.start, start + name.end),
                    start or None,
                    end if end < len(part) else None,
                )
                for begin, stop in plausible_parts(part, first, last, name.label):
                    yield Finding(
                        low + begin,
                        low + stop,
                        RULES[name.label].label,
                        round(float(name.score), 4),
                        name.label,
                        "EmbeddedNameRecognizer",
                        base=float(name.score),
                    )

    def _choice(self, options: DetectionOptions) -> tuple[dict[str, float], WantedRecognizers]:
        """Return the least score of each type asked for, and of each recognizer that finds one of them."""
        key = DetectionOptions(options.strict, entities=options.entities, exclude=options.exclude)
        known = self._choices.get(key)
        if known is None:
            if len(self._choices) >= _CHOICES:
                self._choices.clear()
            least = thresholds(options)
            known = self._choices[key] = least, self._chosen(least, strict=options.strict)
        return known

    def _chosen(self, least: dict[str, float], *, strict: bool) -> WantedRecognizers:
        chosen: dict[int, float] = {}
        demanding: set[int] = set()
        for owner, recognizer in enumerate(self._scan.recognizers):
            wanted = [least[entity] for entity in recognizer.supported_entities if entity in least]
            if wanted:
                chosen[owner] = min(wanted)
            entity = recognizer.supported_entities[0]
            if (
                isinstance(recognizer, ExactPatterns)
                and recognizer.context
                and RULES[entity].context == "yes"
            ):
                demanding.add(owner)
        return WantedRecognizers(chosen, frozenset() if strict else frozenset(demanding))


def chunks(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield parts of ``text[low:high]`` that overlap, cut at white space where some is near."""
    start = low
    while high - start > CHUNK:
        end = _cut(text, start + CHUNK - _CUT, start + CHUNK)
        yield start, end
        start = _cut(text, end - OVERLAP, end - OVERLAP + _CUT)
    if start < high:
        yield start, high


def _beyond_cut(text: str, span: tuple[int, int], start: int | None, end: int | None) -> tuple[int, int]:
    """Return ``span``, extended over the rest of its word where it touches a cut that went through the word."""
    low, high = span
    if low == start:
        before = _UNBROKEN.search(text[max(0, low - _LONGEST_WORD) : low][::-1])
        low -= before.end() if before else 0
    if high == end:
        after = _UNBROKEN.search(text[high : high + _LONGEST_WORD])
        high += after.end() if after else 0
    return low, high


def _cut(text: str, low: int, high: int) -> int:
    """Return the last offset in ``(low, high]`` that follows white space, or ``high`` where there is none."""
    for place in range(high, low, -1):
        if text[place - 1].isspace():
            return place
    return high
