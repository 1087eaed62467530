"""The keys of one issuer: fetched once, kept while the issuer is down, asked for again when one is unknown."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Self

from app.core.background import ended
from app.core.errors import OverloadedError
from app.core.identities import TrustedIssuer
from app.core.tokens import TokenHead, TokenReader, VerifyingKey
from app.upstream.issuers import IssuerClient, IssuerDownError

UNKNOWN_KEY_S: Final = 60.0
"""So long after an attempt an unknown key asks no more: tokens with invented keys are no load for the issuer."""
FRESH_S: Final = 300.0
"""Keys older than this are fetched again, in the background of a request that uses one: a withdrawn key goes."""
_FIRST_RETRY_S: Final = 5.0

log = logging.getLogger("sluice.identity")


class KeysState(NamedTuple):
    """What this process knows of an issuer's keys.

    ``usable`` counts them. They came ``fetched_s`` seconds ago, it was asked for them last ``asked_s`` seconds ago, and
    ``fault`` says what was wrong then; None: never, or nothing.
    """

    usable: int
    fetched_s: float | None
    asked_s: float | None
    fault: str | None


class IssuerKeys:
    """The keys of an issuer in this process; requests that wait for them share one fetch."""

    def __init__(
        self,
        issuer: TrustedIssuer,
        client: IssuerClient,
        reader: TokenReader,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self._client, self._reader, self._clock = client, reader, clock
        self._keys: Sequence[VerifyingKey] = ()
        self._fetched: float | None = None
        self._tried: float | None = None
        self._running: asyncio.Task[None] | None = None
        self._fault: str | None = None

    def renewed(self, issuer: TrustedIssuer) -> Self:
        """Return the keys of the issuer as it is said to be now; what is known of them serves on where it may."""
        renewed = type(self)(issuer, self._client, self._reader, self._clock)
        if (issuer.issuer, issuer.jwks_uri) == (self.issuer.issuer, self.issuer.jwks_uri):
            renewed._keys, renewed._fetched = self._keys, self._fetched  # noqa: SLF001 - another of this class
            renewed._tried, renewed._fault = self._tried, self._fault  # noqa: SLF001
        return renewed

    @property
    def state(self) -> KeysState:
        """Return what is known of the keys now."""
        now = self._clock()
        fetched, asked = (None if at is None else now - at for at in (self._fetched, self._tried))
        return KeysState(len(self._keys), fetched, asked, self._fault)

    async def candidates(self, head: TokenHead) -> Sequence[VerifyingKey]:
        """Return the keys that may have signed a token; none where its key is unknown.

        Raises OverloadedError where no key of the issuer could be fetched yet.
        """
        fitting = self._fitting(head)
        if fitting:
            if self._age() > FRESH_S and self._waited(UNKNOWN_KEY_S):
                self._refresh()
            return fitting
        if self._running is not None or self._waited(UNKNOWN_KEY_S if self._keys else _FIRST_RETRY_S):
            # A request that goes away must not end the fetch for the others.
            await asyncio.shield(self._refresh())
            fitting = self._fitting(head)
        if not self._keys:
            raise OverloadedError(
                "The issuer of this token does not say which keys it has; try again shortly.",
                retry_after_s=_FIRST_RETRY_S,
            )
        return fitting

    async def close(self) -> None:
        """Stop what is being fetched."""
        if self._running is not None:
            await ended(self._running)

    def _fitting(self, head: TokenHead) -> list[VerifyingKey]:
        return [
            key
            for key in self._keys
            if head.algorithm in key.algorithms and (head.key_id is None or key.key_id == head.key_id)
        ]

    def _age(self) -> float:
        return self._clock() - self._fetched if self._fetched is not None else float("inf")

    def _waited(self, pause_s: float) -> bool:
        return self._tried is None or self._clock() - self._tried >= pause_s

    def _refresh(self) -> "asyncio.Task[None]":
        if self._running is None:
            self._tried = self._clock()
            self._running = asyncio.create_task(self._fetch())
            self._running.add_done_callback(self._ended)
        return self._running

    def _ended(self, _task: "asyncio.Task[None]") -> None:
        self._running = None

    async def _fetch(self) -> None:
        try:
            document = await self._client.key_set(self.issuer.issuer, self.issuer.jwks_uri)
        except IssuerDownError as error:
            log.warning("the keys of issuer %s could not be fetched: %s", self.issuer.issuer, error)
            self._fault = f"its keys could not be fetched: {error}"
            return
        keys = self._reader.keys(document)
        if not keys:
            # An empty or unreadable set would lock everybody out; what was known serves on.
            log.warning("issuer %s lists no key that can be used", self.issuer.issuer)
            self._fault = "it lists no key that can be used"
            return
        self._keys, self._fetched, self._fault = keys, self._clock(), None
