"""Follow changes in the modern revision: one ``subscriptions/listen`` stream that is reopened when it ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from app.core.background import BackgroundTasks
from app.core.errors import ServiceError
from app.core.upstream import UpstreamError
from app.upstream.transport.faults import Faults
from app.upstream.transport.options import NotificationSink
from app.upstream.transport.pauses import Pauses
from app.upstream.transport.wire import Message

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_UPDATED: Final = "notifications/resources/updated"
_LISTS: Final = {
    kind: (f"{kind}ListChanged", f"notifications/{kind}/list_changed")
    for kind in ("tools", "prompts", "resources")
}

Frames = AbstractAsyncContextManager[AsyncIterator[Message]]


class Listening:
    """The one stream of a connection: it reports changes of the server's lists and of the chosen resources."""

    def __init__(
        self,
        open_stream: Callable[[Mapping[str, Any]], Frames],
        faults: Faults,
        notify: NotificationSink,
        timeout_s: float,
        tasks: BackgroundTasks,
    ) -> None:
        self._open_stream = open_stream
        self._faults = faults
        self._notify = notify
        self._timeout_s = timeout_s
        self._tasks = tasks
        self._turn = asyncio.Lock()
        self._wanted: dict[str, Any] = {}
        self._follower: asyncio.Task[None] | None = None

    async def listen(self, uris: frozenset[str], capabilities: Mapping[str, Any]) -> None:
        """Follow these resources and the lists; returns when the server has confirmed, raises where it refuses.

        The former stream ends only after that, so no change is missed in between.
        """
        wanted: dict[str, Any] = {
            member: True for kind, (member, _) in _LISTS.items() if _changes(capabilities.get(kind))
        }
        if uris:
            wanted["resourceSubscriptions"] = sorted(uris)
        async with self._turn:
            await self._changed_to(wanted)

    async def _changed_to(self, wanted: dict[str, Any]) -> None:
        if wanted == self._wanted:
            return
        former, follower = self._follower, None
        if wanted:
            confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            follower = self._tasks.start(self._follow(wanted, confirmed))
            try:
                async with self._faults.in_time(self._timeout_s):
                    await confirmed
            except BaseException:
                follower.cancel()
                raise
        self._wanted, self._follower = wanted, follower
        if former is not None:
            former.cancel()

    async def _follow(self, wanted: Mapping[str, Any], confirmed: asyncio.Future[None]) -> None:
        pauses = Pauses()
        while True:
            try:
                async with self._open_stream({"notifications": wanted}) as frames:
                    pauses.begun()
                    async for frame in frames:
                        self._hear(frame, wanted, confirmed)
                if not confirmed.done():
                    # The stream ended properly before it began: that is no refusal, so it is opened again.
                    confirmed.set_result(None)
            except (UpstreamError, ServiceError) as error:
                if not confirmed.done():
                    confirmed.set_exception(error)
                if not confirmed.cancelled() and confirmed.exception() is not None:
                    return
            await pauses.wait()

    def _hear(self, frame: Message, wanted: Mapping[str, Any], confirmed: asyncio.Future[None]) -> None:
        method, params = frame.get("method"), frame.get("params", {})
        if not isinstance(method, str) or not isinstance(params, dict) or "id" in frame:
            return
        if method == _ACKNOWLEDGED:
            if confirmed.done():
                # The server does not repeat changes: those made while no stream was open are unknown.
                self._report_all(wanted)
            else:
                confirmed.set_result(None)
            return
        meta = params.get("_meta")
        if isinstance(meta, dict) and SUBSCRIPTION_ID_META_KEY in meta:
            rest = {key: value for key, value in meta.items() if key != SUBSCRIPTION_ID_META_KEY}
            params = {key: value for key, value in params.items() if key != "_meta"}
            if rest:
                params["_meta"] = rest
        self._notify(method, params)

    def _report_all(self, wanted: Mapping[str, Any]) -> None:
        for member, method in _LISTS.values():
            if member in wanted:
                self._notify(method, {})
        for uri in wanted.get("resourceSubscriptions", ()):
            self._notify(_UPDATED, {"uri": uri})


def suspect_lists(capabilities: Mapping[str, Any], notify: NotificationSink) -> None:
    """Report every list as changed that the server may have changed while no stream was open."""
    for kind, (_, method) in _LISTS.items():
        if _changes(capabilities.get(kind)):
            notify(method, {})


def _changes(capability: object) -> bool:
    return isinstance(capability, Mapping) and capability.get("listChanged") is True
