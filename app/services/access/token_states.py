"""Ask an issuer whether a token counts: shared by all who wait, remembered briefly, and no load for the issuer."""

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from app.core.addresses import network_of
from app.core.errors import OverloadedError
from app.core.identities import Introspection, TrustedIssuer
from app.core.tokens import TokenFault, TokenReader, TokenRefusedError, VerifiedToken
from app.services.caching import ShortMemory
from app.upstream.issuers import IssuerClient, IssuerDownError

_OPAQUE: Final = re.compile(r"(?!slc_)[A-Za-z0-9._~+/=-]{16,4096}")
_MOST_AT_ONCE: Final = 8
_TURN_S: Final = 2.0
_REMEMBERED: Final = 10_000
_FOR_GUESSERS: Final = 2
"""Of the turns at the issuer, so many are for networks from which many unknown tokens came."""
_MANY_UNKNOWN: Final = 20
_GUESSING_S: Final = 60.0
_NETWORKS: Final = 1_000
_RETRY_S: Final = 5.0
_ADDRESS_S: Final = 300.0

log = logging.getLogger("sluice.identity")


def looks_opaque(text: str) -> bool:
    """Return whether ``text`` may be an opaque token; a key of this service, however misspelt, leaves for nowhere."""
    return _OPAQUE.fullmatch(text) is not None


class _Guesses:
    """Count the unknown tokens of each network, which may be nobody's: invented ones must not keep others waiting."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._counted: dict[str | None, tuple[float, int]] = {}

    def note(self, address: str | None) -> None:
        """Count one token from an IP address; the count of a network begins anew after a minute."""
        network, now = network_of(address), self._clock()
        began, number = self._counted.pop(network, (now, 0))
        if now - began > _GUESSING_S:
            began, number = now, 0
        while len(self._counted) >= _NETWORKS:
            del self._counted[next(iter(self._counted))]
        self._counted[network] = began, number + 1

    def are_many(self, address: str | None) -> bool:
        """Return whether many unknown tokens came from the network of an IP address within the last minute."""
        began, number = self._counted.get(network_of(address), (0.0, 0))
        return number >= _MANY_UNKNOWN and self._clock() - began <= _GUESSING_S


class TokenState:
    """What one issuer says of tokens. A token that it does not know is not asked for again for a while."""

    def __init__(
        self,
        issuer: TrustedIssuer,
        introspection: Introspection,
        client: IssuerClient,
        reader: TokenReader,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer, self.introspection = issuer, introspection
        self._client, self._reader = client, reader
        self._refused: ShortMemory[bytes, TokenFault] = ShortMemory(
            ttl_s=introspection.cache_s, size=_REMEMBERED, clock=clock
        )
        self._clock = clock
        self._address: tuple[float, str] | None = None
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)
        self._guesses = _Guesses(clock)
        self._turns_of_guessers = asyncio.Semaphore(_FOR_GUESSERS)

    async def verified(self, token: str, now: float, address: str | None = None) -> VerifiedToken:
        """Return the claims of a token from an IP address, which count for no longer than an answer does.

        Raises TokenRefusedError, and OverloadedError where the issuer gives no answer.
        """
        digest = hashlib.sha256(token.encode()).digest()
        reason = self._refused.peek(digest)
        if reason is not None:
            raise TokenRefusedError(reason)
        answer = await self._asked(token, address)
        try:
            verified = self._reader.introspected(answer, self.issuer, now)
        except TokenRefusedError as error:
            self._guesses.note(address)
            await self._refused.get(digest, partial(_kept, error.reason))
            raise
        return VerifiedToken(verified.claims, min(verified.until, now + self.introspection.cache_s))

    async def _place(self) -> str:
        """Return where to ask; what the metadata says of it holds for a while, and until an attempt fails."""
        if self.introspection.uri is not None:
            return self.introspection.uri
        if self._address is None or self._clock() - self._address[0] > _ADDRESS_S:
            self._address = self._clock(), await self._client.introspection_address(self.issuer.issuer)
        return self._address[1]

    async def _asked(self, token: str, address: str | None) -> dict[str, object]:
        try:
            async with AsyncExitStack() as turns, asyncio.timeout(_TURN_S) as patience:
                if self._guesses.are_many(address):
                    await turns.enter_async_context(self._turns_of_guessers)
                await turns.enter_async_context(self._turns)
                patience.reschedule(None)
                return await self._answered(token)
        except TimeoutError:
            raise _no_answer() from None

    async def _answered(self, token: str) -> dict[str, object]:
        try:
            answer = await self._client.introspected(await self._place(), self.introspection, token)
        except IssuerDownError as error:
            self._address = None
            log.warning("issuer %s does not say whether a token counts: %s", self.issuer.issuer, error)
            raise _no_answer() from None
        if not isinstance(answer, dict):
            raise _no_answer()
        return answer


async def _kept(reason: TokenFault, _digest: bytes) -> TokenFault:
    return reason


def _no_answer() -> OverloadedError:
    return OverloadedError(
        "The issuer of this token does not say whether it counts; try again shortly.", retry_after_s=_RETRY_S
    )
