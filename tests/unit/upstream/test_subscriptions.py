"""Resources that somebody follows: counted, told to the server once, renewed after a loss."""

import pytest

from app.core.upstream import UpstreamError
from tests.unit.upstream.links import MemoryServer, connected, until


async def test_subscriptions_are_counted_and_renewed_after_a_loss():
    server = MemoryServer(resources__subscribe={}, resources__unsubscribe={})
    async with connected(server) as connection:
        for uri in ("r://1", "r://1", "r://2"):
            await connection.subscribe(uri)
        assert server.asked("resources/subscribe") == 2
        await connection.unsubscribe("r://1")
        await connection.unsubscribe("r://unknown")
        assert server.asked("resources/unsubscribe") == 0
        server.requests.clear()
        server.close(up=True)
        await until(lambda: server.asked("resources/subscribe") == 2)
        await connection.unsubscribe("r://1")
        assert server.requests[-1] == ("resources/unsubscribe", {"uri": "r://1"})


async def test_a_subscription_that_the_server_refuses_counts_for_nothing():
    server = MemoryServer(resources__subscribe=UpstreamError(-32602, "no"))
    async with connected(server) as connection:
        with pytest.raises(UpstreamError):
            await connection.subscribe("r://1")
        await connection.unsubscribe("r://1")
        assert server.asked("resources/unsubscribe") == 0


async def test_a_modern_server_is_told_the_whole_set():
    server = MemoryServer(modern=True)
    async with connected(server) as connection:
        await connection.subscribe("r://1")
        await connection.subscribe("r://2")
        await connection.unsubscribe("r://1")
        assert [params for method, params in server.requests if method == "listen"] == [
            ["r://1"],
            ["r://1", "r://2"],
            ["r://2"],
        ]
        server.close(up=True)
        await until(lambda: server.links and server.links[0].listening == ["r://2"])
