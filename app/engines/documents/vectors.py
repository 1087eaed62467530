"""Vectors in memory, compared exactly; for databases that do not compare vectors themselves."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BUDGET_BYTES = 96 * 1024 * 1024
"""About 60,000 chunks of 384 numbers; parts beyond that are read again for each question."""


@dataclass(frozen=True, slots=True)
class PartKey:
    """Which vectors: those of a part of a tenant's collections, at one revision of it, of one embedder."""

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
        """Return the bytes that are kept."""
        return int(self.numbers.nbytes + self.rows.nbytes)


class VectorMemory:
    """Remembers the vectors of parts, those used last, up to a number of bytes; safe to use from threads."""

    def __init__(self, budget: int = BUDGET_BYTES) -> None:
        self._budget = budget
        self._held = 0
        self._parts: OrderedDict[tuple[str, int], tuple[PartKey, PartVectors]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: PartKey) -> PartVectors | None:
        """Return what is remembered of exactly this state of a part."""
        with self._lock:
            found = self._parts.get((key.tenant, key.part))
            if found is None or found[0] != key:
                return None
            self._parts.move_to_end((key.tenant, key.part))
            return found[1]

    def put(self, key: PartKey, vectors: PartVectors) -> None:
        """Remember a part in the place of its older states, if it fits at all."""
        with self._lock:
            self._drop((key.tenant, key.part))
            if vectors.size > self._budget:
                return
            while self._held + vectors.size > self._budget:
                self._drop(next(iter(self._parts)))
            self._parts[key.tenant, key.part] = key, vectors
            self._held += vectors.size

    def forget(self, tenant: str | None) -> None:
        """Forget the vectors of a tenant, or of all."""
        with self._lock:
            for place in [place for place in self._parts if tenant in (None, place[0])]:
                self._drop(place)

    def _drop(self, place: tuple[str, int]) -> None:
        found = self._parts.pop(place, None)
        if found is not None:
            self._held -= found[1].size


def assembled(found: Sequence[tuple[int, bytes]]) -> PartVectors:
    """Return numbers (ascending) and vectors as matrices."""
    import numpy as np  # noqa: PLC0415 - loaded with the first search by vectors

    numbers = np.fromiter((number for number, _ in found), dtype=np.int64, count=len(found))
    rows = np.frombuffer(b"".join(vector for _, vector in found), dtype="<f4")
    return PartVectors(numbers, rows.reshape(len(found), -1) if found else rows.reshape(0, 0))


def nearest(parts: Sequence[PartVectors], question: bytes, limit: int) -> dict[int, float]:
    """Return the numbers of the chunks nearest to a vector, with their cosine."""
    import numpy as np  # noqa: PLC0415 - as above

    asked = np.frombuffer(question, dtype="<f4")
    best: list[tuple[float, int]] = []
    for part in parts:
        if not len(part.numbers):
            continue
        cosines = part.rows @ asked
        chosen = np.argpartition(-cosines, limit)[:limit] if len(cosines) > limit else np.arange(len(cosines))
        best += [(float(cosines[at]), int(part.numbers[at])) for at in chosen]
    best.sort(key=lambda one: (-one[0], one[1]))
    return {number: cosine for cosine, number in best[:limit]}


def likeness(parts: Sequence[PartVectors], question: bytes, numbers: Sequence[int]) -> dict[int, float]:
    """Return the cosine of each of these chunks, where it has a vector."""
    import numpy as np  # noqa: PLC0415 - as above

    asked = np.frombuffer(question, dtype="<f4")
    wanted = np.array(sorted(numbers), dtype=np.int64)
    found: dict[int, float] = {}
    for part in parts:
        if not len(part.numbers) or not len(wanted):
            continue
        places = np.searchsorted(part.numbers, wanted)
        here = (places < len(part.numbers)) & (
            part.numbers[np.minimum(places, len(part.numbers) - 1)] == wanted
        )
        cosines = part.rows[places[here]] @ asked
        found.update(zip(wanted[here].tolist(), cosines.tolist(), strict=True))
    return found
