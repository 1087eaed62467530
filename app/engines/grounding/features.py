"""Features of a claim's wording that show how much of it the evidence lacks.

All are shares, or yes and no, and grow with what is new: weights that are not negative make a score that more
support never raises. No feature counts, so that a long summary is not less supported than a short one.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Final

from app.engines.grounding.evidence import Evidence, Measured, Support, content_of, prefix
from app.engines.grounding.opposites import OPPOSITES
from app.engines.grounding.words import NEGATIONS, STOP_WORDS, EvidenceWord, sentences_of, words_of

_NEW: Final = ("words", "pairs", "names", "number")
_FAR: Final = ("far_words", "far_content", "gap", "adds_negation", "opposite")
_TALK: Final = ("personal", "first_person")
"""What only dialogue has; words that the evidence says as well do not count."""

NAMES: Final = (
    *(f"new_{name}" for name in _NEW),
    *_FAR,
    *_TALK,
    "asks",
)
"""The features in the order of the weights: means over the sentences by their words.

The worst sentence is no feature, since the more sentences there are the worse it is: who judges answers also judges
their sentences one by one. *New* is what the whole evidence lacks, *far* what the parts of it lack that are nearest
to the sentence.
"""

LONGEST_SENTENCE: Final = 120
"""Most words of a sentence that are measured in one piece."""

MOST_PIECES: Final = 1_000
"""Most sentences of one claim that are measured, which bounds the time for very long text."""

_PERSONAL: Final = frozenset(
    {
        *("i", "my", "me", "mine", "im", "ive", "we", "our", "think", "love", "hope", "guess"),
        *("wonder", "wow", "haha", "cool", "amaz", "favorit"),
    }
)


def features_of(claim: str, evidence: Evidence) -> list[float]:
    """Return the features of ``claim``, each from 0 to 1; all are zero for a claim without words."""
    measured = list(islice(_pieces(claim, evidence), MOST_PIECES))
    total = sum(size for size, _ in measured)
    if not total:
        return [0.0] * len(NAMES)
    means = [sum(size * values[at] for size, values in measured) / total for at in range(len(measured[0][1]))]
    return [*means, float("?" in claim and not evidence.asks)]


def _pieces(claim: str, evidence: Evidence) -> Iterator[Measured]:
    """Yield the measures of each sentence; they are cached, as an answer and its sentences are both claims."""
    for start, end in sentences_of(claim):
        sentence = claim[start:end]
        sentence_measures = evidence.measured.get(sentence)
        if sentence_measures is None:
            words = words_of(sentence)
            pieces = [words[at : at + LONGEST_SENTENCE] for at in range(0, len(words), LONGEST_SENTENCE)]
            sentence_measures = [
                (len(piece), _measured(piece, [word.stem for word in piece], evidence)) for piece in pieces
            ]
            evidence.measured[sentence] = sentence_measures
        yield from sentence_measures


def _measured(words: Sequence[EvidenceWord], stems: list[str], evidence: Evidence) -> tuple[float, ...]:
    """Return the features of one sentence, in the order of the names."""
    support = evidence.nearest(stems)
    size = len(stems)
    content = content_of(stems)
    far = [stem not in support.words for stem in stems]
    lacking = [stem for stem in content if stem not in support.words]
    new = [stem for stem in stems if stem not in evidence.words]
    return (
        len(new) / size,
        _share([pair not in evidence.pairs for pair in pairwise(stems)]),
        _new_names(words, evidence),
        float(any(stem[0].isdigit() for stem in new)),
        sum(far) / size,
        # A word of the same family, such as *founder* for *founded*, is no new content.
        sum(prefix(stem) not in support.prefixes for stem in lacking) / max(1, len(content)),
        _longest(far) / size,
        float(not NEGATIONS.isdisjoint(stems) and not support.negates),
        _turns(lacking, support),
        sum(stem in _PERSONAL for stem in new) / size,
        float("i" in new),
    )


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / max(1, len(hits))


def _longest(hits: Sequence[bool]) -> int:
    """Return the length of the longest run of hits; splitting bytes is faster than a loop."""
    return max(map(len, bytes(hits).split(b"\0")))


def _new_names(words: Sequence[EvidenceWord], evidence: Evidence) -> float:
    """Return the share of the capitalised words, except the first, that the evidence does not have."""
    names = [word.stem for word in words[1:] if word.capital and word.stem not in STOP_WORDS]
    return _share([name not in evidence.words for name in names])


def _turns(lacking: Sequence[str], support: Support) -> float:
    return float(any(not OPPOSITES.get(stem, frozenset()).isdisjoint(support.words) for stem in lacking))
