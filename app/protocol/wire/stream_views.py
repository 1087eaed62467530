"""What the notification stream of one client shows: updates of the resources that it follows, as it spells them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from app.core.access import Caller
from app.protocol.wire.notifications import RESOURCE_UPDATED, StreamNotification, View, everything
from app.services.forward.subscriptions import OwnConnections, SubscriptionService, Watch


@asynccontextmanager
async def session_view(
    subscriptions: SubscriptionService | None,
    caller: Caller,
    session_id: str,
    group: str | None,
    own: OwnConnections | None = None,
) -> AsyncIterator[View]:
    """Give what the notification stream of a session shows that began at the endpoint of ``group``."""
    if subscriptions is None:
        yield everything
        return
    async with subscriptions.watching_session(caller, session_id, group, own) as watch:
        updates = updates_of(watch)
        yield (
            lambda notification: (
                updates(notification) if notification.method == RESOURCE_UPDATED else (notification,)
            )
        )


def updates_of(watch: Watch) -> View:
    """Return what a stream shows of updates: those of resources that it follows, as its client spells them."""

    def view(notification: StreamNotification) -> Sequence[StreamNotification]:
        if notification.source is None:
            return (notification,) if notification.params.get("uri") in watch.followed else ()
        return [
            StreamNotification(notification.method, {"uri": uri}, notification.tenant, notification.session)
            for uri in watch.shown(*notification.source, notification.own)
        ]

    return view
