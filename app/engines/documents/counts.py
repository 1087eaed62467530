"""How many chunks have a word, remembered: questions share most of their words, and counting is half of a search."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

WORDS_HELD: Final = 65_536


@dataclass(frozen=True, slots=True)
class ScopeKey:
    """In what is counted: parts of a tenant's collections, each at one revision."""

    tenant: str
    parts: tuple[tuple[int, int], ...]


class CountMemory:
    """Remembers counts, those of the scopes used last, up to a number of words; safe to use from threads."""

    def __init__(self, words: int = WORDS_HELD) -> None:
        self._most = words
        self._held = 0
        self._scopes: OrderedDict[ScopeKey, dict[str, int]] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, scope: ScopeKey, words: Sequence[str]) -> dict[str, int]:
        """Return the counts of those of ``words`` that are remembered."""
        with self._lock:
            counts = self._scopes.get(scope)
            if counts is None:
                return {}
            self._scopes.move_to_end(scope)
            return {word: counts[word] for word in words if word in counts}

    def learn(self, scope: ScopeKey, counts: Mapping[str, int]) -> None:
        """Remember ``counts``; the scopes that were used longest ago make room."""
        with self._lock:
            held = self._scopes.setdefault(scope, {})
            self._held -= len(held)
            held.update(counts)
            self._held += len(held)
            self._scopes.move_to_end(scope)
            while self._held > self._most:
                _, dropped = self._scopes.popitem(last=False)
                self._held -= len(dropped)

    def forget(self, tenant: str | None) -> None:
        """Forget the words of a tenant, or of all."""
        with self._lock:
            for scope in [scope for scope in self._scopes if tenant in (None, scope.tenant)]:
                self._held -= len(self._scopes.pop(scope))
