"""Buckets of tokens that all processes share, and leases of tokens out of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """What a process wants of one bucket; ``rate`` is in tokens per second, ``burst`` the size of the bucket.

    ``owed`` tokens were spent on credit: the bucket is charged for them, below zero if need be. ``wanted`` more are to
    be leased; a negative number gives that many back.
    """

    bucket: str
    rate: float
    burst: int
    owed: float
    wanted: float


@dataclass(frozen=True, slots=True)
class Lease:
    """What a process got: at most as many tokens as it wanted, and ``level``, what the bucket holds afterwards."""

    granted: float
    level: float


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """What a process wants of a cap on what runs at once: it has ``running`` now and wants room for ``wanted``."""

    bucket: str
    cap: int
    running: int
    wanted: int


class TokenBuckets(Protocol):
    """Keeps the buckets; each call is one round trip, and atomic for each bucket."""

    async def lease(self, requests: Sequence[LeaseRequest]) -> tuple[int, list[Lease]]:
        """Return how many processes take leases now, this one counted, and the lease of each request, in order.

        Raises any exception where the place cannot be reached; what was asked then may have happened or not.
        """
        ...

    async def hold(self, requests: Sequence[HoldRequest]) -> list[int]:
        """Return for each request how many it may have running: together with what others hold at most the cap.

        A hold lasts two seconds; without a request for a bucket in that time it is over.
        """
        ...

    async def leave(self) -> None:
        """Count no longer as a process that takes leases; close what is open."""
        ...
