"""The embedded detector: rules over every view of a text, and a classifier over windows of a user's requests."""

import asyncio
import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.core.contracts.engines import EngineReport, InjectionFinding, InjectionJudgement
from app.engines.injection.classifier import InjectionClassifier, TextWindow
from app.engines.injection.matching import SPELLED_RULE, Match, RuleMatcher, rules_digest
from app.engines.injection.quoting import Spans, inside, quoted_spans, without
from app.engines.injection.tails import SENSELESS_TAIL, tail
from app.engines.injection.views import InjectionView, views
from app.engines.injection.wording import (
    CLASSIFIER,
    ENCODED_INSTRUCTIONS,
    HIDDEN_TEXT,
    REFUSAL_SUPPRESSION,
)

NAME = "embedded-injection"
_INLINE_CHARACTERS = 600
"""Shorter texts take less than a millisecond, so they are judged on the event loop."""

_MOST_WINDOWS = 16
"""Most windows of one text that are reported; all of a long text may be an attack."""

_EVIDENCE = 0.9
"""Least score of a rule that matches only in decoded text: nobody writes honest requests like that."""

_SLIGHT_WORDS = 5
_SLIGHT_CHARACTERS = 40
_UNSURE = 0.25
"""Highest classifier score of a very short text in which no rule matches; below the threshold of every level."""

_HARMLESS = 0.25
"""Classifier score below which a rule that counts on its own does not count: it knows such orders among people."""

_UNLIKELY = 0.2
"""Classifier score of a quotation below which its orders are taken for orders among people."""

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
    findings: list[InjectionFinding] = list(_hidden(text))
    score = _combined_score(findings)
    first, *others = views(text)
    quotes = quoted_spans(first.text) if classifier is not None else []
    plain_score, plain_findings = _plain(first, quotes, matcher, classifier)
    score, findings = max(score, plain_score), findings + plain_findings
    if classifier is not None and not quotes and (end := tail(first.text)) is not None:
        others.append(InjectionView(first.text[: end.start], first.locate, unmasked=True))
        if end.senseless:
            place = first.locate(end.start, len(first.text))
            findings.append(InjectionFinding(REFUSAL_SUPPRESSION, *place, SENSELESS_TAIL))
            score = max(score, SENSELESS_TAIL)
    for view in others:
        # What reads better than the text is judged as if it had been written so.
        judge = _plain if view.unmasked and not quotes else _encoded
        view_score, view_findings = judge(view, quotes, matcher, classifier)
        score, findings = max(score, view_score), findings + view_findings
    return round(score, 4), _merged(findings)


def _encoded(
    view: InjectionView,
    quotes: Spans,
    matcher: RuleMatcher,
    classifier: InjectionClassifier | None,
) -> tuple[float, list[InjectionFinding]]:
    """Judge a view that was respelled or decoded; its matches count by themselves, as nobody hides honest requests."""
    if view.spelled:
        findings = _spelled(view, matcher)
        return _combined_score(findings), findings
    # What is quoted is in the other views too, so they are judged as documents with it.
    matches = matcher.find(view.text, documents=classifier is None or bool(quotes))
    findings = [_finding(view, match) for match in matches]
    score = _combined_score(findings)
    if classifier is not None and not view.guessed and not view.unmasked:
        windows = _windows(view, view.text, matches, classifier)
        score = max([score, *(window.score for window in windows)])
        findings += _notable(windows, classifier)
    return score, findings


def _plain(
    view: InjectionView,
    quotes: Spans,
    matcher: RuleMatcher,
    classifier: InjectionClassifier | None,
) -> tuple[float, list[InjectionFinding]]:
    """Judge the text as it stands: what it quotes as a document, the rest as a request."""
    matches = matcher.find(view.text, documents=classifier is None)
    if classifier is None:
        findings = [_finding(view, match) for match in matches]
        return _combined_score(findings), findings
    cited = [match for match in matches if match.rule.documents and inside(match, quotes)]
    own = [match for match in matches if not inside(match, quotes)]
    # The classifier weighs the matches of the rules in the request, and in what it quotes.
    request = without(view.text, quotes) if quotes else view.text
    windows = _windows(view, request, own, classifier)
    highest = max((window.score for window in windows), default=0.0)
    doubted = highest < _HARMLESS
    score = max([highest, *(match.rule.score for match in own if match.rule.alone and not doubted)])
    cited_score = _combined_score([_finding(view, match) for match in cited])
    quoted_score = _quoted_score(view.text, quotes, cited, classifier)
    if quoted_score < _UNLIKELY:
        cited_score = min(cited_score, quoted_score)
    score = max(score, cited_score)
    findings = [_finding(view, match) for match in (*own, *cited)]
    return score, findings + _notable(windows, classifier)


