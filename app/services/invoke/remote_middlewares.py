"""Middlewares of other MCP servers: their lists are mirrored, invocations forwarded, answers checked."""

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from pydantic import ConfigDict, model_validator

from app.core.background import ended
from app.core.content.context import Context
from app.core.contracts.argument_schema import schema_fault
from app.core.contracts.middleware import REMOTE_SEPARATOR, Arguments, Invocation, Middleware, Outcome
from app.core.errors import (
    DeadlineExceededError,
    InvalidArgumentsError,
    ServiceError,
    TooLargeError,
    UpstreamUnavailableError,
)
from app.core.offload import off_loop
from app.core.strictjson import dumps
from app.core.upstream import UpstreamError
from app.upstream.connection import Connection

PHASE_META: Final = "dev.sluice/phase"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_FRESH_S: Final = 30.0
_AGAIN_S: Final = 2.0
_LISTING_S: Final = 5.0
_MAX_LISTED: Final = 100
_MAX_PAGES: Final = 10
_MAX_SCHEMA: Final = 65_536
_MAX_METADATA: Final = 262_144
_GROWTH: Final = 65_536
"""An answer may have four times the length of the request, plus this many bytes."""

log = logging.getLogger("sluice.plugins")


class RemoteArguments(Arguments):
    """Arguments of a remote middleware, checked against the schema that its server lists."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    remote_schema: ClassVar[Mapping[str, Any]] = {}

    @model_validator(mode="before")
    @classmethod
    def _fits(cls, arguments: Any) -> Any:
        if schema_fault(cls.remote_schema, arguments) is not None:
            raise ValueError("the arguments do not fit the middleware's inputSchema")
        return arguments

    @classmethod
    def model_json_schema(cls, *_arguments: Any, **_options: Any) -> dict[str, Any]:
        """Return the schema as the server listed it."""
        return dict(cls.remote_schema)


class RemoteMiddleware(Middleware[RemoteArguments]):
    """One middleware of one server; policy, limits and audit apply as to any other middleware."""

    def __init__(self, source: "_Source", own_name: str, definition: Mapping[str, Any]) -> None:
        self.source = source
        self.own_name = own_name
        meta = definition.get("_meta")
        phase = meta.get(PHASE_META) if isinstance(meta, Mapping) else None
        # The contract keeps these on the class; here each definition is an instance, so they are set on the instance.
        self.name = f"{source.name}{REMOTE_SEPARATOR}{own_name}"  # type: ignore[misc]
        self.title = str(definition.get("title") or own_name)[:200]  # type: ignore[misc]
        self.description = str(definition.get("description") or "")[:4000]  # type: ignore[misc]
        self.phase = "inbound" if phase == "inbound" else "outbound"  # type: ignore[misc]
        self.arguments = type(
            "GivenArguments", (RemoteArguments,), {"remote_schema": definition["inputSchema"]}
        )

    async def apply(self, _context: Context, _arguments: RemoteArguments) -> Outcome:
        """Refuse: a request to another server needs a caller and a time limit."""
        raise InvalidArgumentsError("A middleware of another server can only be invoked with a caller.")

    async def invoke(self, context: Context, arguments: RemoteArguments, invocation: Invocation) -> Outcome:
        """Send the context to the server; take only a context and metadata of a bounded size from its answer."""
        left_s = invocation.until - asyncio.get_running_loop().time()
        if left_s <= 0:
            raise DeadlineExceededError("No time is left for this middleware.")
        items = context.to_json()
        params = {
            "name": self.own_name,
            "arguments": arguments.model_dump(exclude_unset=True),
            "context": items,
        }
        try:
            result = await self.source.connection.request("middleware/invoke", params, timeout_s=left_s)
        except UpstreamError as error:
            # The message is the server's own and may be content: only its code is passed on.
            raise UpstreamUnavailableError(
                "The server of this middleware refused the request.",
                details={"server": self.source.name, "code": error.code},
            ) from None
        size = context.characters
        answered, metadata = await off_loop(size, _checked, result, size, self.source.name)
        details = {"remote": self.source.name, "remote_version": self.source.version}
        return Outcome(answered, metadata, audit_details=details)


class UnlistedMiddleware(Middleware[RemoteArguments]):
    """A remote middleware that its server does not list now, or never did; as a step it fails when it runs."""

    def __init__(self, name: str) -> None:
        self.name = self.title = self.description = name  # type: ignore[misc]
        self.phase = "outbound"  # type: ignore[misc]
        self.arguments = RemoteArguments

    async def apply(self, _context: Context, _arguments: RemoteArguments) -> Outcome:
        """Refuse: the middleware is not offered."""
        raise UpstreamUnavailableError(
            "The server of this middleware does not offer it now; check that the server runs and lists it.",
            details={"middleware": self.name},
        )


def _checked(result: Mapping[str, Any], sent_size: int, server: str) -> tuple[Context, dict[str, Any]]:
    content, metadata = result.get("content"), result.get("metadata", {})
    if not isinstance(content, list) or not isinstance(metadata, dict):
        raise _invalid_answer(server)
    if len(dumps(content)) > 4 * sent_size + _GROWTH or len(dumps(metadata)) > _MAX_METADATA:
        raise TooLargeError("The answer of this middleware's server is too large.")
    try:
        return Context.parse(content), dict(metadata)
    except ServiceError:
        raise _invalid_answer(server) from None


def _invalid_answer(server: str) -> UpstreamUnavailableError:
    return UpstreamUnavailableError(
        "The server of this middleware did not answer with a context; nothing was passed on.",
        details={"server": server},
    )


@dataclass(slots=True)
class _Source:
    """One server, its listed middlewares, and the digest of each definition when it was first seen."""

    name: str
    connection: Connection
    listed: dict[str, RemoteMiddleware] = field(default_factory=dict)
    pins: dict[str, str] = field(default_factory=dict)
    read_at: float = float("-inf")
    reading: asyncio.Task[None] | None = None

    @property
    def version(self) -> str:
        """Return the version that the server reports."""
        return str((self.connection.status.server_info or {}).get("version", ""))[:100]

    async def refresh(self, now: float) -> None:
        """Read the server's list again in the background if it is old; callers wait only for the first list."""
        if now - self.read_at >= _FRESH_S and (self.reading is None or self.reading.done()):
            self.read_at = now
            self.reading = asyncio.create_task(self._read(now), name=f"middlewares of {self.name}")
        if not self.listed and self.reading is not None:
            await asyncio.wait({self.reading}, timeout=_LISTING_S)

    async def close(self) -> None:
        """Stop reading, and disconnect from the server."""
        if self.reading is not None:
            await ended(self.reading)
        await self.connection.stop()

    async def _read(self, now: float) -> None:
        try:
            definitions = await self._definitions()
        except (ServiceError, UpstreamError) as error:
            # What was listed last stays listed; the connection itself logs why it is down.
            log.warning("middlewares of %s are not listed: %s", self.name, type(error).__name__)
            self.read_at = now - _FRESH_S + _AGAIN_S
            return
        self.listed = {
            name: RemoteMiddleware(self, name, definition)
            for name, definition in definitions.items()
            if self._is_as_pinned(name, definition)
        }

    def _is_as_pinned(self, name: str, definition: Mapping[str, Any]) -> bool:
        digest = hashlib.sha256(dumps(definition)).hexdigest()
        if self.pins.setdefault(name, digest) == digest:
            return True
        log.warning("a middleware of %s changed its definition and is held back until a restart", self.name)
        return False

    async def _definitions(self) -> dict[str, Mapping[str, Any]]:
        definitions: dict[str, Mapping[str, Any]] = {}
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            params = {"cursor": cursor} if cursor is not None else {}
            page = await self.connection.request("middleware/list", params, timeout_s=_LISTING_S)
            entries = page.get("middleware")
            if not isinstance(entries, list):
                raise _invalid_answer(self.name)
            definitions.update({entry["name"]: entry for entry in entries if _is_definition(entry)})
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or len(definitions) > _MAX_LISTED:
                break
        return dict(list(definitions.items())[:_MAX_LISTED])


def _is_definition(entry: Any) -> bool:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        return False
    schema = entry.get("inputSchema")
    fits = isinstance(schema, Mapping) and len(dumps(schema)) <= _MAX_SCHEMA
    return fits and _NAME.fullmatch(entry["name"]) is not None


class RemoteMiddlewares:
    """The middlewares of all servers that the settings name, as ``server__name``."""

    def __init__(self, connections: Mapping[str, Connection], now: Callable[[], float]) -> None:
        self._sources = [_Source(name, connection) for name, connection in sorted(connections.items())]
        self._now = now

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Keep the connections, which reconnect by themselves; nothing waits for a server to be reachable."""
        for source in self._sources:
            source.connection.start()
        try:
            yield self
        finally:
            await asyncio.gather(*(source.close() for source in self._sources))

    async def of(self) -> dict[str, Middleware[Any]]:
        """Return what is offered now, by name; an unreachable server delays callers only briefly."""
        await asyncio.gather(*(source.refresh(self._now()) for source in self._sources))
        return self.last_listed()

    def last_listed(self) -> dict[str, Middleware[Any]]:
        """Return the middlewares that were listed last, by name."""
        return {
            middleware.name: middleware for source in self._sources for middleware in source.listed.values()
        }
