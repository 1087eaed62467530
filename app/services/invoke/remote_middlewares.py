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
"""An answer may be four times as long as what was asked, and so much more."""

log = logging.getLogger("sluice.plugins")


class RemoteArguments(Arguments):
    """Arguments of a middleware elsewhere: held against the schema that its server gives."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    remote_schema: ClassVar[Mapping[str, Any]] = {}

    @model_validator(mode="before")
    @classmethod
    def _fits(cls, given: Any) -> Any:
        if schema_fault(cls.remote_schema, given) is not None:
            raise ValueError("the arguments do not fit the middleware's inputSchema")
        return given

    @classmethod
    def model_json_schema(cls, *_arguments: Any, **_options: Any) -> dict[str, Any]:
        """Return the schema as the server gave it."""
        return dict(cls.remote_schema)


class RemoteMiddleware(Middleware[RemoteArguments]):
    """One middleware of one server; the policy, limits and record are those of any other."""

    def __init__(self, source: "_Source", own_name: str, definition: Mapping[str, Any]) -> None:
        self.source = source
        self.own_name = own_name
        meta = definition.get("_meta")
        phase = meta.get(PHASE_META) if isinstance(meta, Mapping) else None
        # A subclass holds what the contract keeps with the class; instances of this one are made per definition.
        self.name = f"{source.name}{REMOTE_SEPARATOR}{own_name}"  # type: ignore[misc]
        self.title = str(definition.get("title") or own_name)[:200]  # type: ignore[misc]
        self.description = str(definition.get("description") or "")[:4000]  # type: ignore[misc]
        self.phase = "inbound" if phase == "inbound" else "outbound"  # type: ignore[misc]
        self.arguments = type(
            "GivenArguments", (RemoteArguments,), {"remote_schema": definition["inputSchema"]}
        )

    async def apply(self, _context: Context, _arguments: RemoteArguments) -> Outcome:
        """Refuse: what goes to another server needs a caller and a time limit."""
        raise InvalidArgumentsError("A middleware of another server is invoked with a caller only.")

    async def invoke(self, context: Context, arguments: RemoteArguments, invocation: Invocation) -> Outcome:
        """Ask the server, and take from its answer nothing but a context and metadata of a bounded size."""
        left = invocation.until - asyncio.get_running_loop().time()
        if left <= 0:
            raise DeadlineExceededError("No time is left for this middleware.")
        items = context.to_json()
        params = {
            "name": self.own_name,
            "arguments": arguments.model_dump(exclude_unset=True),
            "context": items,
        }
        try:
            result = await self.source.connection.request("middleware/invoke", params, timeout_s=left)
        except UpstreamError as error:
            # The words are the server's own and may be content: only its code is told.
            raise UpstreamUnavailableError(
                "The server of this middleware refused the request.",
                details={"server": self.source.name, "code": error.code},
            ) from None
        size = context.characters
        answered, metadata = await off_loop(size, _checked, result, size, self.source.name)
        details = {"remote": self.source.name, "remote_version": self.source.version}
        return Outcome(answered, metadata, audit_details=details)


class UnlistedMiddleware(Middleware[RemoteArguments]):
    """A name of another server that does not list it now, or never did: as a step it fails when its turn comes."""

    def __init__(self, name: str) -> None:
        self.name = self.title = self.description = name  # type: ignore[misc]
        self.phase = "outbound"  # type: ignore[misc]
        self.arguments = RemoteArguments

    async def apply(self, _context: Context, _arguments: RemoteArguments) -> Outcome:
        """Refuse."""
        raise UpstreamUnavailableError(
            "The server of this middleware does not offer it now; see that it runs and lists it.",
            details={"middleware": self.name},
        )


def _checked(result: Mapping[str, Any], given: int, server: str) -> tuple[Context, dict[str, Any]]:
    content, metadata = result.get("content"), result.get("metadata", {})
    if not isinstance(content, list) or not isinstance(metadata, dict):
        raise _garbage(server)
    if len(dumps(content)) > 4 * given + _GROWTH or len(dumps(metadata)) > _MAX_METADATA:
        raise TooLargeError("The server of this middleware answered with more than is taken.")
    try:
        return Context.parse(content), dict(metadata)
    except ServiceError:
        raise _garbage(server) from None


def _garbage(server: str) -> UpstreamUnavailableError:
    return UpstreamUnavailableError(
        "The server of this middleware answered with something that is no context; nothing was passed on.",
        details={"server": server},
    )


@dataclass(slots=True)
class _Source:
    """One server, what it lists, and what each definition was when it was first seen."""

    name: str
    connection: Connection
    listed: dict[str, RemoteMiddleware] = field(default_factory=dict)
    pins: dict[str, str] = field(default_factory=dict)
    read_at: float = float("-inf")
    reading: asyncio.Task[None] | None = None

    @property
    def version(self) -> str:
        """Return the version that the server gives itself."""
        return str((self.connection.status.server_info or {}).get("version", ""))[:100]

    async def refresh(self, now: float) -> None:
        """Read the server's list where it is old, in the background; only before the first list anybody waits."""
        if now - self.read_at >= _FRESH_S and (self.reading is None or self.reading.done()):
            self.read_at = now
            self.reading = asyncio.create_task(self._read(now), name=f"middlewares of {self.name}")
        if not self.listed and self.reading is not None:
            await asyncio.wait({self.reading}, timeout=_LISTING_S)

    async def close(self) -> None:
        """Stop reading, and leave the server."""
        if self.reading is not None:
            self.reading.cancel()
            await asyncio.wait({self.reading})
        await self.connection.stop()

    async def _read(self, now: float) -> None:
        try:
            definitions = await self._definitions()
        except (ServiceError, UpstreamError) as error:
            # What was listed last stays listed; the connection itself says why it is down.
            log.warning("middlewares of %s are not listed: %s", self.name, type(error).__name__)
            self.read_at = now - _FRESH_S + _AGAIN_S
            return
        self.listed = {
            name: RemoteMiddleware(self, name, one)
            for name, one in definitions.items()
            if self._is_as_pinned(name, one)
        }

    def _is_as_pinned(self, name: str, definition: Mapping[str, Any]) -> bool:
        digest = hashlib.sha256(dumps(definition)).hexdigest()
        if self.pins.setdefault(name, digest) == digest:
            return True
        log.warning("a middleware of %s changed its definition and is held back until a restart", self.name)
        return False

    async def _definitions(self) -> dict[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            params = {"cursor": cursor} if cursor is not None else {}
            page = await self.connection.request("middleware/list", params, timeout_s=_LISTING_S)
            entries = page.get("middleware")
            if not isinstance(entries, list):
                raise _garbage(self.name)
            found.update({one["name"]: one for one in entries if _is_definition(one)})
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or len(found) > _MAX_LISTED:
                break
        return dict(list(found.items())[:_MAX_LISTED])


def _is_definition(one: Any) -> bool:
    if not isinstance(one, Mapping) or not isinstance(one.get("name"), str):
        return False
    schema = one.get("inputSchema")
    fits = isinstance(schema, Mapping) and len(dumps(schema)) <= _MAX_SCHEMA
    return fits and _NAME.fullmatch(one["name"]) is not None


class RemoteMiddlewares:
    """The middlewares of all servers that the settings name, as ``server__name``."""

    def __init__(self, connections: Mapping[str, Connection], now: Callable[[], float]) -> None:
        self._sources = [_Source(name, one) for name, one in sorted(connections.items())]
        self._now = now

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Keep the connections, which come back by themselves; nothing waits for a server to be there."""
        for source in self._sources:
            source.connection.start()
        try:
            yield self
        finally:
            await asyncio.gather(*(source.close() for source in self._sources))

    async def of(self) -> dict[str, Middleware[Any]]:
        """Return what is offered now, by name; a server that cannot be reached delays nobody for long."""
        await asyncio.gather(*(source.refresh(self._now()) for source in self._sources))
        return self.known()

    def known(self) -> dict[str, Middleware[Any]]:
        """Return what was listed last."""
        return {one.name: one for source in self._sources for one in source.listed.values()}
