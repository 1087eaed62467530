"""The access log names what each request ran, and why it failed, at every door."""

from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from app.main import create_app
from app.settings import TelemetrySettings
from tests.protocol.mcp_service import KEY, listening, settings_of, unchanged_logging
from tests.protocol.mcp_wire import REVISIONS, Wire, client

CALL = {"event": "context/transform", "phase": "request", "payload": {"context": ["text"]}}
CLOCK = "timestamp_injector"


async def test_the_access_log_names_the_middleware_and_the_failure_at_every_door(tmp_path: Path) -> None:
    settings = settings_of(f"sqlite:///{tmp_path}/sluice.db")
    settings = settings.model_copy(update={"telemetry": TelemetrySettings(log_level="info")})
    codes: list[str] = []
    with unchanged_logging():
        app = create_app(settings)
        with capture_logs() as lines:
            async with listening(app) as url:
                for revision in REVISIONS:
                    async with client(url, revision, str(KEY)) as wire:
                        await _invoked(wire, CLOCK)
                        codes += await _invoked(wire, "absent")
    # The server has ended, so every line is there.
    assert _logged(lines, "middleware") == [CLOCK] * 3 * len(REVISIONS)
    assert sorted(_logged(lines, "error_code")) == sorted(codes)


async def _invoked(wire: Wire, name: str) -> list[str]:
    """Invoke a middleware at each door and return the codes of the errors."""
    headers = {"mcp-name": name} if wire.modern else {}
    replies = [
        await wire.call("interceptor/invoke", headers=headers, name=name, **CALL),
        await wire.invoke("text", headers=headers, name=name),
    ]
    path = wire.url.removesuffix("/mcp") + f"/api/v1/middleware/{name}/invoke"
    answer = await wire.http.post(path, json={"context": ["text"]})
    if answer.is_success:
        assert all(reply.result for reply in replies)
        return []
    return [*(reply.error["data"]["code"] for reply in replies), answer.json()["code"]]


def _logged(lines: list[Any], name: str) -> list[str]:
    values = [getattr(line["finished"], name) for line in lines if line["event"] == "request"]
    return [value for value in values if value is not None]
