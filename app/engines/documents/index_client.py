"""Send requests to the server of an index: bounded, strict, and without content in errors."""

import asyncio
import base64
import ssl
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from app.core.errors import ServiceError
from app.core.offload import off_loop
from app.core.strictjson import dumps, loads
from app.engines.documents.chunk_index import IndexOptions
from app.engines.resilience import RemoteEngineError

if TYPE_CHECKING:
    import aiohttp

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
_CONNECTIONS: Final = 16
_CHUNK: Final = 65_536


class IndexAnswer(BaseModel):
    """The members of an answer that are used; other members are ignored, values of other types refused."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


A = TypeVar("A", bound=BaseModel)


class Reply(NamedTuple):
    """The status and the body of a response."""

    status: int
    data: bytes


class IndexClient:
    """Exchanges JSON under a base URL; credentials are sent in a header only."""

    def __init__(self, options: IndexOptions) -> None:
        # A heavy import, and most installations have no index on another server.
        import aiohttp  # noqa: PLC0415

        self._aiohttp = aiohttp
        self._options = options
        self._base = options.url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None
        self._headers = {"accept": "application/json", "accept-encoding": "identity", **_credentials(options)}
        self._tls = _trust(options)

    async def ask(self, method: str, path: str, body: Any, shape: type[A]) -> A:
        """Send a request that must succeed and return its answer as ``shape``."""
        return await read_reply(await self.send(method, path, body), shape)

    async def send(
        self, method: str, path: str, body: Any = None, *, accepted: frozenset[int] = frozenset()
    ) -> Reply:
        """Send a request and return the answer, which is a success or has one of the statuses ``accepted``.

        ``body`` is newline-delimited JSON as bytes, or a value to be written as JSON. The time limit is per request.
        """
        data = body if isinstance(body, bytes) or body is None else dumps(body)
        kind = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
        try:
            async with (
                asyncio.timeout(self._options.rules.timeout_s),
                self._open_session().request(
                    *(method, self._base + path),
                    data=data,
                    headers={**self._headers, **({} if data is None else {"content-type": kind})},
                    allow_redirects=False,
                ) as answer,
            ):
                if answer.status not in {200, 201, *accepted}:
                    raise RemoteEngineError(f"status {answer.status}")
                if answer.headers.get("content-encoding", "identity").lower() != "identity":
                    raise RemoteEngineError("compressed answer")
                return Reply(answer.status, await _read_body(answer))
        except TimeoutError:
            raise RemoteEngineError("timeout") from None
        except (self._aiohttp.ClientError, OSError, asyncio.IncompleteReadError, ValueError):
            raise RemoteEngineError("connection failed") from None

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> "aiohttp.ClientSession":
        if self._session is None:
            self._session = self._aiohttp.ClientSession(
                connector=self._aiohttp.TCPConnector(limit=_CONNECTIONS, ssl=self._tls),
                cookie_jar=self._aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=self._aiohttp.ClientTimeout(total=None),  # each request has its own limit
            )
        return self._session


async def read_reply(reply: Reply, shape: type[A]) -> A:
    """Return an answer as ``shape``, or raise RemoteEngineError."""
    try:
        return await off_loop(len(reply.data), _read, reply.data, shape)
    except (ServiceError, ValidationError, RecursionError):
        raise RemoteEngineError("malformed answer") from None


def numbers_of(proposals: list[int], limit: int) -> list[int]:
    """Return the proposals; raises RemoteEngineError where there are more than ``limit`` or some occur twice."""
    if len(proposals) > limit or len(set(proposals)) < len(proposals):
        raise RemoteEngineError("malformed answer")
    return proposals


def _read(data: bytes, shape: type[A]) -> A:
    return shape.model_validate(loads(data))


async def _read_body(answer: "aiohttp.ClientResponse") -> bytes:
    data = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK):
        data += chunk
        if len(data) > MAX_ANSWER_BYTES:
            raise RemoteEngineError("too large an answer")
    return bytes(data)


def _credentials(options: IndexOptions) -> dict[str, str]:
    if options.api_key is not None:
        named = {"qdrant": "api-key"}.get(options.kind)
        return {named: options.api_key} if named else {"authorization": f"ApiKey {options.api_key}"}
    if options.user:
        basic = f"{options.user}:{options.password or ''}".encode()
        return {"authorization": f"Basic {base64.b64encode(basic).decode()}"}
    return {}


def _trust(options: IndexOptions) -> ssl.SSLContext | bool:
    """Return how the server's certificate is checked."""
    if not options.verify:
        return False
    return ssl.create_default_context(cafile=options.ca_file) if options.ca_file else True
