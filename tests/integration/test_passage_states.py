"""Passages hold for states that clients carry, for members that machines read, and for a URI in any spelling."""

from typing import Any

import pytest

from app.core.catalog.primitives import PrimitiveKind
from app.core.errors import InvalidArgumentsError
from app.core.upstream import Hooks
from app.services.forward.tool_hooks import HookScope
from tests.catalogs import primitive, tool
from tests.integration.forwarding_setup import Desk, desk_on
from tests.integration.test_passages import PERSON, REDACTS, passage, redact


@pytest.fixture
async def desk(database: Any, tenant: str) -> Any:
    async with desk_on(database, tenant) as opened:
        opened.offer(tool("crm", "find"), tool("crm", "count"))
        yield opened


async def test_the_state_that_a_server_wants_back_is_read_by_nobody_else(desk: Desk) -> None:
    given: list[Any] = []

    async def answer(_method: str, params: Any, _hooks: Hooks) -> dict[str, Any]:
        given.append(params.get("requestState"))
        state = str(params["arguments"])
        return {"resultType": "input_required", "inputRequests": {}, "requestState": state}

    desk.server("crm", answer=answer)
    await desk.allow(passages=[passage(names=["crm__*"], restore_arguments=True)])
    handle = await redact(desk, PERSON, "s")
    scope = HookScope("s", from_caller=True)
    first = await desk.call("crm__find", {"who": handle}, scope=scope)
    again = {"requestState": first["requestState"]}
    await desk.call("crm__find", {"who": handle}, scope=scope, more=again)

    assert PERSON not in str(first)
    assert PERSON in given[1]
    for name, caller in (("crm__find", desk.caller(key="0000000b")), ("crm__count", desk.caller())):
        with pytest.raises(InvalidArgumentsError) as refused:
            await desk.call(name, {}, caller=caller, more=again)
        assert refused.value.details == {"pointer": "/requestState"}
    with pytest.raises(InvalidArgumentsError):
        await desk.call("crm__find", {}, more={"requestState": "dev.sluice/sealed.é"})
    await desk.call("crm__find", {}, more={"requestState": "begun before the passage"})
    assert given[2:] == ["begun before the passage"]


async def test_members_for_machines_pass_unseen_only_with_what_they_are_for(desk: Desk) -> None:
    async def answer(*_: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": "x"}]
        return {"content": content, "isError": PERSON, "ttlMs": PERSON, "cacheScope": PERSON}

    desk.server("crm", answer=answer)
    await desk.allow(passages=[passage()])
    made = await desk.call("crm__find", {}, scope=HookScope("s", from_caller=True))

    assert made["isError"] == made["ttlMs"] == made["cacheScope"] == "[PERSON_1]"


@pytest.mark.parametrize("named", ["crm://secret/*", "sluice://crm/crm://secret/*"])
@pytest.mark.parametrize("uri", ["crm://secret/1", "crm://%73ecret/1", "sluice://crm/crm://secret/1"])
async def test_a_passage_that_names_a_uri_holds_however_that_is_spelt(
    desk: Desk, uri: str, named: str
) -> None:
    desk.offer(primitive(PrimitiveKind.TEMPLATE, "crm", "crm://{+path}"))
    await desk.allow(passages=[{"kinds": ["resource"], "names": [named], "results": [REDACTS]}])

    async def answer(_method: str, params: Any, _hooks: Hooks) -> dict[str, Any]:
        return {"contents": [{"uri": params["uri"], "text": PERSON}]}

    desk.server("crm", answer=answer)
    read = await desk.forwarding.read_resource(
        desk.asked(params={"uri": uri}, scope=HookScope("s", from_caller=True))
    )
    other = await desk.forwarding.read_resource(desk.asked(params={"uri": "crm://open/1"}))

    assert read["contents"][0] == {"uri": uri, "text": "[PERSON_1]"}
    assert other["contents"][0]["text"] == PERSON
