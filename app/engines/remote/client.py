"""Post requests to an engine on another server: bounded, strict, and without content in errors."""

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from app.core.errors import ServiceError
from app.core.offload import off_loop
from app.core.strictjson import dumps, loads
from app.engines.remote import RemoteOptions
from app.engines.resilience import RemoteEngineError

if TYPE_CHECKING:
    import aiohttp

MAX_ANSWER_BYTES = 32 * 1024 * 1024
_CONNECTIONS = 16
_CHUNK = 65_536
_OK = 200


class RemoteAnswer(BaseModel):
    """The members of an answer that are used; other members are ignored, values of other types refused."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


A = TypeVar("A", bound=BaseModel)


class RemoteClient:
    """Posts JSON under a base URL; the key is sent in a header only."""

    def __init__(self, options: RemoteOptions, *, max_answer_bytes: int = MAX_ANSWER_BYTES) -> None:
        # A heavy import that most installations do not need; done here, so that it does not delay the first call.
        import aiohttp  # noqa: PLC0415

        self._aiohttp = aiohttp
        self.options = options
        self._base = options.url.rstrip("/")
        self._limit = max_answer_bytes
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, body: Any, shape: type[A]) -> A:
        """Return the answer as ``shape``; raises RemoteEngineError, which briefly names the fault."""
        data = await self._exchange(path, dumps(body))
        try:
            return await off_loop(len(data), _read, data, shape)
        except (ServiceError, ValidationError, RecursionError):
            raise RemoteEngineError("malformed answer") from None

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def _exchange(self, path: str, body: bytes) -> bytes:
        headers = {"content-type": "application/json", "accept": "application/json"}
        # Refuse compression, so that a small answer cannot expand to gigabytes.
        headers["accept-encoding"] = "identity"
        if self.options.api_key is not None:
            headers["authorization"] = f"Bearer {self.options.api_key}"
        try:
            async with self._open_session().post(
                self._base + path, data=body, headers=headers, allow_redirects=False
            ) as answer:
                if answer.status != _OK:
                    raise RemoteEngineError(f"status {answer.status}")
                if answer.headers.get("content-encoding", "identity").lower() != "identity":
                    raise RemoteEngineError("compressed answer")
                return await self._read_body(answer)
        except (self._aiohttp.ClientError, OSError, asyncio.IncompleteReadError, ValueError):
            raise RemoteEngineError("connection failed") from None

    async def _read_body(self, answer: "aiohttp.ClientResponse") -> bytes:
        data = bytearray()
        async for chunk in answer.content.iter_chunked(_CHUNK):
            data += chunk
            if len(data) > self._limit:
                raise RemoteEngineError("too large an answer")
        return bytes(data)

    def _open_session(self) -> "aiohttp.ClientSession":
        if self._session is None:
            self._session = self._aiohttp.ClientSession(
                connector=self._aiohttp.TCPConnector(limit=_CONNECTIONS),
                cookie_jar=self._aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=self._aiohttp.ClientTimeout(total=None),  # the guard around each call sets the limit
            )
        return self._session


def _read(data: bytes, shape: type[A]) -> A:
    return shape.model_validate(loads(data))
