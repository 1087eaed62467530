"""Two services count the rate of a tenant together, at every door; without Redis each by itself, on record."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis, FakeServer
from httpx2 import Response
from redis.asyncio import Redis

from tests.integration.service import Service, running_service
from tests.protocol.mcp_wire import ACCEPT, ENVELOPE, HANDSHAKE, MODERN

URL = "redis://:hunter2-canary@redis.internal:6379/0"
BURST = 12
POLICY = {"limits": {"requests_per_second": 0.001, "burst": BURST}}
CONTEXT = [{"type": "text", "text": "x"}]


@dataclass
class Pair:
    """Two services of two databases."""

    one: Service
    two: Service

    @property
    def both(self) -> tuple[Service, Service]:
        return self.one, self.two

    def await_processes(self, count: int) -> None:
        """Wait until each service shows that so many count together."""
        until = time.monotonic() + 30
        while any(f"sluice_limits_processes {count}.0" not in shown(service) for service in self.both):
            assert time.monotonic() < until
            time.sleep(0.05)


@contextmanager
def pair_in(folder: Path) -> Iterator[Pair]:
    for name in ("one", "two"):
        (folder / name).mkdir()
    with (
        running_service(folder / "one", shared_url=URL) as one,
        running_service(folder / "two", shared_url=URL) as two,
    ):
        yield Pair(one, two)


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """Give every service a Redis in this process, which is as slow as the machine is."""
    server = FakeServer()
    monkeypatch.setattr(
        Redis, "from_url", lambda _url, **_: FakeAsyncRedis(server=server, decode_responses=True)
    )
    monkeypatch.setattr("app.services.access.shared_rates.TIMEOUT_S", 30)
    monkeypatch.setattr("app.store.access.redis_buckets._PRESENT_MS", 60_000)
    return server


def shown(service: Service) -> str:
    return service.http.get("/metrics").text


def over_rest(service: Service) -> Response:
    return service.http.post("/api/v1/middleware/timestamp_injector/invoke", json={"context": CONTEXT})


def over_modern_mcp(service: Service) -> Response:
    headers = {"accept": ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": "middleware/invoke"}
    params = {"name": "timestamp_injector", "context": CONTEXT, "_meta": ENVELOPE}
    return service.http.post("/mcp", json=message("middleware/invoke", params), headers=headers)


def over_handshake_mcp(service: Service) -> Response:
    headers = {"accept": ACCEPT, "mcp-protocol-version": HANDSHAKE}
    client = {"name": "tests", "version": "1"}
    opening = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": client}
    opened = service.http.post("/mcp", json=message("initialize", opening), headers=headers)
    headers["mcp-session-id"] = opened.headers["mcp-session-id"]
    params = {"name": "timestamp_injector", "context": CONTEXT}
    return service.http.post("/mcp", json=message("middleware/invoke", params), headers=headers)


def message(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def admitted(service: Service) -> int:
    """Return how many calls are admitted until 9 in a row were not, in turns over the doors."""
    total = refused = 0
    while refused < 9:
        for door in (over_rest, over_modern_mcp, over_handshake_mcp):
            answer = door(service)
            if "rate_limited" in answer.text:
                refused += 1
                assert "retry" in answer.text or "retry-after" in answer.headers
            else:
                assert answer.status_code == 200, answer.text
                total, refused = total + 1, 0
    return total


def changes_on_record(service: Service) -> list[str]:
    with closing(sqlite3.connect(service.directory / "sluice.db")) as database:
        rows = database.execute("SELECT details FROM audit_event WHERE action = 'limits.count' ORDER BY id")
        return [str(row[0]) for row in rows]


def two_changes_on_record(service: Service) -> list[str]:
    """Wait for two changes: they are stored in the background."""
    until = time.monotonic() + 30
    while len(changes := changes_on_record(service)) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    return changes


def test_a_tenant_has_one_rate_over_all_services_and_doors(redis: FakeServer, tmp_path: Path) -> None:
    with pair_in(tmp_path) as pair:
        pair.await_processes(2)
        for service in pair.both:
            assert service.put_policy(POLICY).status_code == 200
        first, second = admitted(pair.one), admitted(pair.two)
        # The second has its half on credit, once; alone it would have admitted a burst of its own.
        assert BURST // 2 <= first <= BURST
        assert second >= BURST // 2
        assert first + second <= BURST + BURST // 2
        assert changes_on_record(pair.one) == []

        redis.connected = False
        pair.await_processes(0)
        assert over_rest(pair.one).status_code == 429
        redis.connected = True
        pair.await_processes(2)
        for service in pair.both:
            lost, back = two_changes_on_record(service)
            assert ("false" in lost, "true" in back) == (True, True)
        logs = pair.one.log.getvalue() + pair.two.log.getvalue()
        assert logs.count("limits are counted per process") == 2
        assert "canary" not in logs + shown(pair.one)
