"""Links in results open what no list has, and nothing that a list withholds."""

from typing import Any

import pytest

from app.core.catalog.primitives import Member, PrimitiveKind
from app.core.contracts.policy import Grant
from app.core.errors import InvalidArgumentsError
from app.core.upstream import Hooks
from tests.catalogs import primitive, tool
from tests.integration.forwarding_setup import Desk, desk_on


@pytest.fixture
async def desk(database: Any, tenant: str) -> Any:
    async with desk_on(database, tenant) as opened:
        yield opened


async def read(desk: Desk, uri: str, **options: Any) -> Any:
    return await desk.forwarding.read_resource(desk.asked(params={"uri": uri}, **options))


@pytest.mark.parametrize("withheld", ["file:///a", "mail://7"])
async def test_no_link_opens_what_a_list_has_and_the_caller_may_not_see(desk: Desk, withheld: str) -> None:
    async def answer(_method: str, params: Any, _hooks: Hooks) -> dict[str, Any]:
        links = [{"type": "resource_link", "uri": uri, "name": "x"} for uri in (withheld, "made://1")]
        return {"content": links, "contents": [{"uri": params.get("uri"), "text": "read"}]}

    desk.offer(
        tool("files", "read"),
        primitive(PrimitiveKind.RESOURCE, "files", "file:///a"),
        primitive(PrimitiveKind.TEMPLATE, "files", "mail://{id}"),
    )
    server = desk.server("files", answer=answer)
    await desk.allow(grants=[Grant(members=[Member(kind=PrimitiveKind.TOOL, name="files__read")])])
    await desk.call("files__read")
    server.calls.clear()

    for uri in (withheld, f"sluice://files/{withheld}"):
        with pytest.raises(InvalidArgumentsError):
            await read(desk, uri)
    assert server.calls == []
    assert (await read(desk, "made://1"))["contents"][0]["text"] == "read"
    await desk.allow()
    assert (await read(desk, withheld))["contents"][0]["text"] == "read"
