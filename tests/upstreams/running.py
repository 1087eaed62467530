"""Serving the fixture servers on loopback, each in a thread with an event loop of its own."""

import gc
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from tests.upstreams.scripted import ScriptedServer


@contextmanager
def serving_http(script: ScriptedServer, *, port: int = 0, **options: Any) -> Iterator[str]:
    """Serve over streamable HTTP; ``options`` are those of the SDK's ``streamable_http_app`` (``json_response``, …)."""
    app = script.server().streamable_http_app(**options)
    with serving(app, port) as bound:
        yield f"http://127.0.0.1:{bound}/mcp"


@contextmanager
def serving_sse(script: ScriptedServer, *, port: int = 0) -> Iterator[str]:
    """Serve over the legacy transport: one event stream, one address to post to."""
    transport = SseServerTransport(
        "/messages/", security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False)
    )

    async def stream(request: Request) -> Response:
        server = script.server()
        async with transport.connect_sse(request.scope, request.receive, request._send) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        return Response()

    routes = [Route("/sse", stream), Mount("/messages/", app=transport.handle_post_message)]
    with serving(Starlette(routes=routes), port) as bound:
        yield f"http://127.0.0.1:{bound}/sse"
    with warnings.catch_warnings():
        # The SDK's server leaves memory streams open when it is stopped while a client listens.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@contextmanager
def serving(app: Any, port: int = 0) -> Iterator[int]:
    """Serve an ASGI application and give its port; leaving cuts what is still open."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        until = time.monotonic() + 60
        while not server.started:
            if not thread.is_alive() or time.monotonic() > until:
                raise RuntimeError("The fixture server did not start.")
            time.sleep(0.01)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
