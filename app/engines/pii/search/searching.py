"""Run the recognizers and the tagger over a text, before lists, overlaps and repeated names are handled."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from presidio_analyzer.predefined_recognizers import SpacyRecognizer

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.ground.labels import NAME_LABELS, PERSON, RULES, extend, thresholds
from app.engines.pii.names.doubts import SURE_BESIDE, believed, code_of, readers
from app.engines.pii.names.nlp import EmbeddedArtifacts, EmbeddedNlpEngine, NameTagger
from app.engines.pii.names.plausible import plausible_parts
from app.engines.pii.names.recasing import SURE, recased
from app.engines.pii.names.roles import spoken_of
from app.engines.pii.names.structures import structured_people
from app.engines.pii.names.taggers import Taggers
from app.engines.pii.names.things import things_among
from app.engines.pii.recognizers.registry import build_registry
from app.engines.pii.recognizers.user import Definitions, build
from app.engines.pii.scan.matchers import MatcherName
from app.engines.pii.scan.once import ScanOnce, WantedRecognizers
from app.engines.pii.scan.plain_words import PlainWords
from app.engines.pii.scan.weighing import PhraseWeighing
from app.engines.pii.search.refused import refused

CHUNK = 8_192
"""Characters that the tagger reads at once; more would only use memory."""

OVERLAP = 512
"""Characters that two chunks share; longer than any name."""

_STRUCTURED = "StructuredNameRecognizer"
_STRUCTURED_SCORE = 0.6
"""The score of a person whom the structure of the text shows."""

_CONSIDERED = 0.1
"""The minimum score at which words are reported as a possible name."""

_CUT = 256
_LONGEST_WORD = 4_096
_CHOICES = 64
_UNBROKEN = re.compile(r"\A[^\s\"'`<>{}()\[\],;]+")


class Finding(NamedTuple):
    """What one recognizer found, and why: offsets ``[start, end)``, the label, the score after context words.

    ``entity`` is Presidio's type, ``base`` the score before context, ``context`` the words that changed it,
    ``pattern`` the name of the pattern if there is one, ``view`` how the text was decoded (``text``, ``plain``,
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
    share: float = 1.0


class Search:
    """Run our recognizers and the tagger over a text; not safe for use by two threads at once.

    ``matcher`` decides how to locate the places that a recognizer has to examine, never what it finds there.
    ``database`` is the result of `serialized` in another process, so that nothing has to be compiled. ``definitions``
    are a user's recognizers, whose types this process looks for from then on.
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
        available: list[Any] = [*build_registry().recognizers, *build(added.custom)]
        recognizers = [
            recognizer
            for recognizer in available
            if not isinstance(recognizer, SpacyRecognizer) and recognizer.name not in added.disabled
        ]
        self._scan = ScanOnce(recognizers, PhraseWeighing(), PlainWords(), matcher, database)
        self._choices: dict[DetectionOptions, tuple[dict[str, float], WantedRecognizers]] = {}

    @cached_property
    def engine(self) -> str:
        """Return the name of the matcher in use."""
        return self._scan.matcher.name

    def serialized(self) -> bytes | None:
        """Return the compiled database for other processes; None if the matcher has none."""
        return self._scan.matcher.serialized()

    def findings(
        self,
        text: str,
        options: DetectionOptions,
        windows: Sequence[tuple[int, int]] | None = None,
        *,
        tagged: bool = True,
    ) -> Iterator[Finding]:
        """Yield what ``options`` request in ``text``, or in its ``windows`` only; in any order, with overlaps.

        ``tagged``: also the names that the tagger finds.
        """
        least, chosen = self._choice(options)
        names = [least[label] for label in NAME_LABELS if tagged and label in least]
        code = code_of(text, options.language) if names else ""
        chosen_readers = readers(text, code, options.names) if names else ()
        taggers = [self._taggers.tagger(name) for name in chosen_readers]
        for low, high in windows if windows is not None else [(0, len(text))]:
            part = text if high - low == len(text) else text[low:high]
            if chosen.least:
                yield from self._patterns(part, low, least, chosen)
            if names:
                others: list[tuple[int, int]] | None = None if options.strict else []
                unsure = len(taggers) - 1 if not options.strict else 0
                spotted = [
                    name
                    for place, tagger in enumerate(taggers)
                    for name in self._names(part, low, least, min(names), tagger, others)
                    if place >= unsure or name.label != PERSON or name.score >= SURE_BESIDE
                ]
                if PERSON in least:
                    if "world" not in chosen_readers:
                        spotted += self._recased(part, low)
                    spotted += self._structured(part, low, spotted, others)
                yield from spotted if options.strict else self._believed(text, spotted, code, taggers)

    def considered(self, text: str, options: DetectionOptions) -> Iterator[Finding]:
        """Yield every match in ``text``, whatever its type and score; takes longer than `findings`.

        A score of zero marks a match that a validator rejected although a context word is nearby.
        """
        least = {entity: _CONSIDERED if entity in NAME_LABELS else 0.0 for entity in RULES}
        chosen = WantedRecognizers(dict.fromkeys(range(len(self._scan.recognizers)), 0.0))
        yield from self._patterns(text, 0, least, chosen)
        for reader in readers(text, code_of(text, options.language), options.names):
            tagger = self._taggers.tagger(reader)
            yield from self._names(text, 0, least, _CONSIDERED, tagger)
        for start, end, recognizer, pattern, word in refused(self._scan.recognizers, text):
            entity = recognizer.supported_entities[0]
            label = RULES[entity].label
            yield Finding(start, end, label, 0.0, entity, recognizer.name, pattern, context=word)

    def context_words(self, finding: Finding) -> Sequence[str]:
        """Return the context words of the recognizer behind ``finding``; one of them nearby raises its score."""
        recognizers: list[Any] = self._scan.recognizers
        return next(
            (
                recognizer.context or ()
                for recognizer in recognizers
                if recognizer.name == finding.recognizer and finding.entity in recognizer.supported_entities
            ),
            (),
        )

    def _patterns(
        self, part: str, low: int, least: dict[str, float], chosen: WantedRecognizers
    ) -> Iterator[Finding]:
        recognizers: list[Any] = self._scan.recognizers
        for match in self._scan.search(part, chosen, lambda: self._artifacts(part)):
            if match.entity in least and match.score >= least[match.entity]:
                yield Finding(
                    low + match.start,
                    low + match.end,
                    RULES[match.entity].label,
                    round(match.score, 4),
                    match.entity,
                    recognizers[match.owner].name,
                    match.pattern,
                    match.base,
                    match.word,
                )

    def _artifacts(self, part: str) -> EmbeddedArtifacts:
        return self._nlp.tagged(part, None)

    def _names(
        self,
        part: str,
        low: int,
        least: dict[str, float],
        threshold: float,
        tagger: NameTagger,
        others: list[tuple[int, int]] | None = None,
    ) -> Iterator[Finding]:
        """Yield what a tagger finds of the labels in ``least``; organizations and places are added to ``others``."""
        for start, end in chunks(part, 0, len(part)):
            for name in tagger(part[start:end], threshold):
                if name.score < least.get(name.label, 2.0):
                    if others is not None and name.label in ("ORGANIZATION", "LOCATION"):
                        others.append((start + name.start, start + name.end))
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
                        share=name.share,
                    )

    def _recased(self, part: str, low: int) -> list[Finding]:
        """Return the people that show where English in one case is spelled as usual."""
        tagger = self._taggers.tagger("fast")
        if (kinds := getattr(tagger, "kinds", None)) is None:
            return []
        return [
            Finding(
                low + start + name.start,
                low + start + name.end,
                PERSON,
                round(float(name.score), 4),
                PERSON,
                "EmbeddedNameRecognizer",
                base=float(name.score),
            )
            for start, spelled in recased(part, kinds)
            for name in tagger(spelled, SURE)
            if name.label == PERSON
        ]

    def _structured(
        self, part: str, low: int, findings: Sequence[Finding], others: Sequence[tuple[int, int]] | None
    ) -> Iterator[Finding]:
        """Yield the people whom the structure of a text shows beside the ``findings`` and ``others`` of the tagger."""
        if (kinds := getattr(self._taggers.tagger("fast"), "kinds", None)) is None:
            return
        people = [(name.start - low, name.end - low) for name in findings if name.label == PERSON]
        people += (named := list(spoken_of(part, others or (), kinds)))
        for start, end in (*named, *structured_people(part, people, kinds)):
            yield Finding(
                low + start,
                low + end,
                PERSON,
                _STRUCTURED_SCORE,
                PERSON,
                _STRUCTURED,
                base=_STRUCTURED_SCORE,
            )

    def _believed(
        self, text: str, findings: Iterable[Finding], code: str, taggers: Sequence[NameTagger]
    ) -> Iterator[Finding]:
        """Yield findings, of people only what bears a second look in a text in the language ``code``."""
        kinds = next((of for tagger in taggers if (of := getattr(tagger, "kinds", None)) is not None), None)
        listed = list(findings)
        things = things_among(text, ((each.start, each.end) for each in listed if each.label == PERSON))
        for finding in listed:
            if finding.label != PERSON or kinds is None:
                yield finding
                continue
            if (finding.start, finding.end) in things:
                continue
            if finding.recognizer == _STRUCTURED and not code:
                yield finding
                continue
            place = believed(text, finding.start, finding.end, finding.score, code, kinds, finding.share)
            if place:
                yield finding._replace(start=place[0], end=place[1])

    def _choice(self, options: DetectionOptions) -> tuple[dict[str, float], WantedRecognizers]:
        """Return the minimum score of each requested type, and of each recognizer that finds one of them."""
        key = DetectionOptions(options.strict, entities=options.entities, exclude=options.exclude)
        choice = self._choices.get(key)
        if choice is None:
            if len(self._choices) >= _CHOICES:
                self._choices.clear()
            least = thresholds(options)
            choice = self._choices[key] = least, self._chosen(least, strict=options.strict)
        return choice

    def _chosen(self, least: dict[str, float], *, strict: bool) -> WantedRecognizers:
        chosen: dict[int, float] = {}
        for owner, recognizer in enumerate(self._scan.recognizers):
            wanted = [least[entity] for entity in recognizer.supported_entities if entity in least]
            if wanted:
                chosen[owner] = min(wanted)
        return WantedRecognizers(chosen, frozenset() if strict else self._scan.plan.demanding)


def chunks(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield overlapping parts of ``text[low:high]``, cut at white space if there is some nearby."""
    start = low
    while high - start > CHUNK:
        end = _cut(text, start + CHUNK - _CUT, start + CHUNK)
        yield start, end
        start = _cut(text, end - OVERLAP, end - OVERLAP + _CUT)
    if start < high:
        yield start, high


def _beyond_cut(text: str, span: tuple[int, int], start: int | None, end: int | None) -> tuple[int, int]:
    """Return ``span``, extended over the rest of its word if it touches a cut through that word."""
    low, high = span
    if low == start:
        before = _UNBROKEN.search(text[max(0, low - _LONGEST_WORD) : low][::-1])
        low -= before.end() if before else 0
    if high == end:
        after = _UNBROKEN.search(text[high : high + _LONGEST_WORD])
        high += after.end() if after else 0
    return low, high


def _cut(text: str, low: int, high: int) -> int:
    """Return the last offset in ``(low, high]`` that follows white space, or ``high`` if there is none."""
    for place in range(high, low, -1):
        if text[place - 1].isspace():
            return place
    return high
