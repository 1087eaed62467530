"""The client of model providers: connections pooled per provider, no redirects, no retries."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

import aiohttp
from yarl import URL

from app import __version__
from app.core.gateway.credentials import ProviderCredential, check_no_own_key, outgoing_headers
from app.upstream.providers.faults import ProviderFaults
from app.upstream.providers.requests import (
    WIRE_ERRORS,
    ProviderAnswer,
    ProviderEndpoint,
    ProviderRequest,
)
from app.upstream.transport.dialing import AddressRefusedError, gated_connector
from app.upstream.transport.http import payload

_MAX_POOLS: Final = 256
_REDIRECTS: Final = frozenset({300, 301, 302, 303, 305, 307, 308})


@dataclass(slots=True)
class _Pool:
    """The connections to one provider as its entry is now; closed once nobody uses a pool that was replaced."""

    reached: Any
    session: aiohttp.ClientSession
    users: int = 0
    replaced: bool = False


class ProviderClient:
    """Sends requests to providers. One object serves a process; ``aclose`` it at the end."""

    def __init__(self) -> None:
        self._pools: OrderedDict[tuple[str, str], _Pool] = OrderedDict()

    def send(
        self, endpoint: ProviderEndpoint, request: ProviderRequest, credential: ProviderCredential
    ) -> "ProviderExchange":
        """Return what sends a request, as ``async with``, and hands out the answer once its head is there.

        Leaving the body of ``async with`` before the answer's end, or being cancelled there, closes the connection, so
        that the provider stops. Raises the errors of ``faults``, and InvalidRequestError if the request may not leave.
        """
        return ProviderExchange(self, endpoint, request, credential)

    async def aclose(self) -> None:
        """Close every connection."""
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            await pool.session.close()

    async def take(self, endpoint: ProviderEndpoint, faults: ProviderFaults) -> _Pool:
        """Return the connections to a provider, to be given back by ``leave``."""
        try:
            pool = await self._pool(endpoint)
        except AddressRefusedError as error:
            raise faults.refused(error) from None
        pool.users += 1
        return pool

    async def leave(self, pool: _Pool) -> None:
        """Use the connections no longer."""
        pool.users -= 1
        if pool.replaced and not pool.users:
            await pool.session.close()

    async def _pool(self, endpoint: ProviderEndpoint) -> _Pool:
        key, entry = (endpoint.tenant, endpoint.entry.name), endpoint.entry
        reached = (entry.base_url, endpoint.networks, entry.limits.connect_s)
        pool = self._pools.get(key)
        if pool is None or pool.reached != reached:
            fresh = _Pool(reached, _session_of(endpoint))
            self._pools[key] = fresh
            if pool is not None:
                await _replace(pool)
            pool = fresh
        self._pools.move_to_end(key)
        while len(self._pools) > _MAX_POOLS:
            _, oldest = self._pools.popitem(last=False)
            await _replace(oldest)
        return pool


class ProviderExchange:
    """One request and its answer; use it once, with ``async with``.

    It keeps nothing of the request, and is no generator, since an answer may stream for long: a suspended one would
    hold all that it has read.
    """

    __slots__ = ("_client", "_loss", "_pool", "_response", "_sends")

    def __init__(
        self,
        client: ProviderClient,
        endpoint: ProviderEndpoint,
        request: ProviderRequest,
        credential: ProviderCredential,
    ) -> None:
        self._client = client
        self._sends: tuple[ProviderEndpoint, ProviderRequest, ProviderCredential] | None
        self._sends = endpoint, request, credential
        self._pool: _Pool | None = None
        self._response: aiohttp.ClientResponse | None = None
        self._loss: _LossWatch | None = None

    async def __aenter__(self) -> ProviderAnswer:
        """Send the request; return its answer, of which only the head is read."""
        try:
            return await self._answer()
        except BaseException:
            await self._end()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _answer(self) -> ProviderAnswer:
        assert self._sends is not None  # noqa: S101 - it is used once
        (endpoint, request, credential), self._sends = self._sends, None
        entry = endpoint.entry
        headers = outgoing_headers(entry, request.headers, credential)
        check_no_own_key(headers, request.path, request.query, request.body)
        url = URL(request.url(entry.base_url), encoded=True)
        faults = ProviderFaults(entry.name)
        ends = asyncio.get_running_loop().time() + entry.limits.total_s
        self._pool = await self._client.take(endpoint, faults)
        self._response = response = await _sent(self._pool.session, request, url, headers, endpoint)
        if response.status in _REDIRECTS:
            raise faults.redirects(response.status)
        if (response.content_length or 0) > entry.limits.max_answer_bytes:
            raise faults.too_large(entry.limits.max_answer_bytes)
        self._loss = _LossWatch(response)
        return ProviderAnswer(response, entry.limits, faults, ends)

    async def _end(self) -> None:
        if self._loss is not None:
            self._loss.end()
        if self._response is not None:
            self._response.close()  # what was read to its end has given its connection back already
        if self._pool is not None:
            await self._client.leave(self._pool)


def _session_of(endpoint: ProviderEndpoint) -> aiohttp.ClientSession:
    """Return a session for a provider; it resolves nothing unchecked, keeps no cookies and asks no environment."""
    return aiohttp.ClientSession(
        connector=gated_connector(endpoint.entry.base_url, endpoint.networks),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=None, connect=endpoint.entry.limits.connect_s),
        headers={"User-Agent": f"sluice/{__version__}"},
        skip_auto_headers=("Content-Type", "Accept"),
        read_bufsize=65_536,
        max_line_size=8_190,
        max_field_size=8_190,
        max_headers=256,
    )


class _LossWatch:
    """Fails the body when the connection is lost before its end: after a malformed chunk aiohttp would wait on."""

    __slots__ = ("_closed", "_content")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._content = response.content
        connection = response.connection
        protocol = connection.protocol if connection is not None else None
        self._closed = protocol.closed if protocol is not None else None
        if self._closed is None:  # the whole answer came with its head, or the connection is lost already
            self._lost()
            return
        self._closed.remove_done_callback(_retrieve)  # a connection that is used again needs it once
        self._closed.add_done_callback(_retrieve)
        self._closed.add_done_callback(self._lost)

    def end(self) -> None:
        """Watch no longer."""
        if self._closed is not None:
            self._closed.remove_done_callback(self._lost)

    def _lost(self, _closed: "asyncio.Future[None] | None" = None) -> None:
        if not self._content.is_eof() and self._content.exception() is None:
            self._content.set_exception(aiohttp.ClientPayloadError())


def _retrieve(closed: "asyncio.Future[None]") -> None:
    """Take the reason for which a connection closed, or asyncio would log that nobody did."""
    if not closed.cancelled():
        closed.exception()


async def _replace(pool: _Pool) -> None:
    pool.replaced = True
    if not pool.users:
        await pool.session.close()


async def _sent(
    session: aiohttp.ClientSession,
    request: ProviderRequest,
    url: URL,
    headers: dict[str, str],
    endpoint: ProviderEndpoint,
) -> aiohttp.ClientResponse:
    """Return the response, of which only the head is read."""
    faults, limits = ProviderFaults(endpoint.entry.name), endpoint.entry.limits
    patience_s = min(limits.first_byte_s, limits.total_s)
    try:
        async with asyncio.timeout(patience_s):
            return await session.request(
                request.method, url, data=payload(request.body), headers=headers, allow_redirects=False
            )
    except AddressRefusedError as error:
        raise faults.refused(error) from None
    except WIRE_ERRORS as error:
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError):
            raise faults.slow("firstByteS", patience_s) from None
        raise faults.down(error) from None
    except RuntimeError:
        # The session was closed while the process stops.
        raise faults.down(ConnectionResetError()) from None
