"""Certificates are verified."""

import asyncio
import ssl

import pytest

from app.core.errors import UpstreamUnavailableError
from tests.integration.certificates import self_signed
from tests.upstreams.links import linked


@pytest.fixture
def own_certificate(tmp_path):
    return self_signed(tmp_path)


async def test_a_certificate_that_nobody_vouches_for_is_refused(own_certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own_certificate)
    reached = []

    async def serve(_reader, writer):
        reached.append(True)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UpstreamUnavailableError, match="certificate"):
            async with linked(f"https://127.0.0.1:{port}/mcp"):
                pass
        with pytest.raises(UpstreamUnavailableError, match="certificate"):
            async with linked({"type": "sse", "url": f"https://127.0.0.1:{port}/sse"}):
                pass
    assert reached == []


async def test_a_server_that_speaks_no_tls_is_told():
    async def serve(_reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UpstreamUnavailableError, match="TLS"):
            async with linked(f"https://127.0.0.1:{port}/mcp"):
                pass
