"""Cache findings under keyed digests of texts; never holds a text or a part of one."""

import heapq
from collections import OrderedDict

Stored = tuple[bytes | None, ...]
"""Plain tuples of bytes, which the garbage collector does not have to traverse."""

_ENTRY = 320
"""Bytes that an entry takes in addition to its content: the key, objects, the slot in the table."""
_ROUND = 64
"""An eviction frees one part in this many of the capacity, so that it rarely has to find the largest tenant."""


class SpanCache:
    """Cache entries of all tenants in at most ``capacity`` bytes.

    Evicts the least recently used entries of the largest tenant first. So a tenant may use the space that others leave,
    and one that sends a lot never evicts the entries of a smaller one.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.size = 0
        self.hits = self.misses = self.evictions = 0
        self._tenants: dict[str, OrderedDict[bytes, Stored]] = {}
        self._sizes: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._tenants.values()))

    def get(self, tenant: str, key: bytes) -> Stored | None:
        """Return the entry of ``key`` and mark it as the most recently used; counts neither a hit nor a miss."""
        entries = self._tenants.get(tenant)
        entry = entries.get(key) if entries is not None else None
        if entry is not None:
            self._tenants[tenant].move_to_end(key)
        return entry

    def put(self, tenant: str, key: bytes, entry: Stored) -> None:
        """Store ``entry`` and replace the one under ``key``; an entry that is too large is not stored."""
        cost = _cost(entry)
        entries = self._tenants.get(tenant, OrderedDict())
        old = entries.pop(key, None)
        change = -_cost(old) if old is not None else 0
        if cost <= self.capacity // _ROUND:
            self._tenants[tenant] = entries
            entries[key] = entry
            change += cost
        self.size += change
        self._sizes[tenant] = self._sizes.get(tenant, 0) + change
        if not entries:
            self._forget(tenant)
        if self.size > self.capacity:
            self._evict()

    def _evict(self) -> None:
        """Evict entries of the largest tenants until a part of the capacity is free."""
        largest = [(-size, tenant) for tenant, size in self._sizes.items()]
        heapq.heapify(largest)
        while self.size > self.capacity - self.capacity // _ROUND:
            _, tenant = heapq.heappop(largest)
            floor = -largest[0][0] if largest else 0
            entries = self._tenants[tenant]
            while entries and self.size > self.capacity - self.capacity // _ROUND:
                _, entry = entries.popitem(last=False)
                self.evictions += 1
                self.size -= _cost(entry)
                self._sizes[tenant] -= _cost(entry)
                if self._sizes[tenant] < floor:
                    break
            if entries:
                heapq.heappush(largest, (-self._sizes[tenant], tenant))
            else:
                self._forget(tenant)

    def _forget(self, tenant: str) -> None:
        self._tenants.pop(tenant, None)
        self._sizes.pop(tenant, None)


def _cost(entry: Stored) -> int:
    return _ENTRY + sum(len(part) for part in entry if part is not None)
