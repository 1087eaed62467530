"""Stand-ins for the services behind the surface, and a server on loopback for one test."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from app.core.access import Caller, Role
from app.core.errors import NotFoundError, StoreUnavailableError, UnauthenticatedError
from app.protocol.methods.aggregated import AggregatedPrimitives
from app.protocol.server import Mcp, McpParts, build_mcp

ALICE = Caller("acme", "0000000a", frozenset({Role.INVOKER}))
BOB = Caller("acme", "0000000b", frozenset({Role.INVOKER}))
KEYS = {"alice": ALICE, "bob": BOB}


@dataclass
class Info:
    name: str
    title: str
    description: str
    phase: str
    input_schema: dict[str, Any]


@dataclass
class Result:
    content: list[Any]
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class Invoke:
    """Echoes; ``script`` replaces what an invocation does."""

    names: list[str] = field(
        default_factory=lambda: ["pii_redaction", "pii_restoration", "timestamp_injector"]
    )
    script: Callable[..., Awaitable[Result]] | None = None

    async def list(self, _caller, _request=None):
        schema = {"type": "object", "properties": {}, "additionalProperties": False}
        return [Info(n, n.title(), f"Does {n}.", "outbound", schema) for n in self.names]

    async def invoke(self, caller, name, arguments, items, request, progress=None):
        if self.script is not None:
            return await self.script(caller, name, arguments, items, request, progress)
        if name not in self.names:
            raise NotFoundError("There is no such middleware.")
        if progress is not None:
            for step in range(1, 4):
                await progress(step, 3)
        return Result(items, {"arguments": arguments} if arguments else {})


class Access:
    def __init__(self, anonymous=None):
        self.keys = {None: anonymous} if anonymous else dict(KEYS)
        self.down = False

    async def authenticate(self, bearer, _address):
        if self.down:
            raise StoreUnavailableError("The database does not answer.")
        if bearer not in self.keys:
            raise UnauthenticatedError("A valid API key is needed.")
        return self.keys[bearer]

    async def acting(self, caller, names, _request):
        assert not names
        return caller


@dataclass
class Session:
    id: str
    revision: str
    preferences: dict[str, Any]


class Sessions:
    def __init__(self):
        self.rows: dict[str, tuple[Caller, Session]] = {}

    async def start(self, caller, revision, preferences=None):
        session = Session(secrets.token_urlsafe(32), revision, dict(preferences or {}))
        self.rows[session.id] = (caller, session)
        return session

    async def resume(self, caller, session_id):
        owner, session = self.rows.get(session_id, (None, None))
        if owner != caller:
            raise NotFoundError("There is no such session.")
        return session

    async def remember(self, caller, session_id, preferences):
        return await self.revise(caller, session_id, lambda held: {**held, **preferences})

    async def revise(self, caller, session_id, change, *, publish=False):
        session = await self.resume(caller, session_id)
        session.preferences = dict(change(session.preferences))
        return session

    async def end(self, caller, session_id):
        await self.resume(caller, session_id)
        del self.rows[session_id]


def build(**options: Any) -> Mcp:
    given: dict[str, Any] = {
        "invoke": Invoke(),
        "authenticator": Access(),
        "sessions": Sessions(),
        "version": "0.0.0",
        "allowed_hosts": ["127.0.0.1", "localhost"],
        "allowed_origins": ["http://127.0.0.1", "http://localhost"],
        "max_body_bytes": 8 * 1024 * 1024,
    }
    primitives = options.get("primitives")
    if isinstance(primitives, AggregatedPrimitives):
        given["expect"] = primitives.expect
    return build_mcp(McpParts(**{**given, **options}))


@contextlib.asynccontextmanager
async def serving(mcp: Mcp) -> AsyncIterator[str]:
    """Serve ``mcp`` on a free port of loopback and yield its URL."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mcp.run():
            yield

    app = Starlette(routes=[Route("/mcp", mcp.app, methods=["GET", "POST", "DELETE"])], lifespan=lifespan)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=2))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
        if task.done():
            await task
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        mcp.drain()
        server.should_exit = True
        await task
