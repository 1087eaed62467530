"""The answer that keeps telling a page what is new."""

from collections.abc import Callable
from functools import partial

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.console.live import LiveReader, LiveWatch
from app.console.visits import Visit, failed
from app.core.access import Role
from app.core.errors import ServiceError
from app.edge.facts import facts_of
from app.services.access.console_sessions import form_token


class PageStream(Response):
    """Server-sent events of a watch; the page of an error where there are too many streams."""

    def __init__(self, visit: Visit, watch: LiveWatch) -> None:
        super().__init__()
        self._visit, self._watch = visit, watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and keep the seat exactly as long as that takes."""
        visit = self._visit
        facts_of(scope).ends_itself = True
        try:
            with visit.services.live.seat(self._watch) as events:
                answer = StreamingResponse(events, media_type="text/event-stream")
                await answer(scope, receive, send)
        except ServiceError as error:
            await failed(visit.request, error)(scope, receive, send)


def following(
    visit: Visit, topic: str, mark: str, roles: tuple[Role, ...], reader: Callable[[], LiveReader]
) -> PageStream:
    """Return what is new of a topic, while the session lives and its key has one of ``roles``.

    ``mark`` is that of the page; a browser that comes again names that of the newest event instead.
    """
    newest = visit.request.headers.get("last-event-id", "")
    watch = LiveWatch(
        topic=topic,
        tenant=visit.caller.tenant,
        session=form_token(visit.token),
        mark=newest if newest.isdigit() else mark,
        allowed=partial(visit.still_may, *roles),
        reader=reader,
    )
    return PageStream(visit, watch)
