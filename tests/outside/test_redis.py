"""Rates over all processes with Debian's Redis: over TLS with a password, while it stops and after it is back."""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from app.core.contracts.leases import LeaseRequest
from app.store.access.redis_buckets import RedisBuckets
from tests.integration.certificates import self_signed
from tests.integration.service import Service, running_service
from tests.outside.debian import program
from tests.upstreams.providing import free_port

pytestmark = [pytest.mark.outside, pytest.mark.needs("redis-server")]

PASSWORD = "hunter2-canary"
BURST = 40
POLICY = {"limits": {"requests_per_second": 0.001, "burst": BURST}}


@contextmanager
def redis_at(port: int, folder: Path, *options: str) -> Iterator[None]:
    """Run a Redis that keeps nothing on disk."""
    own = [
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--requirepass",
        PASSWORD,
        "--save",
        "",
        "--dir",
        str(folder),
    ]
    server = subprocess.Popen([program("redis-server") or "", *own, *options], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        server.terminate()
        server.wait(20)


def shows(service: Service, processes: int) -> bool:
    return f"sluice_limits_processes {processes}.0" in service.http.get("/metrics").text


def await_processes(count: int, *services: Service) -> None:
    until = time.monotonic() + 30
    while not all(shows(service, count) for service in services):
        assert time.monotonic() < until
        time.sleep(0.05)


def admitted(service: Service, times: int = 2 * BURST) -> int:
    path, body = "/api/v1/middleware/timestamp_injector/invoke", {"context": [{"type": "text", "text": "x"}]}
    answers = [service.http.post(path, json=body).status_code for _ in range(times)]
    assert set(answers) <= {200, 429}
    return answers.count(200)


def test_services_count_together_while_redis_runs_and_each_by_itself_without(tmp_path: Path) -> None:
    port = free_port()
    url = f"redis://:{PASSWORD}@127.0.0.1:{port}/0"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with running_service(tmp_path / "one", shared_url=url) as one:
        assert shows(one, 0)
        with redis_at(port, tmp_path):
            await_processes(1, one)
            with running_service(tmp_path / "two", shared_url=url) as two:
                await_processes(2, one, two)
                for service in (one, two):
                    assert service.put_policy(POLICY).status_code == 200
                first, second = admitted(one), admitted(two)
                assert first + second <= BURST + BURST // 2
                assert min(first, second) >= BURST // 2
            await_processes(1, one)
        await_processes(0, one)
        assert over_capacity_is_refused(one)
        log = one.log.getvalue()
        assert "limits are counted per process" in log
        assert PASSWORD not in log


def over_capacity_is_refused(service: Service) -> bool:
    return admitted(service, 3) == 0


async def leased(url: str) -> float:
    buckets = RedisBuckets.at(url, timeout_s=5)
    try:
        _, (lease,) = await buckets.lease([LeaseRequest("calls:a", 1.0, 10, 0, 4)])
    finally:
        await buckets.leave()
    return lease.granted


def test_tls_is_verified(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    port = free_port()
    options = ["--port", "0", "--tls-port", str(port), "--tls-cert-file", str(certificate)]
    options += ["--tls-key-file", str(certificate), "--tls-auth-clients", "no"]
    url = f"rediss://:{PASSWORD}@127.0.0.1:{port}/0"
    with redis_at(port, tmp_path, *options):
        until = time.monotonic() + 20
        while True:
            try:
                assert asyncio.run(leased(f"{url}?ssl_ca_certs={certificate}")) == 4
                break
            except (RedisError, OSError):
                assert time.monotonic() < until
                time.sleep(0.1)
        with pytest.raises((RedisError, OSError)):
            asyncio.run(leased(url))
