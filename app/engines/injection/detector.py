"""The embedded detector: rules over every view of a text, and a classifier over windows of what a user says."""

import asyncio
import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.core.contracts.engines import EngineReport, InjectionFinding, InjectionJudgement
from app.engines.injection.classifier import InjectionClassifier, TextWindow
from app.engines.injection.matching import SPELLED_RULE, Match, RuleMatcher, rules_digest
from app.engines.injection.views import InjectionView, views
from app.engines.injection.wording import CLASSIFIER, ENCODED_INSTRUCTIONS, HIDDEN_TEXT

NAME = "embedded-injection"
_INLINE_CHARACTERS = 600
"""Shorter texts take less than a millisecond."""

_MOST_WINDOWS = 16
"""Parts of one text that are told of; a long one may be an attack all over."""

_EVIDENCE = 0.9
"""What a rule that matches only once a text was decoded says by itself: nobody spells requests like that."""

_SLIGHT_WORDS = 5
_SLIGHT_CHARACTERS = 40
_UNSURE = 0.25
"""What the classifier can say at most of so short a text in which no rule matches; under every level."""

_INVISIBLE = re.compile("[\u200b-\u200d\u2060-\u2064\ufeff]{8,}|[\U000e0020-\U000e007e]{8,}")
_FLAG = "\U0001f3f4"
_LONE = re.compile("[\ud800-\udfff]")
_QUOTED = 60
_MENTION = re.compile(
    r"(?i)prompt[- ]injection|jail ?break|attack|malicious|for example|e\.g\.|such as|phrase|sentence|like this|detect"
    r"|the words|says?[:,]? [\"'“`]|called"
)
_QUOTES = "\"'“”‘’`«»„"  # noqa: RUF001 - the quotation marks of several languages


@dataclass(frozen=True, slots=True)
class EmbeddedInjectionDetector:
    """Judges in this process; patterns and weights are loaded on the first use."""

    async def judge(self, texts: Sequence[str], *, documents: bool = False) -> InjectionJudgement:
        """Judge each of ``texts``; ``documents`` leaves out the classifier, which reads requests only."""
        if sum(map(len, texts)) <= _INLINE_CHARACTERS:
            return judged(texts, documents=documents)
        return await asyncio.to_thread(judged, texts, documents=documents)


def judged(texts: Sequence[str], *, documents: bool) -> InjectionJudgement:
    """Return the judgement of ``texts``, computed here."""
    matcher, classifier = RuleMatcher.shared(), InjectionClassifier.embedded()
    made = [_text(text, matcher, None if documents else classifier) for text in texts]
    report = EngineReport(NAME, f"{classifier.version}-{rules_digest()}")
    return InjectionJudgement([score for score, _ in made], [findings for _, findings in made], report)


def _text(
    text: str, matcher: RuleMatcher, classifier: InjectionClassifier | None
) -> tuple[float, list[InjectionFinding]]:
    text = _LONE.sub("\ufffd", text)
    found: list[InjectionFinding] = list(_hidden(text))
    score = _together(found)
    for number, view in enumerate(views(text)):
        said: list[Match] = []
        if view.spelled:
            matches = _spelled(view, matcher)
        else:
            said = matcher.find(view.text, documents=classifier is None)
            matches = [_finding(view, match) for match in said]
            if classifier is not None and not view.guessed:
                most = 1.0 if said or not _is_slight(view.text) else _UNSURE
                windows = [_window(view, one, most) for one in classifier.windows(view.text, said)]
                score = max([score, *(one.score for one in windows)])
                notable = [one for one in windows if one.score >= classifier.notable]
                found += heapq.nlargest(_MOST_WINDOWS, notable, key=lambda one: one.score)
        found += matches
        # What the rules find in the text as it stands is weighed by the classifier, where there is one.
        if classifier is None or number:
            score = max(score, _together(matches))
        elif any(match.rule.alone for match in said):
            score = max(score, *(match.rule.score for match in said if match.rule.alone))
    return round(score, 4), _merged(found)


def _spelled(view: InjectionView, matcher: RuleMatcher) -> list[InjectionFinding]:
    if not matcher.find_spelled(view.text):
        return []
    place = view.locate(0, len(view.text))
    return [InjectionFinding(SPELLED_RULE.kind, *place, SPELLED_RULE.score)]


def _finding(view: InjectionView, match: Match) -> InjectionFinding:
    """Return what a match means, at the offsets of the text."""
    kind, score = match.rule.kind, match.rule.score
    if view.encoded:
        kind = HIDDEN_TEXT if view.hidden else ENCODED_INSTRUCTIONS
        score = max(score, _EVIDENCE)
    elif is_mentioned(view.text, match.start, match.end):
        score /= 2
    return InjectionFinding(kind, *view.locate(match.start, match.end), round(score, 3))


def _is_slight(text: str) -> bool:
    """Tell whether a text is too short for its n-grams to say anything: "Who are you?" has those of many attacks."""
    return len(text) <= _SLIGHT_CHARACTERS and len(text.split()) <= _SLIGHT_WORDS


def _window(view: InjectionView, window: TextWindow, most: float) -> InjectionFinding:
    kind = CLASSIFIER
    if view.encoded:
        kind = HIDDEN_TEXT if view.hidden else ENCODED_INSTRUCTIONS
    return InjectionFinding(kind, *view.locate(window.start, window.end), round(min(window.score, most), 4))


def is_mentioned(text: str, start: int, end: int) -> bool:
    """Tell whether ``text[start:end]`` is quoted and talked about, rather than said."""
    before, after = text[max(0, start - 4) : start], text[end : end + _QUOTED]
    if not any(mark in before for mark in _QUOTES) or not any(mark in after for mark in _QUOTES):
        return False
    around = text[max(0, start - 160) : start] + " " + text[end : end + 100]
    return _MENTION.search(around) is not None


def _hidden(text: str) -> Iterable[InjectionFinding]:
    """Yield runs of invisible characters that are long enough to say something."""
    if text.isascii():
        return
    for found in _INVISIBLE.finditer(text):
        if text[found.start() - 1 : found.start()] != _FLAG:
            yield InjectionFinding(HIDDEN_TEXT, found.start(), found.end(), 0.8)


def _together(findings: Iterable[InjectionFinding]) -> float:
    """Return what findings of different kinds say together."""
    best: dict[str, float] = {}
    for one in findings:
        best[one.kind] = max(best.get(one.kind, 0.0), one.score)
    against = 1.0
    for score in best.values():
        against *= 1.0 - score
    return 1.0 - against


def _merged(findings: list[InjectionFinding]) -> list[InjectionFinding]:
    """Return the findings in the order of the text; of one kind at one place only the strongest."""
    kept: list[InjectionFinding] = []
    for one in sorted(findings, key=lambda found: (-found.score, found.start, found.kind)):
        if not any(one.kind == other.kind and _meet(one, other) for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda found: (found.start, found.end, found.kind))


def _meet(one: InjectionFinding, other: InjectionFinding) -> bool:
    return one.start < other.end and other.start < one.end
