"""Find quotations of an answer that the sources do not have verbatim, and what they have instead."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from app.core.contracts.grounding import AnswerFinding, SourcePlace
from app.engines.grounding.distance import distance
from app.engines.grounding.sources import Sources, SourceToken, tokens_of

_QUOTED: Final = re.compile(
    r"\"([^\"\n]{8,2000})\"|\u201c([^\u201c\u201d\n]{8,2000})\u201d|\u201e([^\u201e\u201c\u201d\n]{8,2000})[\u201c\u201d]"
    r"|\u00ab([^\u00ab\u00bb\n]{8,2000})\u00bb"
)
_BLOCKQUOTE: Final = re.compile(r"^[ \t]{0,3}>[ \t]?([^\n]{8,2000})$", re.MULTILINE)
_GAP: Final = re.compile(r"\s*(?:\[?(?:\.\.\.|\u2026)\]?|\[[^\]\n]{1,40}\])\s*")
_SAYS: Final = re.compile(
    r"\b(?:says?|said|states?|stated|writes?|wrote|reads?|quot\w+|according|mentions?|mentioned|reported|"
    r"claims?|claimed|notes|noted|explains?|explained|as follows|text is|tells?|told|adds|added|called)\b",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"[.!?][\"'\u201d)]?\s|\n\s*\n")
_ATTRIBUTED_WORDS: Final = 3
_LONG_WORDS: Final = 5
_AROUND: Final = 60
_MOST: Final = 100
_TRIED: Final = 6
_MENDED_WORDS: Final = 60
_LEAST_VOTES: Final = 0.25
_ALIKE: Final = 0.75


@dataclass(frozen=True, slots=True)
class _Match:
    changes: int
    place: SourcePlace


def check_quotes(text: str, sources: Sources) -> Iterator[AnswerFinding]:
    """Yield a finding for each quotation of ``text`` (code blanked out) that the sources do not have verbatim."""
    count = 0
    for start, end in _quotations(text):
        attributed = bool(_SAYS.search(text[max(0, start - _AROUND) : start] + text[end : end + _AROUND]))
        words = tokens_of(text, start, end)
        if len(words) < (_ATTRIBUTED_WORDS if attributed else _LONG_WORDS):
            continue
        count += 1
        if count > _MOST:
            return
        finding = _checked(text, start, end, attributed, sources)
        if finding is not None:
            yield finding


def _quotations(text: str) -> Iterator[tuple[int, int]]:
    spans = [
        match.span(next(index for index in range(1, 5) if match[index] is not None))
        for match in _QUOTED.finditer(text)
    ]
    spans += [match.span(1) for match in _BLOCKQUOTE.finditer(text)]
    return iter(sorted(spans))


def _checked(text: str, start: int, end: int, attributed: bool, sources: Sources) -> AnswerFinding | None:
    pieces = []
    position = start
    for gap in _GAP.finditer(text, start, end):
        pieces.append((position, gap.start()))
        position = gap.end()
    pieces.append((position, end))
    missing = [piece for piece in pieces if not _is_verbatim(tokens_of(text, *piece), sources)]
    if not missing:
        return None
    span = ("quote", start, end)
    if len(missing) == 1 and sources.may_search():
        begin, stop = missing[0]
        words = tokens_of(text, begin, stop)
        near = _nearest(words, sources)
        if near:
            best = near[0]
            spelled = {
                sources.texts[match.place.source][match.place.start : match.place.end] for match in near
            }
            fix = spelled.pop() if len(spelled) == 1 else None
            edge = ("quote", words[0].start, words[-1].end)
            message = "The context has this quotation in other words."
            return AnswerFinding(*edge, "medium", 0.7, message, best.place, fix)
    if attributed:
        return AnswerFinding(
            *span, "high", 0.8, "These words are quoted, but the context does not have them."
        )
    return AnswerFinding(*span, "medium", 0.55, "The context does not have these words in quotation marks.")


def _is_verbatim(words: Sequence[SourceToken], sources: Sources) -> bool:
    return not words or sources.has_run([word.word for word in words])


def _nearest(words: Sequence[SourceToken], sources: Sources) -> list[_Match]:
    """Return the passages that differ from ``words`` in a few letters or words, the best ones only."""
    wanted = [word.word for word in words]
    if len(wanted) > _MENDED_WORDS:
        return []
    votes: Counter[tuple[int, int]] = Counter()
    for index, pair in enumerate(pairwise(wanted)):
        for number, at in sources.pairs.get(pair, ()):
            votes[number, at - index] += 1
    best: list[_Match] = []
    limit = max(1, int(len(wanted) * (1 - _ALIKE)))
    likely = [candidate for candidate in votes.items() if candidate[1] >= _LEAST_VOTES * (len(wanted) - 1)]
    for (number, begin), _ in sorted(likely, key=lambda candidate: (-candidate[1], candidate[0]))[:_TRIED]:
        match = _aligned(wanted, sources, number, max(0, begin), limit)
        if match is not None:
            best.append(match)
    least = min((match.changes for match in best), default=0)
    return [match for match in best if match.changes == least]


def _aligned(wanted: list[str], sources: Sources, number: int, begin: int, limit: int) -> _Match | None:
    """Return the passage from ``begin`` on with the fewest changed words, where they are at most ``limit``.

    A passage of one sentence is preferred to one of two, and one as long as the quotation to others: a replaced word
    is likelier than an added or a missing one.
    """
    tokens = sources.tokens[number]
    matches: list[tuple[int, bool, SourcePlace]] = []
    for size in (len(wanted), len(wanted) - 1, len(wanted) + 1):
        piece = tokens[begin : begin + size]
        if size < 1 or len(piece) < size:
            continue
        changes = _changes(wanted, [token.word for token in piece], limit)
        if changes is not None:
            place = SourcePlace(number, piece[0].start, piece[-1].end)
            ends = _SENTENCE_END.search(sources.texts[number], place.start, place.end) is not None
            matches.append((changes, ends, place))
    if not matches:
        return None
    changes, _, place = min(matches, key=lambda match: match[:2])
    return _Match(changes, place)


def _changes(wanted: list[str], written: list[str], limit: int) -> int | None:
    """Return how many words differ, with the distance used for letters."""
    alphabet = {word: chr(0xE000 + index) for index, word in enumerate(dict.fromkeys([*wanted, *written]))}
    return distance(
        "".join(alphabet[word] for word in wanted), "".join(alphabet[word] for word in written), limit
    )
