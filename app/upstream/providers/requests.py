"""A request to a provider and its answer: bytes as they come, held to the limits of the provider's entry."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote, urlencode

import aiohttp

from app.core.errors import InvalidRequestError
from app.core.gateway.providers import ProviderEntry, ProviderLimits
from app.upstream.providers.decoding import Inflating, UnreadableEncodingError
from app.upstream.providers.faults import ProviderFaults

WIRE_ERRORS: Final = (aiohttp.ClientError, OSError)
_SAFE: Final = "~!$&'()*+,;=:@-._"
_UNREADABLE: Final = "compresses its answer in a way that cannot be read, although it is asked not to"
_DECODED: Final = frozenset({"content-encoding", "content-length"})


@dataclass(frozen=True, slots=True)
class ProviderEndpoint:
    """A provider of a tenant; ``networks`` are those that are not public and may be dialed for it."""

    tenant: str
    entry: ProviderEntry
    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """What to send: ``path`` is behind the base URL; ``headers`` and ``query`` are what the door lets pass."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    query: Sequence[tuple[str, str]] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)

    def url(self, base: str) -> str:
        """Return the whole address; raise InvalidRequestError for a path that would leave the base URL."""
        segments = [unquote(segment) for segment in self.path.split("/")[1:]]
        if not self.path.startswith("/") or not all(map(_is_plain, segments)):
            raise InvalidRequestError("The path is not valid: an id in it is empty or holds a slash or dots.")
        path = "".join(f"/{quote(segment, safe=_SAFE)}" for segment in segments)
        return f"{base}{path}?{urlencode(self.query)}" if self.query else f"{base}{path}"


def _is_plain(segment: str) -> bool:
    return segment not in {"", ".", ".."} and segment.isprintable() and not {"/", "\\"} & set(segment)


class ProviderAnswer:
    """Status, headers and body of an answer; the body is read once, by ``chunks`` or by ``whole``."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        limits: ProviderLimits,
        faults: ProviderFaults,
        ends: float,
    ) -> None:
        self.status: Final[int] = response.status
        self._content = response.content
        self._limits = limits
        self._faults = faults
        self._ends = ends
        self._loop = asyncio.get_running_loop()
        self._waits_since: float | None = None
        self._watch: asyncio.TimerHandle | None = None
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        self._inflating = self._decoder(encoding)
        dropped = _DECODED if self._inflating is not None else frozenset()
        self.headers: Final[Sequence[tuple[str, str]]] = tuple(
            (name, value) for name, value in response.headers.items() if name.lower() not in dropped
        )

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes.

        Raises ProviderSlowError, ProviderCutOffError and ProviderTooLargeError; what was yielded before stands.
        """
        left = self._limits.max_answer_bytes
        try:
            while raw := await self._next():
                for chunk in (raw,) if self._inflating is None else self._decoded(raw):
                    left -= len(chunk)
                    if left < 0:
                        raise self._faults.too_large(self._limits.max_answer_bytes)
                    yield chunk
        finally:
            if self._watch is not None:
                self._watch.cancel()
        if self._inflating is not None and not self._inflating.complete:
            raise self._faults.cut_off()

    async def whole(self) -> bytes:
        """Return the whole body; raises as ``chunks`` does."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def _next(self) -> bytes:
        """Return the next bytes as they came, b"" at the end."""
        self._waits_since = since = self._loop.time()
        if self._watch is None:
            self._watch = self._loop.call_at(min(since + self._limits.idle_s, self._ends), self._look)
        try:
            return await self._content.readany()
        except TimeoutError:
            is_idle = since + self._limits.idle_s <= self._ends
            limit = ("idleS", self._limits.idle_s) if is_idle else ("totalS", self._limits.total_s)
            raise self._faults.slow(*limit) from None
        except (*WIRE_ERRORS, RuntimeError):  # RuntimeError: the connection was closed before anybody read
            raise self._faults.cut_off() from None
        finally:
            self._waits_since = None

    def _look(self) -> None:
        """End a wait that has lasted too long; one timer serves all waits, since most answers come in many pieces."""
        self._watch = None
        if self._waits_since is None:
            return
        until = min(self._waits_since + self._limits.idle_s, self._ends)
        if self._loop.time() < until:
            self._watch = self._loop.call_at(until, self._look)
        else:
            self._content.set_exception(TimeoutError())

    def _decoded(self, raw: bytes) -> Iterator[bytes]:
        try:
            yield from self._inflating.feed(raw) if self._inflating is not None else ()
        except UnreadableEncodingError:
            raise self._faults.cut_off(_UNREADABLE) from None

    def _decoder(self, encoding: str) -> Inflating | None:
        if encoding in {"identity", ""}:
            return None
        try:
            return Inflating(encoding)
        except UnreadableEncodingError:
            raise self._faults.cut_off(_UNREADABLE) from None
