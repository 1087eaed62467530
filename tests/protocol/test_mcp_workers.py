"""Two worker processes of one service on PostgreSQL, as `sluice serve` starts them."""

import signal
import time
from collections.abc import Iterator

import httpx2
import pytest

from tests.e2e.running import Service, running, stop
from tests.protocol.mcp_service import RING
from tests.protocol.mcp_wire import ACCEPT, HANDSHAKE

CONTEXT = [{"type": "text", "text": "x"}]


@pytest.fixture
def two_workers(own_postgres_url, tmp_path) -> Iterator[Service]:
    settings = {"SLUICE_HTTP__WORKERS": "2", "SLUICE_KEYS__RING": RING, "SLUICE_DETECTION__WARM": "false"}
    with running(tmp_path, forked=False, SLUICE_DATABASE__URL=own_postgres_url, **settings) as service:
        yield service


def post(service: Service, method: str, session: str | None = None, **params: object) -> httpx2.Response:
    """Send one request over a connection of its own, so that either process may get it."""
    headers = {"accept": ACCEPT, "authorization": f"Bearer {service.key}", "connection": "close"}
    if session:
        headers |= {"mcp-session-id": session, "mcp-protocol-version": HANDSHAKE}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return httpx2.post(f"{service.url}/mcp", json=body, headers=headers, trust_env=False, timeout=20)


def test_one_handshake_client_meets_no_404_and_its_stream_does_not_hold_up_the_end(two_workers):
    client = {"name": "tests", "version": "1"}
    opened = post(two_workers, "initialize", protocolVersion=HANDSHAKE, capabilities={}, clientInfo=client)
    session = opened.headers["mcp-session-id"]
    calls = [
        post(two_workers, "middleware/invoke", session, name="timestamp_injector", context=CONTEXT)
        for _ in range(30)
    ]
    headers = {
        "accept": "text/event-stream",
        "authorization": f"Bearer {two_workers.key}",
        "mcp-session-id": session,
    }
    with httpx2.stream("GET", f"{two_workers.url}/mcp", headers=headers, trust_env=False) as stream:
        assert stream.status_code == 200
        started = time.monotonic()
        code = stop(two_workers.process, signal.SIGTERM)

    assert [call.status_code for call in calls] == [200] * 30
    assert code == 0
    assert time.monotonic() - started < 10
