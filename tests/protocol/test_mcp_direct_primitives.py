"""Methods of primitives: the short way answers exactly as the SDK's transports do, whatever comes in."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.catalog.primitives import PrimitiveKind
from app.core.upstream import UpstreamError
from app.protocol.methods.aggregated import AggregatedPrimitives
from app.protocol.methods.shaping import Shaping
from app.protocol.wire.callbacks import ClientCallbacks
from app.services.catalog.concerns import ConcernService
from app.services.catalog.descriptions import DescriptionService
from app.services.catalog.disclosure import DisclosureService
from app.services.catalog.group_trees import GroupTrees
from app.services.catalog.groups import GroupService
from app.services.catalog.tool_lists import ToolListService
from app.store.database import Database
from tests.catalogs import primitive, tool
from tests.factories import PATIENT, with_schema
from tests.fakes import FakeToolRanker
from tests.integration.forwarding_setup import Desk, desk_on
from tests.protocol.mcp_harness import ALICE, build
from tests.protocol.mcp_wire import HANDSHAKE, MODERN
from tests.protocol.test_mcp_direct import cases, compared, differing

ODD = {"text": "Grüße 😀\u2028", "n": 10**29, "f": 1.0, "z": None}
CALL: dict[str, Any] = {"method": "tools/call", "params": {"name": "a__echo", "arguments": ODD}}
TOOLS: dict[str, Any] = {"method": "tools/list", "params": {}}
GET: dict[str, Any] = {"method": "prompts/get", "params": {"name": "a__greet", "arguments": {"who": "x"}}}
READ: dict[str, Any] = {"method": "resources/read", "params": {"uri": "memo://1"}}
COMPLETE: dict[str, Any] = {
    "method": "completion/complete",
    "params": {"ref": {"type": "ref/prompt", "name": "a__greet"}, "argument": {"name": "who", "value": ""}},
}


def odd_params(message: dict[str, Any], *changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**message, "params": {**message["params"], **change}} for change in changes]


MESSAGES = [
    TOOLS,
    CALL,
    GET,
    READ,
    COMPLETE,
    *({"method": f"{kind}/list", "params": {}} for kind in ("prompts", "resources", "resources/templates")),
    *odd_params(TOOLS, {"cursor": None}, {"cursor": 7}, {"cursor": "garbage"}, {"unheardOf": 1}),
    *odd_params(
        CALL,
        {"name": 7},
        {"name": ""},
        {"name": "nothing"},
        {"name": "a__counted"},
        {"name": "a__counted", "arguments": {"count": 5}},
        {"name": "a__fails"},
        {"name": "a__odd"},
        {"name": "b__down"},
        {"arguments": None},
        {"arguments": []},
        {"arguments": "x"},
        {"arguments": {"a": {"b": [{}]}}},
        {"inputResponses": {}},
        {"requestState": 7},
        {"task": {"ttl": 1}},
    ),
    *odd_params(GET, {"name": "greet"}, {"arguments": {"who": 7}}, {"arguments": []}, {"arguments": None}),
    *odd_params(READ, {"uri": ""}, {"uri": "memo://2"}, {"uri": 7}, {"uri": None}, {"uri": "nothing://"}),
    *odd_params(
        COMPLETE, {"ref": {"type": "ref/other"}}, {"ref": {}}, {"argument": {}}, {"context": {"a": 1}}
    ),
    {"method": "tools/call"},
    {"method": "resources/read"},
    {"method": "completion/complete", "params": None},
    {**CALL, "id": 2**70},
    {**CALL, "id": 1.5},
    {**CALL, "params": []},
    {**TOOLS, "id": ""},
    {**TOOLS, "more": "members"},
]


async def server_answers(_method: str, params: Any, _hooks: Any) -> dict[str, Any]:
    if params.get("name") == "fails":
        raise UpstreamError(-32002, "No.", {"a": [1]})
    if params.get("name") == "odd":
        return {
            "content": [{"type": "hologram", "n": 10**29}],
            "resultType": "later",
            "ttlMs": 5,
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "other"}},
            "unheard": None,
        }
    return {"content": [{"type": "text", "text": "x", "new": 1}], "structuredContent": params}


@pytest.fixture
async def fresh_database(tmp_path):
    opened = Database(with_schema(f"sqlite:///{tmp_path}/direct.db"), patience=PATIENT)
    yield opened
    await opened.close()


@contextlib.asynccontextmanager
async def primitives_on(database: Database) -> AsyncIterator[tuple[Desk, AggregatedPrimitives]]:
    async with desk_on(database, ALICE.tenant) as desk:
        header = {"type": "integer", "x-mcp-header": "Count"}
        desk.offer(
            tool("a", "echo", inputSchema={"type": "object", "properties": {"text": {"type": "string"}}}),
            tool("a", "counted", inputSchema={"type": "object", "properties": {"count": header}}),
            *(tool("a", name) for name in ("fails", "odd")),
            tool("b", "down"),
            primitive(PrimitiveKind.PROMPT, "a", "greet"),
            primitive(PrimitiveKind.RESOURCE, "a", "memo://1"),
            primitive(PrimitiveKind.TEMPLATE, "a", "memo://{n}"),
        )
        desk.server("a", answer=server_answers)
        yield desk, primitives_of(desk, page_size=3)


def primitives_of(desk: Desk, page_size: int = 250) -> AggregatedPrimitives:
    """Return the methods over what ``desk`` has."""
    database, audit = desk.replica.database, desk.replica.audit
    shaping = Shaping(
        desk.listing,
        GroupService(database, audit, GroupTrees(database)),
        ConcernService(database, audit, desk.policies),
        DisclosureService(database, audit, DescriptionService(database, audit)),
        ToolListService(FakeToolRanker(), desk.listing),
    )
    return AggregatedPrimitives(
        desk.listing, desk.forwarding, ClientCallbacks(), shaping, page_size=page_size
    )


@pytest.mark.parametrize("subject", [CALL, TOOLS])
@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
async def test_both_ways_give_the_same_answer_to_every_odd_request(fresh_database, revision, subject):
    async with primitives_on(fresh_database) as (desk, primitives):
        await desk.allow(limits={"requests_per_second": 1e6, "burst": 10**6})
        short, long = (build(primitives=primitives, direct=direct) for direct in (True, False))
        async with compared(revision, short, long) as (one, two):
            mine, theirs = cases(one, MESSAGES, subject), cases(two, MESSAGES, subject)
            assert await differing(one, two, mine, theirs) == []

    assert len(mine) > 90


@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
async def test_both_ways_call_the_server_once_for_each_good_request(fresh_database, revision):
    async with primitives_on(fresh_database) as (desk, primitives):
        calls = desk.servers[ALICE.tenant, "a"].calls
        reached = []
        for direct in (True, False):
            async with compared(revision, build(primitives=primitives, direct=direct), build()) as (one, _):
                for body, headers in cases(one, [CALL, GET, READ], CALL)[:3]:
                    await one.post(body, headers)
            reached.append([method for method, _ in calls])
            calls.clear()

    assert reached == [["tools/call", "prompts/get", "resources/read"]] * 2
