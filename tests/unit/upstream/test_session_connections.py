"""Connections that belong to one client: their capabilities, their number, their end."""

import asyncio

import pytest

from app.core.errors import OverloadedError
from app.core.upstream import UpstreamError
from app.upstream.session_connections import LinkBudget
from tests.unit.upstream.links import MemoryServer, connected


async def test_a_client_gets_a_connection_of_its_own_in_the_handshake_revision():
    server = MemoryServer(modern=True)
    heard = []
    async with connected(server) as connection:
        assert connection.modern
        async with connection.dedicated(
            {"sampling": {}}, on_notification=lambda *one: heard.append(one)
        ) as link:
            assert not link.modern
            assert link.options.capabilities == {"sampling": {}}
            assert len(server.links) == 2
            link.options.on_notification("notifications/message", {})
        assert len(server.links) == 1
        assert heard == [("notifications/message", {})]


async def test_a_server_without_handshake_gets_the_revision_it_speaks():
    server = MemoryServer(modern=True)
    opened = []

    def opener(name, settings, given):
        opened.append(given.revision)
        if given.revision == "handshake":
            raise UpstreamError(-32601, "no initialize here")
        return server.open(name, settings, given)

    async with (
        connected(server, opener=opener) as connection,
        connection.dedicated({}, on_notification=lambda *_: None) as link,
    ):
        assert link.modern
        assert opened == ["auto", "handshake", "auto"]


async def test_connections_of_single_clients_are_limited_in_number():
    server, budget = MemoryServer(), LinkBudget(1)
    async with connected(server, dedicated=budget) as connection:
        async with connection.dedicated({}, on_notification=lambda *_: None):
            with pytest.raises(OverloadedError):
                async with connection.dedicated({}, on_notification=lambda *_: None):
                    pass
        async with connection.dedicated({}, on_notification=lambda *_: None) as link:
            assert not link.gone.is_set()
        assert budget.taken == 0


async def test_stopping_a_server_ends_the_connections_of_single_clients_too():
    server = MemoryServer()
    async with connected(server) as connection:
        async with connection.dedicated({}, on_notification=lambda *_: None) as link:
            await connection.stop()
            async with asyncio.timeout(5):
                await link.wait_closed()
        assert server.links == []
