"""An index of chunks on another server: it only proposes chunks by number; the service reads and scores them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from app.core.catalog.search_words import count_words
from app.engines.documents.scoring import K1, TITLE_WEIGHT, B
from app.engines.documents.words import stems_of
from app.engines.resilience import Rules

FORMAT: Final = "3"
"""Part of the name of every index; change it to build new indexes where the stored form of a chunk changes."""

MOST_PARTS: Final = 30_000
"""Most parts that one query names; the servers' own limits are higher."""

CHUNKS_AT_ONCE: Final = 200
_USUAL_WORDS: Final = 150
"""Assumed mean length of a chunk in words; proposals need no exact mean, which would change with every document."""


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Address and credentials of the server; ``ca_file`` names additional authorities for its certificate."""

    url: str
    kind: str
    user: str = ""
    password: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    prefix: str = "sluice"
    verify: bool = True
    ca_file: str | None = None
    rules: Rules = field(default_factory=Rules)


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """The stored form of a chunk; ``weights`` maps the stem of each word to what it adds to the rank."""

    tenant: str
    number: int
    part: int
    document: str
    weights: Mapping[str, float]
    vector: Sequence[float] | None


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What a query may search: only the parts of a tenant that the caller may read."""

    tenant: str
    parts: Sequence[int]


class ChunkIndex(Protocol):
    """A server with indexes of chunks, each by its name; every fault is a RemoteEngineError.

    Searches see every change as soon as its call has returned.
    """

    async def ensure(self, name: str, dimensions: int | None) -> bool:
        """Create the index where there is none, with vectors of ``dimensions`` numbers; return whether it is new."""

    async def drop(self, name: str) -> None:
        """Remove an index with all its content; does nothing where there is none."""

    async def put(self, name: str, chunks: Sequence[IndexedChunk]) -> None:
        """Store chunks, replacing those with the same numbers."""

    async def remove(self, name: str, tenant: str, documents: Sequence[str] | None) -> None:
        """Remove all chunks of these documents (None: of the tenant)."""

    async def count(self, name: str, tenant: str) -> int:
        """Return how many chunks a tenant has."""

    async def count_matches(self, name: str, scope: SearchScope, stems: Sequence[str]) -> list[int]:
        """Return for each of ``stems`` how many chunks contain it."""

    async def match_words(
        self, name: str, scope: SearchScope, weights: Mapping[str, float], limit: int
    ) -> list[int]:
        """Return the numbers of the chunks with the highest weighted sum of the words."""

    async def nearest(self, name: str, scope: SearchScope, vector: Sequence[float], limit: int) -> list[int]:
        """Return the numbers of the chunks with the nearest vectors."""

    async def close(self) -> None:
        """Close every connection."""


def term_weights(title: str, headings: str, text: str) -> dict[str, float]:
    """Return the stems of a chunk with their part in BM25, to be multiplied by the rarity of each."""
    counts = Counter(stems_of(text))
    counts.update(stems_of(headings))
    for stem in stems_of(title):
        counts[stem] += TITLE_WEIGHT
    longer = K1 * (1 - B + B * count_words(text) / _USUAL_WORDS)
    return {stem: round(count * (K1 + 1) / (count + longer), 4) for stem, count in counts.items()}
