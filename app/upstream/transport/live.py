"""One live connection over any transport: its requests, the messages that come while they run, and how they end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from itertools import count
from typing import Any, Final

from mcp_types import UNSUPPORTED_PROTOCOL_VERSION

from app.core.background import BackgroundTasks
from app.core.errors import ServiceError, UpstreamUnavailableError
from app.core.offload import INLINE_CHARACTERS, off_loop
from app.core.strictjson import dumps
from app.core.upstream import NO_HOOKS, Hooks, UpstreamError
from app.upstream.transport.callbacks import ServerQuestions
from app.upstream.transport.envelope import Envelope
from app.upstream.transport.faults import Faults
from app.upstream.transport.listening import Listening, suspect_lists
from app.upstream.transport.negotiation import DISCOVER, INITIALIZE, Agreement, Negotiation
from app.upstream.transport.options import LinkOptions
from app.upstream.transport.roots import (
    ROOTS_CHANGED,
    check_asks_no_roots,
    check_tells_no_roots,
    hooks_without_roots,
    options_without_roots,
)
from app.upstream.transport.wire import COURTESY_S, LOG, PROGRESS, Message, Wire, is_answer, result_of

log = logging.getLogger("sluice.upstream")

FIRST_STREAM_S: Final = 0.5
"""How long a new connection waits for its stream, so that no change is missed between listing and following."""

LISTING: Final = frozenset(
    {
        "ping",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "server/discover",
        "tools/list",
    }
)
"""Requests that show what a server offers, and no more."""

_CANCELLED: Final = "notifications/cancelled"
_ONE_OWNER: Final = 1


class LiveLink:
    """A Link over a ``Wire``. ``cancels_by_frame``: a modern request, too, is cancelled by a notification."""

    def __init__(
        self,
        wire: Wire,
        faults: Faults,
        options: LinkOptions,
        tasks: BackgroundTasks,
        *,
        cancels_by_frame: bool,
    ) -> None:
        self._wire = wire
        self._faults = faults
        self._options = options = options if options.roots else options_without_roots(options)
        self._tasks = tasks
        self._cancels_by_frame = cancels_by_frame
        self._numbers = count(1)
        self._owners: set[tuple[Hashable, bool]] = set()
        self._envelope = Envelope()
        self._agreement = Agreement("")
        self._callbacks = ServerQuestions(self._reply, tasks)
        self._listening = Listening(
            self._open_listen_stream, faults, self.notify_owner, options.connect_timeout_s, tasks
        )

    @property
    def protocol_version(self) -> str:
        """The revision agreed on."""
        return self._agreement.version

    @property
    def modern(self) -> bool:
        """Whether that revision knows no handshake and no session."""
        return self._envelope.modern

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server declares that it can do."""
        return self._agreement.capabilities

    @property
    def server_info(self) -> Mapping[str, Any]:
        """Name and version in the server's own words."""
        return self._agreement.server_info

    @property
    def instructions(self) -> str | None:
        """The server's advice to models."""
        return self._agreement.instructions

    async def agree(self) -> None:
        """Agree on a revision that both sides know, and notify a handshake server that we are ready."""
        negotiation = Negotiation(self._probe, self._wire.closed.is_set, self._faults, self._options)
        async with self._faults.in_time(self._options.connect_timeout_s):
            self._agreement = await negotiation.agreed()
            self._envelope = Envelope(self._agreement.version, self._options.schema_of)
            self._wire.agreed(self._agreement.version, modern=self.modern)
            if not self.modern:
                await self.notify("notifications/initialized")
        if self.modern:
            # Follow changes before the first listing, but do not wait long for a slow server.
            listening = self._tasks.start(self._listen_to_lists())
            _, late = await asyncio.wait({listening}, timeout=FIRST_STREAM_S)
            if late:
                listening.add_done_callback(self._suspect_lists)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        hooks: Hooks = NO_HOOKS,
        timeout_s: float,
    ) -> dict[str, Any]:
        """Return the server's result as it came; see ``Link``."""
        if self._options.listing_only and method not in LISTING:
            raise self._faults.of_users()
        if self._options.roots:
            return await self._exchange(self._envelope, method, params or {}, hooks, timeout_s)
        check_tells_no_roots(params or {})
        hooks = hooks_without_roots(hooks)
        result = await self._exchange(self._envelope, method, params or {}, hooks, timeout_s)
        check_asks_no_roots(result)
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        if (self.modern and not self._cancels_by_frame) or (
            method == ROOTS_CHANGED and not self._options.roots
        ):
            return
        message: Message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        await self._send(message)

    async def listen(self, uris: Collection[str]) -> None:
        """Follow updates of these resources and no others."""
        if uris and self._options.listing_only:
            raise self._faults.of_users()
        if self.modern:
            await self._listening.listen(frozenset(uris), self.capabilities)

    async def wait_closed(self) -> None:
        """Return when the connection can no longer be used."""
        await self._wire.closed.wait()

    def stray(self, message: Message) -> None:
        """Handle a message that belongs to no request of ours."""
        method, params = message.get("method"), message.get("params", {})
        if "id" in message:
            if "method" in message:
                self._callbacks.accept(message, self._options.on_request)
        elif method == _CANCELLED and isinstance(params, dict):
            self._callbacks.cancel(params.get("requestId"))
        elif isinstance(method, str) and isinstance(params, dict):
            self.notify_owner(method, params)

    def notify_owner(self, method: str, params: Mapping[str, Any]) -> None:
        """Hand a notification to the owner of the connection; an error of the owner does not end the connection."""
        try:
            self._options.on_notification(method, params)
        except Exception as error:  # noqa: BLE001 - a failing listener must not stop the reader for all
            # Messages of exceptions may hold content: only the kind is logged.
            log.error("a listener of a connection failed: %s", type(error).__name__)  # noqa: TRY400

    async def _listen_to_lists(self) -> None:
        with suppress(UpstreamError, ServiceError):
            # A server that refuses this announces no changes.
            await self._listening.listen(frozenset(), self.capabilities)

    def _suspect_lists(self, listening: asyncio.Task[None]) -> None:
        """Report the lists as changed: they were read before the stream opened that reports their changes."""
        if not listening.cancelled():
            suspect_lists(self.capabilities, self.notify_owner)

    async def _probe(
        self, method: str, params: Mapping[str, Any], version: str | None, timeout_s: float
    ) -> dict[str, Any]:
        hooks = Hooks(capabilities=self._options.capabilities)
        return await self._exchange(Envelope(version), method, params, hooks, timeout_s)

    async def _exchange(
        self, envelope: Envelope, method: str, params: Mapping[str, Any], hooks: Hooks, timeout_s: float
    ) -> dict[str, Any]:
        if self._wire.closed.is_set():
            raise self._faults.gone()
        number = next(self._numbers)
        wrapped = envelope.wrapped(number, params, hooks)
        headers = envelope.headers(method, wrapped)
        body = await _dumped({"jsonrpc": "2.0", "id": number, "method": method, "params": wrapped})
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._read_answer(number, body, headers, hooks)
        except UpstreamUnavailableError:
            raise
        except BaseException as error:
            # Cancelled, late, too large, or a hook failed: let the server stop working on it.
            if method not in {INITIALIZE, DISCOVER}:
                self._abandon(number, modern=envelope.modern)
            if isinstance(error, TimeoutError):
                raise self._faults.late(timeout_s) from None
            raise
        try:
            return result_of(answer, self._faults)
        except UpstreamError as error:
            if error.code == UNSUPPORTED_PROTOCOL_VERSION and self._agreement.version:
                # Another server answers at this address now: the agreement no longer applies.
                self._wire.closed.set()
            raise

    async def _read_answer(
        self, number: int, body: bytes, headers: Mapping[str, str], hooks: Hooks
    ) -> Message:
        if hooks.notify is not None and len(self._owners) < _ONE_OWNER + 1:
            self._owners.add((hooks.owner, hooks.guard is not None))
        with self._questions(hooks) as accept:
            async with aclosing(self._wire.messages(number, body, headers)) as messages:
                async for message in messages:
                    if is_answer(message, number):
                        return message
                    if "id" in message:
                        accept(message)
                    else:
                        await self._deliver(message, number, hooks)
        raise self._faults.broken()

    @contextmanager
    def _questions(self, hooks: Hooks) -> Iterator[Callable[[Message], None]]:
        """Cancel, at the end of a request, the questions that came with it and are still open."""
        tasks: list[asyncio.Task[None]] = []

        def accept(message: Message) -> None:
            if "method" in message and not self.modern:
                task = self._callbacks.accept(message, hooks.ask or self._options.on_request)
                if task is not None:
                    tasks.append(task)

        try:
            yield accept
        finally:
            for task in tasks:
                task.cancel()

    async def _deliver(self, message: Message, number: int, hooks: Hooks) -> None:
        """Pass on a notification that came with a request."""
        method, params = message.get("method"), message.get("params", {})
        if method == PROGRESS:
            if hooks.notify and hooks.progress_token is not None and isinstance(params, dict):
                # Compare as text: some servers return the number as a string.
                if str(params.get("progressToken")) != str(number):
                    return
                await hooks.notify(PROGRESS, {**params, "progressToken": hooks.progress_token})
        elif method == LOG:
            # On a shared channel a log message names no request: it may concern another client's call.
            mine = not self._cancels_by_frame or len(self._owners) == _ONE_OWNER
            if hooks.notify and mine and isinstance(params, dict):
                await hooks.notify(LOG, params)
        else:
            self.stray(message)

    def _abandon(self, number: int, *, modern: bool) -> None:
        """Notify the server that nobody waits any more; over HTTP a modern server notices the closed stream."""
        if self._wire.closed.is_set() or (modern and not self._cancels_by_frame):
            return
        params = {"requestId": number, "reason": "The client no longer waits."}
        self._tasks.start(self._courtesy({"jsonrpc": "2.0", "method": _CANCELLED, "params": params}))

    async def _courtesy(self, message: Message) -> None:
        try:
            async with asyncio.timeout(COURTESY_S):
                await self._send(message)
        except (TimeoutError, ServiceError):
            return

    async def _reply(self, message: Message) -> None:
        await self._courtesy(message)

    async def _send(self, message: Message) -> None:
        await self._wire.send(await _dumped(message), self._envelope.headers(str(message.get("method")), {}))

    @asynccontextmanager
    async def _open_listen_stream(self, params: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[Message]]:
        """Open a ``subscriptions/listen`` request and yield the messages of its stream."""
        if self._wire.closed.is_set():
            raise self._faults.gone()
        number = next(self._numbers)
        wrapped = self._envelope.wrapped(number, params, NO_HOOKS)
        headers = self._envelope.headers("subscriptions/listen", wrapped)
        message = {"jsonrpc": "2.0", "id": number, "method": "subscriptions/listen", "params": wrapped}
        ended = False

        async def frames() -> AsyncIterator[Message]:
            nonlocal ended
            async for frame in source:
                if is_answer(frame, number):
                    ended = True
                    result_of(frame, self._faults)
                    return
                yield frame

        try:
            async with aclosing(
                self._wire.messages(number, dumps(message), headers, streaming=True)
            ) as source:
                yield frames()
        finally:
            if not ended:
                self._abandon(number, modern=True)


async def _dumped(message: Message) -> bytes:
    return await off_loop(_weight(message), dumps, message)


def _weight(value: Any) -> int:
    """Return roughly how many characters ``value`` has; stop counting once it is too many to handle inline."""
    weight = 0
    pending = [value]
    while pending and weight <= INLINE_CHARACTERS:
        node = pending.pop()
        if type(node) is str:
            weight += len(node)
        elif isinstance(node, dict | Mapping):  # the first of the two is far quicker to tell
            weight += 8 * len(node)
            pending.extend(node.values())
        elif isinstance(node, list | tuple):
            weight += 8 * len(node)
            pending.extend(node)
    return weight
