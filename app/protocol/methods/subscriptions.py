"""Who asked for updates: ``subscriptions/listen``, and ``resources/subscribe`` of the handshake revision."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    Notification,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from app.core.access import Caller
from app.core.errors import InvalidArgumentsError, NotFoundError
from app.protocol.wire.callbacks import capabilities_of
from app.protocol.wire.exchange import Context, Exchange, exchange_of
from app.protocol.wire.notifications import (
    LIST_CHANGED,
    RESOURCE_UPDATED,
    Notifications,
    StreamNotification,
    View,
)
from app.protocol.wire.primitives import Method
from app.protocol.wire.state import state_of
from app.protocol.wire.stream_views import updates_of
from app.services.forward.client_connections import ClientConnections, callbacks_of
from app.services.forward.subscriptions import OwnConnections, SubscriptionService

_MOST_URIS: Final = 256


@dataclass(frozen=True, slots=True)
class Listen:
    """Answers ``subscriptions/listen``; ``served`` are the methods that the server has."""

    notifications: Notifications
    served: frozenset[str]
    subscriptions: SubscriptionService | None = None
    dedicated: ClientConnections | None = None

    async def __call__(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Acknowledge what will be sent, then send it until the client leaves or the process stops."""
        honored = self._honored(params.notifications.model_dump(by_alias=True, exclude_none=True))
        methods = frozenset(_method_of(key) for key in honored if key != "resourceSubscriptions")
        meta = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        exchange = exchange_of(context)
        caller = exchange.caller
        handle = (await state_of(context)).handle

        async def tell(method: str, shown: Mapping[str, Any]) -> None:
            notification = Notification[dict[str, Any], str](method=method, params={**shown, "_meta": meta})
            await context.session.send_notification(
                notification,  # type: ignore[arg-type]  # ours may have names that the SDK does not list
                related_request_id=context.request_id,
            )

        capabilities = callbacks_of(capabilities_of(context))
        own = None
        if self.dedicated is not None and capabilities:
            own = self.dedicated.of_stream(caller.tenant, caller.key_id, capabilities)
        async with self._updates(exchange, honored.get("resourceSubscriptions", ()), own) as updates:

            def view(notification: StreamNotification) -> Sequence[StreamNotification]:
                if notification.method == RESOURCE_UPDATED:
                    return updates(notification)
                return (notification,) if notification.method in methods else ()

            with self.notifications.listen(caller.tenant, owner=exchange, handle=handle, view=view) as stream:
                await tell("notifications/subscriptions/acknowledged", {"notifications": honored})
                async for notification in stream:
                    await tell(notification.method, notification.params)
        return SubscriptionsListenResult(_meta=meta)

    @asynccontextmanager
    async def _updates(
        self, exchange: Exchange, uris: Iterable[str], own: OwnConnections | None
    ) -> AsyncIterator[View]:
        wanted = frozenset(uris)
        if self.subscriptions is None or not wanted:
            yield lambda notification: (notification,) if notification.params.get("uri") in wanted else ()
            return
        async with self.subscriptions.watching(exchange.caller, wanted, exchange.group, own) as watch:
            yield updates_of(watch)

    def _honored(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        kinds = {key for method, key in LIST_CHANGED.items() if method in self.served}
        honored: dict[str, Any] = {key: True for key in asked if key in kinds and asked[key] is True}
        if asked.get("resourceSubscriptions") and "resources/read" in self.served:
            if len(asked["resourceSubscriptions"]) > _MOST_URIS:
                raise InvalidArgumentsError(
                    f"One stream follows at most {_MOST_URIS} resources; open another one for the rest.",
                    details={"pointer": "/notifications/resourceSubscriptions"},
                )
            honored["resourceSubscriptions"] = asked["resourceSubscriptions"]
        return honored


@dataclass(frozen=True, slots=True)
class SubscriptionMethods:
    """Answers ``resources/subscribe`` and ``resources/unsubscribe``, which belong to a session."""

    subscriptions: SubscriptionService

    def methods(self) -> Mapping[str, Method]:
        """Return the methods by name."""
        return {
            "resources/subscribe": Method(SubscribeRequestParams, self._subscribe),
            "resources/unsubscribe": Method(UnsubscribeRequestParams, self._unsubscribe),
        }

    async def _subscribe(self, context: Context, params: SubscribeRequestParams) -> dict[str, Any]:
        caller, session_id = _session_of(context)
        try:
            exchange = exchange_of(context)
            await self.subscriptions.subscribe(
                caller, session_id, str(params.uri), exchange.group, exchange.info.features
            )
        except NotFoundError as error:
            raise InvalidArgumentsError(error.message, details=error.details) from None
        return {}

    async def _unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> dict[str, Any]:
        caller, session_id = _session_of(context)
        await self.subscriptions.unsubscribe(caller, session_id, str(params.uri))
        return {}


def _session_of(context: Context) -> tuple[Caller, str]:
    exchange = exchange_of(context)
    if exchange.session_id is None:
        raise InvalidArgumentsError("Subscriptions belong to a session; begin one with initialize.")
    return exchange.caller, exchange.session_id


def _method_of(key: str) -> str:
    return f"notifications/{key.removesuffix('ListChanged')}/list_changed"
