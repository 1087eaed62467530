"""Cache how many chunks contain a word: queries share most of their words, and counting is half of a search."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

WORDS_CACHED: Final = 65_536


@dataclass(frozen=True, slots=True)
class ScopeKey:
    """The scope of a count: parts of a tenant's collections, each at one revision."""

    tenant: str
    parts: tuple[tuple[int, int], ...]


class CountMemory:
    """Caches the counts of the most recently used scopes, up to a number of words; safe to use from threads."""

    def __init__(self, words: int = WORDS_CACHED) -> None:
        self._most = words
        self._size = 0
        self._scopes: OrderedDict[ScopeKey, dict[str, int]] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, scope: ScopeKey, words: Sequence[str]) -> dict[str, int]:
        """Return the cached counts among ``words``."""
        with self._lock:
            counts = self._scopes.get(scope)
            if counts is None:
                return {}
            self._scopes.move_to_end(scope)
            return {word: counts[word] for word in words if word in counts}

    def learn(self, scope: ScopeKey, counts: Mapping[str, int]) -> None:
        """Cache ``counts``; evict the scopes that were used longest ago."""
        with self._lock:
            remembered = self._scopes.setdefault(scope, {})
            self._size -= len(remembered)
            remembered.update(counts)
            self._size += len(remembered)
            self._scopes.move_to_end(scope)
            while self._size > self._most:
                _, dropped = self._scopes.popitem(last=False)
                self._size -= len(dropped)

    def forget(self, tenant: str | None) -> None:
        """Drop the counts of a tenant, or of all (None)."""
        with self._lock:
            for scope in [scope for scope in self._scopes if tenant in (None, scope.tenant)]:
                self._size -= len(self._scopes.pop(scope))
