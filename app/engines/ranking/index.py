"""Index a list of tools before any request: the weighted words and n-grams of their definitions."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.contracts.engines import ToolCandidate
from app.engines.hashing import char_ngrams, char_ngrams_of
from app.engines.ranking.postings import Cells, Floats, Ints, Postings
from app.engines.ranking.thesaurus import concepts
from app.engines.ranking.words import spelled_out, terms

_K1 = 1.2
_B = 0.6
_GRAM_BITS = 20
_GRAM_SIZES = (3, 4, 5)
_COMMON = 0.25
"""N-grams that a larger share of the tools has are ignored, as they distinguish none."""
_CONCEPT = 0.5
"""Weight of a word of the same meaning, relative to the word itself."""
_GIST = 12
"""Number of first words of a description that are expanded by the thesaurus."""
_CELL_BYTES = 12
_VECTOR_BYTES = 1_536
_GRAM_TEXT = 500
_AT_ONCE = 256
"""Texts whose n-grams are hashed at once; limits the memory."""
_TEXT = 2_000
"""Most characters of a description that are read, for n-grams and for words; the rest rarely says what a tool does."""


@dataclass(frozen=True, slots=True)
class ToolFeatures:
    """The features by which one tool is found."""

    words: Ints
    grams: Ints

    @classmethod
    def of(cls, tools: Sequence[ToolCandidate]) -> "list[ToolFeatures]":
        """Read definitions: the words of name (twice), description and parameters, n-grams of the first two."""
        grams = _grams_of([f"{tool.name} {tool.description[:_GRAM_TEXT]}" for tool in tools])
        return [cls(_words_of(tool), own) for tool, own in zip(tools, grams, strict=True)]


def _words_of(tool: ToolCandidate) -> Ints:
    name, text = terms(tool.name), terms(tool.description[:_TEXT])
    more = terms(" ".join(tool.parameters)[:_TEXT])
    return keys_of([*name, *name, *text, *more, *concepts([*name, *text[:_GIST]])])


def _grams_of(texts: Sequence[str]) -> Iterator[Ints]:
    """Yield what `grams_of` returns for each of ``texts``, in any order; many are hashed at once."""
    for start in range(0, len(texts), _AT_ONCE):
        some = [spelled_out(text) for text in texts[start : start + _AT_ONCE]]
        hashes, owners = char_ngrams_of(some, _GRAM_SIZES)
        grams = (hashes >> np.uint64(64 - _GRAM_BITS)).astype(np.int64)[np.argsort(owners, kind="stable")]
        sizes = np.bincount(owners, minlength=len(some))
        # Copies, so that one tool that is remembered does not keep the n-grams of all.
        yield from (own.copy() for own in np.split(grams, np.cumsum(sizes)[:-1]))


def keys_of(words: Sequence[str]) -> Ints:
    """Return a number for each word."""
    return np.array([zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words], dtype=np.int64)


def grams_of(text: str) -> Ints:
    """Return the n-grams of characters of ``text`` as numbers."""
    hashes = char_ngrams(spelled_out(text), _GRAM_SIZES)
    return (hashes >> np.uint64(64 - _GRAM_BITS)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Query:
    """One text in the form of a query to the index."""

    words: Ints
    times: Floats
    grams: Ints
    gram_times: Floats

    @classmethod
    def of(cls, text: str) -> "Query":
        """Read a text; a repeated word counts more, but less than proportionally."""
        stems = terms(text)
        words, often = np.unique(keys_of(stems), return_counts=True)
        concept_keys = np.unique(keys_of(concepts(stems)))
        grams, counts = np.unique(grams_of(text), return_counts=True)
        return cls(
            words=np.concatenate((words, concept_keys)),
            times=np.concatenate((_damped(often), np.full(len(concept_keys), _CONCEPT, dtype=np.float32))),
            grams=grams,
            gram_times=_damped(counts),
        )


@dataclass(frozen=True, slots=True)
class ToolEvidence:
    """The lexical scores of each tool: BM25, and the cosine of n-grams.

    ``possible`` is the BM25 of a tool of mean length that has each word of the query once.
    """

    words: Floats
    grams: Floats
    possible: float


@dataclass(frozen=True, slots=True)
class ToolIndex:
    """Finds which tools share words and n-grams with a query."""

    words: Postings
    grams: Postings
    count: int

    @classmethod
    def build(cls, features: Sequence[ToolFeatures]) -> "ToolIndex":
        """Weigh the words and n-grams of all tools against each other."""
        count = len(features)
        return cls(
            words=_bm25([tool.words for tool in features]),
            grams=_cosine([tool.grams for tool in features]),
            count=count,
        )

    @property
    def size(self) -> int:
        """Return the approximate size in bytes, including the vectors that are added later."""
        cells = len(self.words.tools) + len(self.grams.tools)
        return _CELL_BYTES * cells + _VECTOR_BYTES * self.count

    def evidence(self, query: Query) -> ToolEvidence:
        """Return the lexical scores of each tool for ``query``."""
        idf = _idf(self.words.frequency(query.words), self.count)
        often = self.grams.frequency(query.grams)
        weights = query.gram_times * _idf(often, self.count)
        norm = float(np.sqrt((weights * weights).sum())) or 1.0
        return ToolEvidence(
            words=self.words.scores(query.words, query.times),
            grams=self.grams.scores(query.grams, weights / norm),
            possible=float((idf * query.times)[query.times >= 1].sum()),
        )


def _damped(counts: Ints) -> Floats:
    return (1 + np.log(counts)).astype(np.float32)


def _idf(frequency: Ints, count: int) -> Floats:
    return np.log1p((count - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)


def _bm25(columns: Sequence[Ints]) -> Postings:
    cells = Cells.of(columns)
    lengths = np.array([len(column) for column in columns], dtype=np.float32)
    relative = lengths / max(float(lengths.mean()), 1.0)
    damping = _K1 * (1 - _B + _B * relative[cells.tools])
    idf = _idf(cells.per_cell(), len(columns))
    return Postings.build(cells, idf * cells.counts * (_K1 + 1) / (cells.counts + damping), len(columns))


def _cosine(columns: Sequence[Ints]) -> Postings:
    cells = Cells.of(columns)
    often = cells.per_cell()
    weights = _damped(cells.counts) * _idf(often, len(columns))
    norms = np.sqrt(np.bincount(cells.tools, weights=weights * weights, minlength=len(columns)))
    weights = weights / np.maximum(norms[cells.tools], 1e-6)
    rare = often <= max(10, _COMMON * len(columns))
    return Postings.build(cells.only(rare), weights[rare], len(columns))
