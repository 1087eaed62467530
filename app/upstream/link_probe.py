"""Check over the network whether something answers at an address that a model named: public addresses only."""

import asyncio
import hashlib
import socket
from collections import OrderedDict
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp

from app import __version__
from app.core.background import ended
from app.core.contracts.grounding import LinkState
from app.core.errors import InvalidArgumentsError
from app.upstream.transport.dialing import METADATA_NAMES, Gate, GatedResolver

_HOPS: Final = 3
_AT_ONCE: Final = 5
_KEPT: Final = 2_048
_GONE: Final = frozenset({404, 410})
_RETRY_WITH_GET: Final = frozenset({400, 403, 404, 405, 501})
"""Statuses of HEAD from servers that only know GET."""

_REFUSALS: Final = frozenset({401, 402, 403, 405, 406, 407, 429, 451})
"""Statuses which show that the address exists."""


class NetworkProbe:
    """Sends HEAD, then GET, follows few redirects and checks every address before it is dialed.

    ``networks`` are internal networks that may be contacted too; ``ports`` are the only ports contacted. Results are
    cached for ``keep_s`` seconds under a digest of their URL.
    """

    def __init__(
        self,
        *,
        networks: tuple[str, ...] = (),
        ports: frozenset[int] = frozenset({80, 443}),
        limit_s: float = 4.0,
        keep_s: float = 300.0,
    ) -> None:
        self._gate = Gate(networks, encrypted=True)
        self._ports = ports
        self._limit_s = limit_s
        self._keep_s = keep_s
        self._kept: OrderedDict[bytes, tuple[float, bool | None]] = OrderedDict()

    async def probe(self, urls: Sequence[str]) -> Sequence[LinkState]:
        """Return the state of each URL, all of them within the time limit."""
        turns = asyncio.Semaphore(_AT_ONCE)
        async with self._session() as session:
            tasks = [asyncio.create_task(self._state(session, url, turns)) for url in urls]
            try:
                if tasks:
                    await asyncio.wait(tasks, timeout=self._limit_s)
            finally:
                await ended(*tasks)
        done = [None if task.cancelled() or task.exception() else task.result() for task in tasks]
        return [LinkState(url, reachable) for url, reachable in zip(urls, done, strict=True)]

    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(resolver=GatedResolver(self._gate), limit=_AT_ONCE, force_close=True)
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=self._limit_s),
            headers={"Accept-Encoding": "identity", "User-Agent": f"sluice/{__version__}"},
            read_bufsize=16_384,
            max_line_size=8_190,
            max_field_size=8_190,
            max_headers=128,
        )

    async def _state(self, session: aiohttp.ClientSession, url: str, turns: asyncio.Semaphore) -> bool | None:
        now = asyncio.get_running_loop().time()
        key = hashlib.sha256(url.encode("utf-8", "surrogatepass")).digest()
        kept = self._kept.get(key)
        if kept is not None and kept[0] > now:
            return kept[1]
        async with turns:
            state = await self._request_state(session, url)
        self._kept[key] = (now + self._keep_s, state)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return state

    async def _request_state(self, session: aiohttp.ClientSession, url: str) -> bool | None:
        try:
            for _ in range(_HOPS + 1):
                self._check(url)
                status, target = await self._answer(session, url)
                if target is None:
                    return _meaning(status)
                url = urljoin(url, target)
        except (InvalidArgumentsError, TimeoutError, ValueError):
            return None
        except aiohttp.ClientConnectorDNSError as error:
            unknown = (
                isinstance(error.os_error, socket.gaierror) and error.os_error.errno == socket.EAI_NONAME
            )
            return False if unknown else None
        except (aiohttp.ClientError, OSError):
            return None
        return None

    async def _answer(self, session: aiohttp.ClientSession, url: str) -> tuple[int, str | None]:
        """Return the status and where it redirects to; no body is read."""
        for method in ("HEAD", "GET"):
            async with session.request(method, url, allow_redirects=False) as response:
                status, target = response.status, response.headers.get("Location")
            if method == "GET" or status not in _RETRY_WITH_GET:
                break
        redirects = 300 <= status < 400 and target  # noqa: PLR2004 - the class of redirects
        return status, target if redirects else None

    def _check(self, url: str) -> None:
        """Raise InvalidArgumentsError or ValueError unless this URL may be requested; resolving checks names."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        host = parts.hostname or ""
        plain = parts.scheme in {"http", "https"} and host and not (parts.username or parts.password)
        if not plain or port not in self._ports or host.rstrip(".").lower() in METADATA_NAMES:
            raise ValueError("this address is not probed")
        try:
            ip_address(host)
        except ValueError:
            return  # a name: the resolver checks all of its addresses
        self._gate.check(host)


def _meaning(status: int) -> bool | None:
    if status in _GONE:
        return False
    return True if status < 400 or status in _REFUSALS else None  # noqa: PLR2004 - the class of errors
