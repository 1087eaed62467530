"""Open streams of this process and what is told to them: GET of the handshake revision, ``subscriptions/listen``."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    Notification,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from app.core.errors import OverloadedError
from app.protocol.exchange import Context, exchange_of

LIST_CHANGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tools/list": "toolsListChanged",
        "prompts/list": "promptsListChanged",
        "resources/list": "resourcesListChanged",
    }
)
"""The filter of ``subscriptions/listen`` that belongs to each list."""

RESOURCE_UPDATED: Final = "notifications/resources/updated"
_BACKLOG = 256
_RETRY_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class Told:
    """One notification to clients; ``tenant`` None is for all of them."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class _Listener:
    tenant: str
    owner: object
    name: object
    accepts: Callable[[Told], bool]
    stream: MemoryObjectSendStream[Told]


class Notifications:
    """Hands notifications to the open streams of this process; other processes are told by their own."""

    def __init__(self, *, per_tenant: int = 512) -> None:
        self._per_tenant = per_tenant
        self._listeners: dict[object, _Listener] = {}
        self._closed = False

    def publish(self, told: Told) -> None:
        """Queue ``told`` on every stream it concerns; a stream that does not keep up is ended."""
        for listener in list(self._listeners.values()):
            if told.tenant not in (None, listener.tenant) or not listener.accepts(told):
                continue
            try:
                listener.stream.send_nowait(told)
            except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
                listener.stream.close()

    def close(self) -> None:
        """End all streams in good order and refuse new ones: the process is about to stop."""
        self._closed = True
        for listener in list(self._listeners.values()):
            listener.stream.close()

    def end(self, *, owner: object = None, name: object = None) -> None:
        """End the streams of one request, or of one name, in good order."""
        for listener in list(self._listeners.values()):
            if (owner is not None and listener.owner is owner) or (
                name is not None and listener.name == name
            ):
                listener.stream.close()

    @property
    def open_streams(self) -> int:
        """Return how many streams are open now."""
        return len(self._listeners)

    @contextmanager
    def listen(
        self,
        tenant: str,
        *,
        owner: object = None,
        name: object = None,
        accepts: Callable[[Told], bool] = lambda _: True,
    ) -> Iterator[MemoryObjectReceiveStream[Told]]:
        """Open a stream; another one with the same ``name`` ends, for it is the same client's former one.

        ``owner`` is the request that the stream answers.
        """
        mine = [other for other in self._listeners.values() if other.tenant == tenant]
        if self._closed or len(mine) >= self._per_tenant:
            raise OverloadedError(
                "No more notification streams can be opened now.", retry_after_s=_RETRY_AFTER_S
            )
        for other in mine:
            if name is not None and other.name == name:
                other.stream.close()
        sender, receiver = anyio.create_memory_object_stream[Told](_BACKLOG)
        token = object()
        self._listeners[token] = _Listener(tenant, owner, name, accepts, sender)
        try:
            yield receiver
        finally:
            del self._listeners[token]
            sender.close()
            receiver.close()


@dataclass(frozen=True, slots=True)
class Listen:
    """Answers ``subscriptions/listen``; ``served`` are the methods that the server has."""

    notifications: Notifications
    served: frozenset[str]

    async def __call__(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Acknowledge what will be sent, then send it until the client leaves or the process stops."""
        honored = self._honored(params.notifications)
        methods = frozenset(_method_of(key) for key in honored if key != "resourceSubscriptions")
        uris = frozenset(honored.get("resourceSubscriptions", ()))
        meta = {SUBSCRIPTION_ID_META_KEY: context.request_id}

        def accepts(told: Told) -> bool:
            return told.method in methods or (
                told.method == RESOURCE_UPDATED and told.params.get("uri") in uris
            )

        exchange = exchange_of(context)
        with self.notifications.listen(exchange.caller.tenant, owner=exchange, accepts=accepts) as stream:
            acknowledged = SubscriptionsAcknowledgedNotificationParams(
                notifications=SubscriptionFilter.model_validate(honored), _meta=meta
            )
            await context.session.send_notification(
                SubscriptionsAcknowledgedNotification(params=acknowledged),
                related_request_id=context.request_id,
            )
            async for told in stream:
                notification = Notification[dict[str, Any], str](
                    method=told.method, params={**told.params, "_meta": meta}
                )
                await context.session.send_notification(
                    notification,  # type: ignore[arg-type]  # ours may have names that the SDK does not list
                    related_request_id=context.request_id,
                )
        return SubscriptionsListenResult(_meta=meta)

    def _honored(self, wanted: SubscriptionFilter) -> dict[str, Any]:
        asked = wanted.model_dump(by_alias=True, exclude_none=True)
        kinds = {key for method, key in LIST_CHANGED.items() if method in self.served}
        honored: dict[str, Any] = {key: True for key in kinds if asked.get(key) is True}
        if asked.get("resourceSubscriptions") and "resources/read" in self.served:
            honored["resourceSubscriptions"] = asked["resourceSubscriptions"]
        return honored


def _method_of(key: str) -> str:
    return f"notifications/{key.removesuffix('ListChanged')}/list_changed"
