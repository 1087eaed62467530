"""Servers that run as our child process: in a process group of their own, one message a line, killed when we leave."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from mcp.client.stdio import get_default_environment

from app.core.background import BackgroundTasks
from app.core.catalog.servers import MCPServerSettings
from app.core.errors import UpstreamUnavailableError
from app.upstream.transport.duplex import DuplexWire
from app.upstream.transport.event_stream import Lines, Oversize
from app.upstream.transport.faults import Faults
from app.upstream.transport.live import LiveLink
from app.upstream.transport.options import LinkOptions, ServerLink
from app.upstream.transport.roots import options_without_roots

_GRACE_S: Final = 2.0
"""How long a server may take to end by itself, and again after SIGTERM."""

_KILLED_S: Final = 10.0
"""How long the news of a killed process may take on a machine that is short of CPU."""

_POLL_S: Final = 0.01
_WATCH_S: Final = 0.5
_CHUNK: Final = 65_536


@asynccontextmanager
async def open_stdio(
    name: str, settings: MCPServerSettings, options: LinkOptions
) -> AsyncIterator[ServerLink]:
    """Run the server as a child and connect to it, in either revision."""
    faults = Faults(name)
    options = options_without_roots(options)  # the command reads our host's folders, not the client's
    async with AsyncExitStack() as stack:
        process = await _started(settings, faults)
        try:
            link = await stack.enter_async_context(_speaking(process, faults, options))
        except UpstreamUnavailableError:
            if options.revision == "handshake":
                raise
            # Some servers end when the first message is not `initialize`.
            process = await _started(settings, faults)
            plain = replace(options, revision="handshake")
            link = await stack.enter_async_context(_speaking(process, faults, plain))
        yield link


class Child:
    """The channel to a child process."""

    def __init__(self, process: Process, faults: Faults, maximum: int) -> None:
        if process.stdin is None or process.stdout is None:
            raise faults.gone()
        self._process = process
        self._faults = faults
        self._maximum = maximum
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._turn = asyncio.Lock()

    async def write(self, body: bytes) -> None:
        """Send one line."""
        try:
            async with self._turn:
                self._stdin.write(body + b"\n")
                await self._stdin.drain()
        except (OSError, RuntimeError):
            raise self._faults.gone() from None

    async def read(self) -> AsyncIterator[bytes | Oversize]:
        """Yield lines until the child closes its output."""
        lines = Lines(self._maximum)
        with suppress(OSError):
            while chunk := await self._stdout.read(_CHUNK):
                for line in lines.feed(chunk):
                    if line:
                        yield line

    async def watched(self, wire: DuplexWire) -> None:
        """Close the wire when the child is gone, even where a process of its own still keeps the output open."""
        over = False
        while not over:
            # Wait one more turn after the child ended, so that its last output is still read.
            over = self._process.returncode is not None
            await asyncio.sleep(_WATCH_S)
        wire.close()

    async def end(self) -> None:
        """Ask the child to end, then kill it and every process that it started."""
        self._stdin.close()
        if not await self._ended(_GRACE_S):
            self._signal(signal.SIGTERM)
            await self._ended(_GRACE_S)
        self._signal(signal.SIGKILL)
        await self._ended(_KILLED_S)
        # asyncio closes the pipes only at the end of the output: of output that nobody reads any more, or that a
        # process in a session of its own holds open, that end never comes. There is no public way to close them.
        self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        with suppress(OSError, RuntimeError):
            await self._stdin.wait_closed()

    async def _ended(self, within_s: float) -> bool:
        until = asyncio.get_running_loop().time() + within_s
        # Process.wait() would also wait for every process that inherited the pipes.
        while self._process.returncode is None:
            if asyncio.get_running_loop().time() >= until:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


@asynccontextmanager
async def _speaking(process: Process, faults: Faults, options: LinkOptions) -> AsyncIterator[ServerLink]:
    tasks = BackgroundTasks()
    child = Child(process, faults, options.max_result_bytes)
    wire = DuplexWire(child, faults, options.max_result_bytes)
    link = LiveLink(wire, faults, options, tasks, cancels_by_frame=True)
    wire.stray = link.stray
    tasks.start(wire.read())
    tasks.start(child.watched(wire))
    try:
        try:
            await link.agree()
        except UpstreamUnavailableError:
            if wire.closed.is_set():
                raise faults.broken("ended before it answered; try its command by hand") from None
            raise
        yield link
    finally:
        wire.close()
        await _to_the_end(child.end())
        await tasks.close()


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Finish ``work`` even where our task is cancelled meanwhile, so that no process is left behind."""
    task = asyncio.create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


async def _started(settings: MCPServerSettings, faults: Faults) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            settings.command or "",
            *settings.args,
            stdin=PIPE,
            stdout=PIPE,
            # A server's error output may contain anything, content too: discard it.
            stderr=DEVNULL,
            env={**get_default_environment(), **settings.env},
            cwd=settings.cwd,
            start_new_session=True,
            limit=_CHUNK,
        )
    except FileNotFoundError:
        raise faults.broken("cannot be started: its command or its folder does not exist") from None
    except PermissionError:
        raise faults.broken("cannot be started: its command may not be run here") from None
    except (OSError, ValueError):
        raise faults.broken("cannot be started: its command is not valid") from None
