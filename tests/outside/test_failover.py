"""A standby takes over while calls go through HAProxy to two services: no acknowledged call is lost, and they go on."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.store.migrate import upgrade
from tests.e2e.running import Service, running
from tests.e2e.test_kill import Acknowledged, check, load
from tests.outside.debian import program
from tests.outside.proxies import awaited
from tests.outside.standby import server_and_standby
from tests.upstreams.providing import free_port

pytestmark = [pytest.mark.soak, pytest.mark.needs("haproxy"), pytest.mark.timeout(300)]

BALANCER = """\
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  option redispatch
frontend clients
  bind 127.0.0.1:{port}
  default_backend sluice
backend sluice
  option httpchk GET /readyz
  default-server check inter 500ms fall 2 rise 1
  server one 127.0.0.1:{one}
  server other 127.0.0.1:{other}
"""
BACK_S = 10.0
SYNCHRONOUS = "ALTER SYSTEM SET synchronous_standby_names = '*'"


@contextmanager
def balanced(one: Service, other: Service, folder: Path) -> Iterator[Service]:
    """Run HAProxy before two services and return them as one."""
    port, file, log = free_port(), folder / "haproxy.cfg", folder / "haproxy.log"
    file.write_text(BALANCER.format(port=port, one=one.port, other=other.port))
    with log.open("wb") as out:
        process = subprocess.Popen([program("haproxy") or "", "-db", "-f", file], stdout=out, stderr=out)
    try:
        awaited(port, process, log)
        yield replace(one, url=f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(timeout=20)


def test_a_promoted_standby_has_all_that_was_acknowledged_and_serves_within_ten_seconds(
    tmp_path: Path,
) -> None:
    acknowledged = Acknowledged()
    with server_and_standby() as (primary, standby):
        upgrade(primary.url)
        primary.ask(SYNCHRONOUS)
        primary.ask("SELECT pg_reload_conf()")
        url = (
            f"postgresql://postgres@/postgres?host=127.0.0.1:{primary.port}&host=127.0.0.1:{standby.port}"
            "&target_session_attrs=primary"
        )
        settings = {
            "SLUICE_DATABASE__URL": url,
            "SLUICE_KEYS__FILE": str(tmp_path / "ring.json"),
            "SLUICE_DETECTION__WARM": "true",
        }
        with (
            running(tmp_path, **settings) as one,
            running(tmp_path, **settings) as other,
            balanced(one, other, tmp_path) as front,
        ):
            with load([front], acknowledged):
                _await_more_than(0, acknowledged)
                time.sleep(5)
                before = len(acknowledged.requests)
                primary.kill()
                standby.ask("ALTER SYSTEM RESET synchronous_standby_names")
                standby.promote()
                promoted = time.monotonic()
                # An answer that was on its way when the server died may still be counted.
                time.sleep(0.5)
                _await_more_than(len(acknowledged.requests), acknowledged)
                back_s = time.monotonic() - promoted
                time.sleep(5)
            check(front, acknowledged)
    after = len(acknowledged.requests) - before
    print(f"{before} calls before and {after} after; served again {back_s:.1f} s after the promotion")
    assert back_s < BACK_S


def _await_more_than(count: int, acknowledged: Acknowledged) -> None:
    until = time.monotonic() + 60
    while len(acknowledged.requests) <= count:
        assert time.monotonic() < until
        time.sleep(0.02)
