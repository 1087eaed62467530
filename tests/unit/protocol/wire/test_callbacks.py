"""Calls whose client can be asked have time for a person's answer; others have not."""

from types import SimpleNamespace
from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY

from app.core.access import Caller, Role
from app.core.request import RequestInfo
from app.core.upstream import Hooks
from app.protocol.wire.asking import ANSWER_S
from app.protocol.wire.callbacks import ClientCallbacks
from app.protocol.wire.exchange import SCOPE_KEY


@pytest.mark.parametrize(
    ("capabilities", "more"), [({"elicitation": {}}, ANSWER_S), ({"experimental": {}}, 0)]
)
async def test_only_a_client_that_can_be_asked_gets_a_persons_time(capabilities: Any, more: float) -> None:
    exchange = SimpleNamespace(
        info=RequestInfo("r1", None, None, 100.0),
        process_session=None,
        caller=Caller("acme", "0000000a", frozenset({Role.INVOKER})),
    )
    context: Any = SimpleNamespace(
        request=SimpleNamespace(scope={SCOPE_KEY: exchange}),
        protocol_version="2026-07-28",
        params={"_meta": {CLIENT_CAPABILITIES_META_KEY: capabilities}},
    )

    async def call(_params: Any, _hooks: Hooks) -> dict[str, Any]:
        return {"deadline": exchange.info.deadline}

    assert await ClientCallbacks().carried(context, {}, call) == {"deadline": 100.0 + more}
