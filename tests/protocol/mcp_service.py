"""The whole service, as create_app builds it, on loopback in the loop of one test."""

import asyncio
import base64
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator

import structlog
import uvicorn
from fastapi import FastAPI
from pydantic import SecretStr

from app.core.access import ApiKey
from app.main import create_app
from app.protocol.server import Mcp
from app.protocol.wire.primitives import Primitives
from app.settings import (
    AuthSettings,
    DatabaseSettings,
    DetectionSettings,
    KeysSettings,
    Settings,
    TelemetrySettings,
)
from tests.detectors import shared_detectors
from tests.factories import TEST_RING, with_schema

KEY = ApiKey.generate()
RING = "1:" + base64.b64encode(TEST_RING.keys[1]).decode()


def patient(database_url: str) -> DatabaseSettings:
    """Return settings for tests about something else: a busy machine may keep a database waiting for seconds."""
    return DatabaseSettings(
        url=SecretStr(database_url), connect_timeout_s=30, statement_timeout_s=30, pool_timeout_s=10
    )


def settings_of(database_url: str, *, required: bool = True, warm: bool = False) -> Settings:
    return Settings(
        database=patient(with_schema(database_url)),
        auth=AuthSettings(required=required, bootstrap_key=SecretStr(str(KEY))),
        keys=KeysSettings(ring=SecretStr(RING)),
        detection=DetectionSettings(warm=warm),
        telemetry=TelemetrySettings(log_level="error"),
    )


def surface_of(app: FastAPI) -> Mcp:
    """Return the MCP surface of a started application."""
    found: Mcp = app.state.mcp
    return found


@contextlib.asynccontextmanager
async def service(
    database_url: str, *, required: bool = True, warm: bool = False, primitives: Primitives | None = None
) -> AsyncIterator[tuple[str, FastAPI]]:
    """Serve the whole application and yield the URL of /mcp.

    ``warm`` is for tests that look for personal data: it waits for the detector, as /readyz tells a load balancer to.
    """
    settings = settings_of(database_url, required=required, warm=warm)
    with unchanged_logging():
        app = create_app(settings, primitives=primitives)
        async with listening(app) as url:
            while warm and not app.state.services.detector.ready:
                await asyncio.sleep(0.02)
            yield url, app


@contextlib.contextmanager
def unchanged_logging() -> Iterator[None]:
    """Undo what the application does to the logging of the whole process."""
    root, configured = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
        structlog.configure(**configured)


@contextlib.asynccontextmanager
async def listening(app: FastAPI) -> AsyncIterator[str]:
    """Serve ``app`` on a free port and yield the URL of /mcp."""
    with shared_detectors():
        async with _listening(app) as url:
            yield url


@contextlib.asynccontextmanager
async def _listening(app: FastAPI) -> AsyncIterator[str]:
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False, timeout_graceful_shutdown=10)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.02)
        if task.done():
            await task
            raise RuntimeError("the application did not start")
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        app.state.drain.begin()
        server.should_exit = True
        await task
