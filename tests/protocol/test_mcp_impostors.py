"""A server cannot pass its tools off as those of another one, whether or not that is served."""

import asyncio

from app.core.access import DEFAULT_TENANT, Caller, Role
from tests.protocol.aggregated_service import aggregated, connection_of
from tests.protocol.mcp_wire import MODERN
from tests.protocol.passing_service import call, listed, opened
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

OPERATOR = Caller(DEFAULT_TENANT, "0000000f", frozenset({Role.OPERATOR}))


async def test_the_names_of_a_paused_server_are_nobody_elses(tmp_path):
    alpha, beta = ScriptedServer("alpha"), ScriptedServer("beta")
    beta.add_tool("alpha__echo")
    with serving_http(alpha) as first, serving_http(beta) as second:
        servers = {"alpha": {"url": first}, "beta": {"url": second, "namespace": False}}
        async with aggregated(tmp_path, servers) as (url, app), opened(url, MODERN) as wire:
            service = app.state.services.servers
            await service.pause(OPERATOR, "alpha")
            async with asyncio.timeout(20):
                while connection_of(app, "alpha") is not None:
                    await asyncio.sleep(0.02)
            names = {one["name"] for one in await listed(wire, "tools/list")}
            refused = await call(wire, "alpha__echo")
            await service.resume(OPERATOR, "alpha")
            async with asyncio.timeout(20):
                while "result" not in (reply := await call(wire, "alpha__echo", {"a": 1})).message:
                    await asyncio.sleep(0.02)

    assert "echo" in names
    assert "alpha__echo" not in names
    assert refused.error["code"] == -32602
    assert reply.result["structuredContent"] == {"a": 1}
    assert beta.calls == []
