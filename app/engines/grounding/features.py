"""Features of a claim's wording that show its support: words and runs found in the evidence, contradictions, style."""

import math
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Final

from app.engines.grounding.evidence import Evidence, Measured, Support, content_of, prefix
from app.engines.grounding.opposites import OPPOSITES
from app.engines.grounding.words import NEGATIONS, STOP_WORDS, EvidenceWord, sentences_of, words_of

_MEAN: Final = (
    *(
        "words",
        "pairs",
        "triples",
        "content",
        "content_pairs",
        "no_content",
        "run",
        "log_run",
        "gap",
        "pair_gap",
    ),
    *("missing", "found", "near", "number", "names", "adds_negation", "other_negation", "opposite"),
    *("personal", "first_person", "covered", "best"),
)
_LEAST: Final = ("words", "content")
_MOST: Final = ("missing", "gap", "names", "number", "adds_negation", "opposite")

NAMES: Final = (
    *_MEAN,
    *(f"least_{name}" for name in _LEAST),
    *(f"most_{name}" for name in _MOST),
    *("asks", "sentences", "length"),
)
"""The features in the order of the weights: means over the sentences by their words, and the worst sentence."""

LONGEST_SENTENCE: Final = 120
"""Most words of a sentence that are measured in one piece."""

MOST_PIECES: Final = 1_000
"""Most sentences of one claim that are measured, which bounds the time for very long text."""

_USUAL_SENTENCES: Final = 4
_USUAL_WORDS: Final = 60
"""Longer answers count as this long: nothing is known about the effect of greater lengths."""

_PERSONAL: Final = frozenset(
    {
        *("i", "my", "me", "mine", "im", "ive", "we", "our", "think", "love", "hope", "guess", "wonder"),
        *("wow", "haha", "cool", "amaz", "favorit"),
    }
)


def features_of(claim: str, evidence: Evidence) -> list[float]:
    """Return the features of ``claim``; all are zero for a claim without words."""
    measured = list(islice(_pieces(claim, evidence), MOST_PIECES))
    total = sum(size for size, _ in measured)
    if not total:
        return [0.0] * len(NAMES)
    values = [sum(size * values_by_name[name] for size, values_by_name in measured) / total for name in _MEAN]
    values += [min(values_by_name[name] for _, values_by_name in measured) for name in _LEAST]
    values += [max(values_by_name[name] for _, values_by_name in measured) for name in _MOST]
    sentences, length = min(len(measured), _USUAL_SENTENCES), min(total, _USUAL_WORDS)
    return [*values, float("?" in claim), math.log1p(sentences), math.log1p(length)]


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


def _measured(words: Sequence[EvidenceWord], stems: list[str], evidence: Evidence) -> dict[str, float]:
    """Return the features of one sentence."""
    support = evidence.nearest(stems)
    size = len(stems)
    supported = [stem in support.words for stem in stems]
    pairs = [pair in support.pairs for pair in pairwise(stems)]
    triples = [triple in support.triples for triple in zip(stems, stems[1:], stems[2:], strict=False)]
    content = content_of(stems)
    missing = [stem for stem in content if stem not in support.words]
    linked = [pair in support.content_pairs for pair in pairwise(content)]
    run = _longest(pairs, present=True)
    return {
        "words": sum(supported) / size,
        "pairs": _share(pairs),
        "triples": _share(triples),
        "content": 1 - len(missing) / len(content) if content else 0.5,
        "content_pairs": _share(linked),
        "no_content": float(not content),
        "run": (run + 1) / size,
        "log_run": math.log1p(run),
        "gap": math.log1p(_longest(supported, present=False)),
        "pair_gap": math.log1p(_longest(pairs, present=False)),
        "missing": math.log1p(len(missing)),
        "found": math.log1p(len(content) - len(missing)),
        "near": sum(prefix(stem) in support.prefixes for stem in missing) / max(1, len(content)),
        "number": float(any(stem[0].isdigit() for stem in missing)),
        "names": math.log1p(_new_names(words, support)),
        **_contradictions(stems, missing, support),
        "personal": sum(stem in _PERSONAL for stem in stems) / size,
        "first_person": float("i" in stems),
        **_alike(stems, content, support),
    }


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / max(1, len(hits))


def _longest(hits: Sequence[bool], *, present: bool) -> int:
    """Return the length of the longest run; splitting bytes is faster than a loop."""
    return max(map(len, bytes(hits).split(b"\0" if present else b"\1")))


def _new_names(words: Sequence[EvidenceWord], support: Support) -> int:
    """Count the capitalised words, except the first, that the evidence does not have."""
    return sum(
        word.capital and word.stem not in support.words and word.stem not in STOP_WORDS for word in words[1:]
    )


def _contradictions(stems: list[str], missing: list[str], support: Support) -> dict[str, float]:
    negates = not NEGATIONS.isdisjoint(stems)
    turned = any(not OPPOSITES.get(stem, frozenset()).isdisjoint(support.words) for stem in missing)
    return {
        "adds_negation": float(negates and not support.negates),
        "other_negation": float(negates != support.negates),
        "opposite": float(turned),
    }


def _alike(stems: list[str], content: list[str], support: Support) -> dict[str, float]:
    """Return the largest share of a part that the sentence covers, and of the sentence that a part covers."""
    own = set(stems)
    covered = max((len(own & part.words) / len(part.words) for part in support.parts), default=0.0)
    best = max((sum(stem in part.words for stem in content) for part in support.parts), default=0)
    return {"covered": covered, "best": best / len(content) if content else 0.5}
