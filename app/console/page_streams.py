"""The answer that keeps telling a page what is new."""

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.console.live import LiveWatch
from app.console.visits import Visit, failed
from app.core.errors import ServiceError


class PageStream(Response):
    """Server-sent events of a watch; the page of an error where there are too many streams."""

    def __init__(self, visit: Visit, watch: LiveWatch) -> None:
        super().__init__()
        self._visit, self._watch = visit, watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and keep the seat exactly as long as that takes."""
        visit = self._visit
        try:
            with visit.services.live.seat(self._watch) as events:
                answer = StreamingResponse(events, media_type="text/event-stream")
                await answer(scope, receive, send)
        except ServiceError as error:
            await failed(visit.request, error)(scope, receive, send)
