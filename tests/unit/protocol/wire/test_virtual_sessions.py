"""Sessions whose state is in the database: when a stream of one goes on."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.errors import NotFoundError, StoreUnavailableError
from app.protocol.wire.notifications import Notifications
from app.protocol.wire.sessions import VirtualSessions

CALLER = Caller("acme", "0000000a", frozenset({Role.INVOKER}))


@pytest.mark.parametrize(
    ("answer", "alive"),
    [(None, True), (NotFoundError("gone"), False), (StoreUnavailableError("away"), True)],
)
async def test_a_stream_goes_on_until_its_session_is_known_to_have_ended(answer: Any, alive: bool) -> None:
    async def resume(_caller: Caller, _session: str) -> None:
        if answer is not None:
            raise answer

    service: Any = SimpleNamespace(resume=resume)
    assert await VirtualSessions(service, Notifications(), 1).alive(CALLER, "s") is alive
