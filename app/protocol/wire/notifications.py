"""Open streams of this process and what is told to them: GET of the handshake revision, ``subscriptions/listen``."""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from app.core.errors import OverloadedError
from app.services.access.sessions import session_key

LIST_CHANGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tools/list": "toolsListChanged",
        "prompts/list": "promptsListChanged",
        "resources/list": "resourcesListChanged",
        "groups/list": "groupsListChanged",
    }
)
"""The filter of ``subscriptions/listen`` that belongs to each list; the last one is ours."""

RESOURCE_UPDATED: Final = "notifications/resources/updated"
_LIST_OF: Final = MappingProxyType(
    {
        "tool": "tools",
        "prompt": "prompts",
        "resource": "resources",
        "template": "resources",
        "group": "groups",
    }
)
_BACKLOG = 256
_RETRY_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class StreamNotification:
    """One notification to clients.

    ``tenant`` None is for all of them, ``session`` (its ``session_key``) for the streams of one session alone.
    ``source`` names the server and its own URI where a resource behind this server was updated: each stream shows
    it as its client knows it. ``own`` identifies a client's own connections, on which the server said so.
    """

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    tenant: str | None = None
    session: str | None = None
    source: tuple[str, str] | None = None
    own: Hashable = None


View = Callable[[StreamNotification], Sequence[StreamNotification]]
"""What a stream shows of one notification: nothing, or it, in the form its client knows."""


def everything(notification: StreamNotification) -> Sequence[StreamNotification]:
    """Show it as it is."""
    return (notification,)


def list_changes(
    tenant: str | None, changed: Collection[str], *, session: str | None = None
) -> list[StreamNotification]:
    """Return what clients are told after ``changed``: names of ``Catalog.fingerprints``, each list once.

    A change of a mapping to concerns is told to all streams: whom it concerns is the host's to know.
    """
    lists = dict.fromkeys(
        _LIST_OF[kind]
        for kind in (name.removesuffix(" concerns") for name in sorted(changed))
        if kind in _LIST_OF
    )
    return [
        StreamNotification(f"notifications/{name}/list_changed", tenant=tenant, session=session)
        for name in lists
    ]


@dataclass(frozen=True, slots=True)
class _Listener:
    tenant: str
    owner: object
    name: object
    session: str | None
    view: View
    stream: MemoryObjectSendStream[StreamNotification]


class Notifications:
    """Hands notifications to the open streams of this process; other processes are told by their own."""

    def __init__(self, *, per_tenant: int = 512) -> None:
        self._per_tenant = per_tenant
        self._listeners: dict[object, _Listener] = {}
        self._closed = False

    def publish(self, notification: StreamNotification) -> None:
        """Queue ``notification`` on every stream it concerns; a stream that does not keep up is ended."""
        for listener in list(self._listeners.values()):
            if notification.tenant not in (None, listener.tenant) or notification.session not in (
                None,
                listener.session,
            ):
                continue
            try:
                for shown in listener.view(notification):
                    listener.stream.send_nowait(shown)
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
        name: str | None = None,
        handle: str | None = None,
        view: View = everything,
        counted: bool = True,
    ) -> Iterator[MemoryObjectReceiveStream[StreamNotification]]:
        """Open a stream; another one with the same ``name`` ends, for it is the same client's former one.

        ``name`` is the id of the session that the stream belongs to, as is ``handle``, of which there may be several.
        ``owner`` is the request that the stream answers; a stream that is not ``counted`` is bounded elsewhere.
        """
        mine = [other for other in self._listeners.values() if other.tenant == tenant]
        if self._closed or (counted and len(mine) >= self._per_tenant):
            raise OverloadedError(
                "No more notification streams can be opened now.", retry_after_s=_RETRY_AFTER_S
            )
        for other in mine:
            if name is not None and other.name == name:
                other.stream.close()
        sender, receiver = anyio.create_memory_object_stream[StreamNotification](_BACKLOG)
        token = object()
        session = name or handle
        key = session_key(session) if session is not None else None
        self._listeners[token] = _Listener(tenant, owner, name, key, view, sender)
        try:
            yield receiver
        finally:
            del self._listeners[token]
            sender.close()
            receiver.close()
