"""Remember tokens for servers behind this one: in memory, each for one holder, until shortly before it ends."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from app.core.grants import GrantedToken
from app.services.caching import ShortMemory

_MOST_TOKENS: Final = 10_000
_LONGEST_S: Final = 3_600.0
_MARGIN_S: Final = 30.0
_MARGIN_PART: Final = 0.2
"""A token is no longer used in its last thirty seconds, or in its last fifth where it is short-lived."""


@dataclass(frozen=True, slots=True)
class TokenKey:
    """Whose a token is and what it is for; no two of these share one.

    ``holder`` is the user, or empty where this service calls as itself. ``presented`` is the digest of the user's own
    token for which this one was given, so that a narrower token of the same user gets one of its own. ``binding`` is a
    digest of the settings with which it was asked for, secrets included.
    """

    tenant: str
    holder: str
    server: str
    issuer: str
    audience: str
    scopes: tuple[str, ...]
    binding: str
    presented: bytes = b""


@dataclass(frozen=True, slots=True)
class CachedToken:
    """A token, whose it is, and until when (of the cache's clock) it is used."""

    key: TokenKey
    token: str = field(repr=False)
    until: float


class TokenCache:
    """Tokens by their key. Who asks for one that is not there waits for one load, shared by all of that key."""

    def __init__(self, *, size: int = _MOST_TOKENS, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._memory: ShortMemory[TokenKey, CachedToken] = ShortMemory(
            ttl_s=_LONGEST_S, size=size, clock=clock
        )

    def peek(self, key: TokenKey) -> str | None:
        """Return the token of ``key``, None where there is none that counts for a while."""
        cached = self._memory.peek(key)
        return cached.token if cached is not None and self._clock() < cached.until else None

    async def get(self, key: TokenKey, load: Callable[[], Awaitable[GrantedToken]]) -> str:
        """Return the token of ``key``, got by ``load`` where there is none."""
        token = self.peek(key)
        if token is not None:
            return token
        if self._memory.peek(key) is not None:
            self._memory.forget(key)

        async def loaded(_key: TokenKey) -> CachedToken:
            granted = await load()
            margin_s = min(_MARGIN_S, granted.lifetime_s * _MARGIN_PART)
            return CachedToken(key, granted.access_token, self._clock() + granted.lifetime_s - margin_s)

        cached = await self._memory.get(key, loaded)
        assert cached is not None  # noqa: S101 - a load that gives no token raises
        return cached.token

    def refuse(self, key: TokenKey, token: str) -> None:
        """Forget a token that its server refused, unless another has taken its place."""
        if self.peek(key) == token:
            self._memory.forget(key)

    def forget_holder(self, tenant: str, holder: str) -> None:
        """Forget all tokens of a user."""
        self._memory.forget_where(lambda cached: (cached.key.tenant, cached.key.holder) == (tenant, holder))
