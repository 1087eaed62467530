"""Ask an issuer whether a token counts: shared by all who wait, remembered briefly, and no load for the issuer."""

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from app.core.errors import OverloadedError
from app.core.identities import Introspection, TrustedIssuer
from app.core.tokens import TokenFault, TokenReader, TokenRefusedError, VerifiedToken
from app.services.caching import ShortMemory
from app.upstream.issuers import IssuerClient, IssuerDownError

_OPAQUE: Final = re.compile(r"(?!slc_)[A-Za-z0-9._~+/=-]{16,4096}")
_MOST_AT_ONCE: Final = 8
_TURN_S: Final = 2.0
_REMEMBERED: Final = 10_000
_RETRY_S: Final = 5.0
_ADDRESS_S: Final = 300.0

log = logging.getLogger("sluice.identity")


def looks_opaque(text: str) -> bool:
    """Return whether ``text`` may be an opaque token; a key of this service, however misspelt, leaves for nowhere."""
    return _OPAQUE.fullmatch(text) is not None


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

    async def verified(self, token: str, now: float) -> VerifiedToken:
        """Return a token's claims, which count for no longer than an answer does.

        Raises TokenRefusedError, and OverloadedError where the issuer gives no answer.
        """
        digest = hashlib.sha256(token.encode()).digest()
        reason = self._refused.peek(digest)
        if reason is not None:
            raise TokenRefusedError(reason)
        answer = await self._asked(token)
        try:
            verified = self._reader.introspected(answer, self.issuer, now)
        except TokenRefusedError as error:
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

    async def _asked(self, token: str) -> dict[str, object]:
        try:
            async with asyncio.timeout(_TURN_S):
                await self._turns.acquire()
        except TimeoutError:
            raise _no_answer() from None
        try:
            answer = await self._client.introspected(await self._place(), self.introspection, token)
        except IssuerDownError as error:
            self._address = None
            log.warning("issuer %s does not say whether a token counts: %s", self.issuer.issuer, error)
            raise _no_answer() from None
        finally:
            self._turns.release()
        if not isinstance(answer, dict):
            raise _no_answer()
        return answer


async def _kept(reason: TokenFault, _digest: bytes) -> TokenFault:
    return reason


def _no_answer() -> OverloadedError:
    return OverloadedError(
        "The issuer of this token does not say whether it counts; try again shortly.", retry_after_s=_RETRY_S
    )
