"""Compare vectors in memory, exactly, for databases that do not compare vectors themselves."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BUDGET_BYTES = 96 * 1024 * 1024
"""Room for about 60,000 chunks of 384 numbers; parts beyond that are read again for each query."""


@dataclass(frozen=True, slots=True)
class PartKey:
    """Key of the vectors of a part of a tenant's collections, at one revision and of one embedder."""

    tenant: str
    part: int
    revision: int
    embedder: str


@dataclass(frozen=True, slots=True)
class PartVectors:
    """The vectors of a part, a row each, with the numbers of their chunks in ascending order."""

    numbers: Any
    rows: Any

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return int(self.numbers.nbytes + self.rows.nbytes)


class VectorMemory:
    """Caches the vectors of the most recently used parts, up to a number of bytes; safe to use from threads."""

    def __init__(self, budget: int = BUDGET_BYTES) -> None:
        self._budget = budget
        self._size = 0
        self._parts: OrderedDict[tuple[str, int], tuple[PartKey, PartVectors]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: PartKey) -> PartVectors | None:
        """Return the cached vectors of exactly this state of a part, or None."""
        with self._lock:
            remembered = self._parts.get((key.tenant, key.part))
            if remembered is None or remembered[0] != key:
                return None
            self._parts.move_to_end((key.tenant, key.part))
            return remembered[1]

    def put(self, key: PartKey, vectors: PartVectors) -> None:
        """Cache the vectors of a part and drop its older state; skip those larger than the whole budget."""
        with self._lock:
            self._drop((key.tenant, key.part))
            if vectors.size > self._budget:
                return
            while self._size + vectors.size > self._budget:
                self._drop(next(iter(self._parts)))
            self._parts[key.tenant, key.part] = key, vectors
            self._size += vectors.size

    def forget(self, tenant: str | None) -> None:
        """Drop the vectors of a tenant, or of all (None)."""
        with self._lock:
            for place in [place for place in self._parts if tenant in (None, place[0])]:
                self._drop(place)

    def _drop(self, place: tuple[str, int]) -> None:
        dropped = self._parts.pop(place, None)
        if dropped is not None:
            self._size -= dropped[1].size


def assembled(numbered: Sequence[tuple[int, bytes]]) -> PartVectors:
    """Return numbers (ascending) and vectors as arrays."""
    import numpy as np  # noqa: PLC0415 - loaded with the first search by vectors

    numbers = np.fromiter((number for number, _ in numbered), dtype=np.int64, count=len(numbered))
    rows = np.frombuffer(b"".join(vector for _, vector in numbered), dtype="<f4")
    return PartVectors(numbers, rows.reshape(len(numbered), -1) if numbered else rows.reshape(0, 0))


def nearest(parts: Sequence[PartVectors], question: bytes, limit: int) -> dict[int, float]:
    """Return the numbers of the chunks nearest to a vector, with their cosine."""
    import numpy as np  # noqa: PLC0415 - as above

    query_vector = np.frombuffer(question, dtype="<f4")
    best: list[tuple[float, int]] = []
    for part in parts:
        if not len(part.numbers):
            continue
        cosines = part.rows @ query_vector
        chosen = np.argpartition(-cosines, limit)[:limit] if len(cosines) > limit else np.arange(len(cosines))
        best += [(float(cosines[at]), int(part.numbers[at])) for at in chosen]
    best.sort(key=lambda match: (-match[0], match[1]))
    return {number: cosine for cosine, number in best[:limit]}


def likeness(parts: Sequence[PartVectors], question: bytes, numbers: Sequence[int]) -> dict[int, float]:
    """Return the cosine of each of these chunks, where it has a vector."""
    import numpy as np  # noqa: PLC0415 - as above

    query_vector = np.frombuffer(question, dtype="<f4")
    wanted = np.array(sorted(numbers), dtype=np.int64)
    cosine_by_number: dict[int, float] = {}
    for part in parts:
        if not len(part.numbers) or not len(wanted):
            continue
        places = np.searchsorted(part.numbers, wanted)
        here = (places < len(part.numbers)) & (
            part.numbers[np.minimum(places, len(part.numbers) - 1)] == wanted
        )
        cosines = part.rows[places[here]] @ query_vector
        cosine_by_number.update(zip(wanted[here].tolist(), cosines.tolist(), strict=True))
    return cosine_by_number
