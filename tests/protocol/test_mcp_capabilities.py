"""What the server says of itself, and that it says no more. Also the contract with the SDK that carries it."""

from app.core.errors import ForbiddenError
from tests.protocol.conformance_primitives import ConformancePrimitives
from tests.protocol.mcp_harness import Invoke, build
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, PREFIX, connected
from tests.protocol.requirements import covers


@covers("CM-CAPABILITY", "CAP-PLACES", "CAP-ENABLED", "MO-DISCOVER")
async def test_discovery_names_the_feature_in_both_places_and_nothing_else():
    async with connected(build(), MODERN) as wire:
        result = (await wire.call("server/discover")).result

    assert result["capabilities"] == {
        "contextMiddleware": {},
        "extensions": {"dev.sluice/contextMiddleware": {}},
    }
    assert result["supportedVersions"] == [MODERN]
    assert result["_meta"][f"{PREFIX}serverInfo"]["name"] == "sluice"


@covers("CM-CAPABILITY", "CAP-PLACES", "CAP-ENABLED")
async def test_the_handshake_names_the_feature_in_all_three_places_and_nothing_else():
    async with connected(build(), HANDSHAKE) as wire:
        for version in (HANDSHAKE, "2025-03-26"):
            result = (await wire.open(version=version)).result
            assert result["capabilities"] == {
                "contextMiddleware": {},
                "extensions": {"dev.sluice/contextMiddleware": {}},
                "experimental": {"contextMiddleware": {}},
            }
            assert result["serverInfo"]["name"] == "sluice"


async def test_primitives_are_advertised_only_where_a_provider_has_them(revision):
    async with connected(build(primitives=ConformancePrimitives()), revision) as wire:
        reply = await wire.call("server/discover") if wire.modern else await wire.open()

    shown = reply.result["capabilities"]
    assert {"tools", "prompts", "resources", "completions", "contextMiddleware"} <= set(shown)


@covers("CM-ALLOWED")
async def test_the_list_is_what_the_service_allows_this_caller(revision):
    class Picky(Invoke):
        async def list(self, caller, request=None):
            if caller.key_id.endswith("b"):
                raise ForbiddenError("This needs the role invoker.")
            return (await super().list(caller))[:1]

    async with connected(build(invoke=Picky()), revision) as wire:
        mine = await wire.call("middleware/list")
        theirs = await wire.call("middleware/list", headers={"authorization": "Bearer bob"})
        if not wire.modern:
            wire.http.headers["authorization"] = "Bearer bob"
            await wire.open()
            theirs = await wire.call("middleware/list")

    assert [found["name"] for found in mine.result["middleware"]] == ["pii_redaction"]
    assert theirs.status == 403


@covers("MO-LOGS")
async def test_logs_come_only_to_those_who_asked():
    primitives = ConformancePrimitives()
    tool = {"name": "test_tool_with_logging"}
    async with connected(build(primitives=primitives), MODERN) as wire:
        named = {"mcp-name": "test_tool_with_logging"}
        silent = await wire.call("tools/call", headers=named, **tool)
        level = {f"{PREFIX}logLevel": "info"}
        told = await wire.call("tools/call", headers=named, meta=level, **tool)
    async with connected(build(primitives=primitives), HANDSHAKE) as wire:
        quiet = await wire.call("tools/call", **tool)
        await wire.call("logging/setLevel", level="info")
        heard = await wire.call("tools/call", **tool)

    assert [len(reply.notifications) for reply in (silent, told, quiet, heard)] == [0, 3, 0, 3]


async def test_the_schema_of_a_tool_is_looked_up_and_never_listed_for_it():
    class Unlisted(ConformancePrimitives):
        async def list_tools(self, _context, _):
            raise AssertionError("the list must not run")

    async with connected(build(primitives=Unlisted()), MODERN) as wire:
        headers = {"mcp-name": "test_custom_header", "mcp-param-region": "eu"}
        arguments = {"name": "test_custom_header", "arguments": {"region": "eu"}}
        matched = await wire.call("tools/call", headers=headers, **arguments)
        headers["mcp-param-region"] = "us"
        contradicted = await wire.call("tools/call", headers=headers, **arguments)

    assert matched.status == 200
    assert (contradicted.status, contradicted.error["code"]) == (400, -32020)


def test_the_spans_of_the_sdk_are_off_unless_tracing_is_configured():
    def names(mcp):
        return [type(one).__name__ for one in mcp.transports.server.middleware]

    assert "OpenTelemetryMiddleware" not in names(build())
    assert "OpenTelemetryMiddleware" in names(build(traced=True))