def _quoted_score(text: str, quotes: Spans, cited: Sequence[Match], classifier: InjectionClassifier) -> float:
    """Return the highest score of the quotations in which a rule for documents matched: people quote orders, too."""
    best = 0.0
    for start, end in quotes:
        mine = [
            Match(match.rule, match.start - start, match.end - start)
            for match in cited
            if start <= match.start < end
        ]
        if mine:
            best = max([best, *(window.score for window in classifier.windows(text[start:end], mine))])
    return best


def _windows(
    view: InjectionView, text: str, matches: Sequence[Match], classifier: InjectionClassifier
) -> list[InjectionFinding]:
    """Return what the classifier says of the windows of ``text``, all of ``view`` or the request in it."""
    most = 1.0 if matches or not _is_slight(text) else _UNSURE
    if text is view.text:
        return [_window(view, window, most) for window in classifier.windows(text, matches)]
    placed = [Match(match.rule, 0, len(text)) for match in matches]
    whole = len(view.text)
    return [
        _window(view, TextWindow(0, whole, window.score), most) for window in classifier.windows(text, placed)
    ]


def _notable(windows: Sequence[InjectionFinding], classifier: InjectionClassifier) -> list[InjectionFinding]:
    notable = [finding for finding in windows if finding.score >= classifier.notable]
    return heapq.nlargest(_MOST_WINDOWS, notable, key=lambda finding: finding.score)


def _spelled(view: InjectionView, matcher: RuleMatcher) -> list[InjectionFinding]:
    if not matcher.find_spelled(view.text):
        return []
    place = view.locate(0, len(view.text))
    return [InjectionFinding(SPELLED_RULE.kind, *place, SPELLED_RULE.score)]


def _finding(view: InjectionView, match: Match) -> InjectionFinding:
    """Return the finding of a match, at the offsets of the original text."""
    kind, score = match.rule.kind, match.rule.score
    if view.encoded:
        kind = HIDDEN_TEXT if view.hidden else ENCODED_INSTRUCTIONS
        score = max(score, _EVIDENCE)
    elif is_mentioned(view.text, match.start, match.end):
        score /= 2
    return InjectionFinding(kind, *view.locate(match.start, match.end), round(score, 3))


def _is_slight(text: str) -> bool:
    """Return whether a text is too short for its n-grams to be significant, such as "Who are you?"."""
    return len(text) <= _SLIGHT_CHARACTERS and len(text.split()) <= _SLIGHT_WORDS


def _window(view: InjectionView, window: TextWindow, most: float) -> InjectionFinding:
    kind = CLASSIFIER
    if view.encoded:
        kind = HIDDEN_TEXT if view.hidden else ENCODED_INSTRUCTIONS
    return InjectionFinding(kind, *view.locate(window.start, window.end), round(min(window.score, most), 4))


def is_mentioned(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` is quoted and discussed, rather than addressed to the model."""
    before, after = text[max(0, start - 4) : start], text[end : end + _QUOTED]
    if not any(mark in before for mark in _QUOTES) or not any(mark in after for mark in _QUOTES):
        return False
    around = text[max(0, start - 160) : start] + " " + text[end : end + 100]
    return _MENTION.search(around) is not None


def _hidden(text: str) -> Iterable[InjectionFinding]:
    """Yield runs of invisible characters that are long enough to carry a message."""
    if text.isascii():
        return
    for run in _INVISIBLE.finditer(text):
        if text[run.start() - 1 : run.start()] != _FLAG:
            yield InjectionFinding(HIDDEN_TEXT, run.start(), run.end(), 0.8)


def _combined_score(findings: Iterable[InjectionFinding]) -> float:
    """Return the combined score of findings of different kinds."""
    best: dict[str, float] = {}
    for finding in findings:
        best[finding.kind] = max(best.get(finding.kind, 0.0), finding.score)
    against = 1.0
    for score in best.values():
        against *= 1.0 - score
    return 1.0 - against


def _merged(findings: list[InjectionFinding]) -> list[InjectionFinding]:
    """Return the findings in the order of the text; where those of one kind overlap, only the strongest."""
    kept: list[InjectionFinding] = []
    for finding in sorted(findings, key=lambda finding: (-finding.score, finding.start, finding.kind)):
        if not any(finding.kind == other.kind and _overlap(finding, other) for other in kept):
            kept.append(finding)
    return sorted(kept, key=lambda finding: (finding.start, finding.end, finding.kind))


def _overlap(finding: InjectionFinding, other: InjectionFinding) -> bool:
    return finding.start < other.end and other.start < finding.end
