"""One server process: uvicorn with our limits, a drain on SIGTERM, and the words of the first start."""

import asyncio
import gc
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from types import FrameType
from typing import Any

from fastapi import FastAPI
from uvicorn import Config, Server

from app.cli.faults import explained
from app.cli.serve.connections import protocol_with
from app.cli.serve.listening import address_of
from app.cli.terminal import FAILED, OK, note
from app.core.access import ApiKey
from app.core.errors import NotFoundError, OverloadedError
from app.edge.memory import tune_allocator
from app.main import create_app
from app.services.servers.upstreams import UpstreamService
from app.settings import Settings
from app.upstream.status import ServerStatus

BACKLOG = 1024
_YOUNG_OBJECTS = 10_000
"""A request makes a few thousand objects that die with it: looking for cycles among them less often saves time."""


class DrainingServer(Server):
    """uvicorn's server; it stops taking work before it closes its sockets, and greets once its port is bound."""

    def __init__(self, config: Config, app: FastAPI, listener: socket.socket, *, greets: bool) -> None:
        super().__init__(config)
        self._app = app
        self._listener = listener
        self._greets = greets

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, listen, and say where."""
        await super().startup(sockets)
        if not self.started:
            return
        # What the start made stays for good. Left to the collector, each full pass over it would stop every
        # request for about a tenth of a second, in the middle of a large redaction above all.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS, 20, 20)
        if self._greets:
            print(f"Sluice serves {address_of(self._listener)} (REST under /api/v1, MCP at /mcp)", flush=True)
            print(await self._entrance(address_of(self._listener)), flush=True)
            self._telling = asyncio.create_task(tell_served(self._app.state.services.upstreams))
        key = self._app.state.first_key
        if key is not None:
            print(first_start(key), flush=True)
            self._inviting = asyncio.create_task(self._invite(key, address_of(self._listener)))

    async def _entrance(self, url: str) -> str:
        """Return where the console is; in development, which serves loopback alone, with a link that signs in."""
        services, sessions = self._app.state.services, self._app.state.console_services.sessions
        keys = sorted(services.access.authority.development_keys) if sessions.needs_key else []
        if not keys:
            return f"Console: {url}/console/"
        return f"Console: {url}/console/sign-in#{await sessions.offer(keys[0])} (signs in once, within 5 minutes)"

    async def _invite(self, key: ApiKey, url: str) -> None:
        """Print the line to try once it works: the first start compiles patterns, for seconds on a busy machine."""
        services = self._app.state.services
        if services.settings.detection.warm:
            with suppress(OverloadedError):
                await services.detector.wait_ready()
        print(first_call(key, url), flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Refuse new requests from the moment of the signal on."""
        self._app.state.drain.begin()
        super().handle_exit(sig, frame)


def serve_here(settings: Settings, listener: socket.socket, *, greets: bool = True) -> int:
    """Serve on ``listener`` in this process until a signal; return the exit code."""
    tune_allocator()
    app = create_app(settings)
    for chatty in ("uvicorn.error", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    config = Config(
        app,
        loop="auto",
        http=protocol_with(settings.http.header_timeout_s),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=settings.http.keep_alive_s,
        timeout_graceful_shutdown=settings.http.drain_s,
    )
    server = DrainingServer(config, app, listener, greets=greets)
    failures = _watched(app)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        return OK  # uvicorn raises the signal again once everything has ended in order
    except SystemExit:
        return _explained_start(failures)
    return OK if server.started else FAILED


def _watched(app: FastAPI) -> list[Exception]:
    """Return a list that will hold the exception with which the lifespan fails.

    uvicorn would log it with its whole traceback, under which the one sentence that mends it drowns.
    """
    failures: list[Exception] = []
    original = app.router.lifespan_context

    @asynccontextmanager
    async def watched(service: FastAPI) -> AsyncIterator[Any]:
        try:
            async with original(service) as state:
                yield state
        except Exception as error:
            failures.append(error)
            raise

    app.router.lifespan_context = watched
    logging.getLogger("uvicorn.error").addFilter(lambda _record: not failures)
    return failures


def _explained_start(failures: list[Exception]) -> int:
    """Say why the service did not start; raise what is no expected failure."""
    for failure in failures:
        explanation = explained(failure)
        if explanation is None:
            raise failure
        # What is said of servers begins as the tools do whose configuration files this one reads.
        who = "Error" if isinstance(failure, NotFoundError) and "servers" in failure.details else "sluice"
        for sentence in explanation[1]:
            note(f"{who}: {sentence}")
        return explanation[0]
    return FAILED


async def tell_served(upstreams: UpstreamService) -> None:
    """Print which MCP servers stand behind this one, once each was listed or failed; nothing where there are none."""
    await upstreams.settled()
    for line in served(upstreams.served(), chosen=bool(upstreams.rules.servers)):
        note(line)


def served(servers: Sequence[tuple[str, ServerStatus]], *, chosen: bool) -> list[str]:
    """Return what is printed of the servers; ``chosen``: the command line named them."""
    if not servers:
        return []
    names = ", ".join(name for name, _ in servers)
    count = len(servers)
    first = (
        f"Serving {count} servers: {names}" if chosen else f"Serving all {count} available servers: {names}"
    )
    return [first, *(f"  {name}: {status.error}" for name, status in servers if status.error is not None)]


def first_start(key: ApiKey) -> str:
    """Return what the first start in development prints."""
    return f"""
First start: this API key is shown once, keep it. It has all roles, so it is for development only.

  {key}
"""


def first_call(key: ApiKey, url: str) -> str:
    """Return the line to paste that the first start in development prints once it is ready."""
    body = '{"context": [{"type": "text", "text": "My name is John Doe and my SSN is 123-45-6789"}]}'
    curl = (
        f"curl -s {url}/api/v1/middleware/pii_redaction/invoke -H 'Authorization: Bearer {key}' "
        f"-H 'Content-Type: application/json' -d '{body}'"
    )
    return f"""\
Try it (paste this line into another terminal):

  {curl}
"""
