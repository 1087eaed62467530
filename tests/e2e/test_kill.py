"""Nothing acknowledged is lost when processes are killed under load."""

import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from tests.conftest import fresh_postgres
from tests.e2e.running import Service, running

SCOPES = 4
WRITERS = 6
WARM = {"SLUICE_DETECTION__WARM": "true"}
"""What is killed is to have answered before."""


@dataclass
class Acknowledged:
    """What the service said it had done: the value behind each handle, and the ids of the requests."""

    values: dict[tuple[str, str], str] = field(default_factory=dict)
    requests: set[str] = field(default_factory=set)
    given_twice: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, scope: str, handle: str, value: str, request: str) -> None:
        with self.lock:
            self.requests.add(request)
            if self.values.setdefault((scope, handle), value) != value:
                self.given_twice.append(handle)


def write(service: Service, acknowledged: Acknowledged, stop: threading.Event, seed: int) -> None:
    """Redact fresh e-mail addresses until told to stop or until the service is gone."""
    chance = random.Random(seed)
    headers = {"authorization": f"Bearer {service.key}"}
    with httpx2.Client(base_url=service.url, headers=headers, timeout=30, trust_env=False) as http:
        while not stop.is_set():
            scope, request = f"s{chance.randrange(SCOPES)}", uuid4().hex
            value = f"u{uuid4().hex[:12]}@example.com"
            body = {"arguments": {"scope": scope, "entities": ["email"]}, "context": [value]}
            try:
                answer = http.post(
                    "/api/v1/middleware/pii_redaction/invoke", json=body, headers={"x-request-id": request}
                )
            except httpx2.TransportError:
                return
            if answer.status_code == 200:
                acknowledged.note(scope, answer.json()["content"][0], value, request)


@contextmanager
def load(services: list[Service], acknowledged: Acknowledged) -> Iterator[None]:
    stop = threading.Event()
    threads = [
        threading.Thread(target=write, args=(services[n % len(services)], acknowledged, stop, n))
        for n in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def kill(service: Service) -> None:
    service.process.send_signal(signal.SIGKILL)
    service.process.wait()
    if service.process.stdout is not None:
        service.process.stdout.close()


def restored(service: Service, scope: str, handles: list[str]) -> list[str]:
    answer = httpx2.post(
        f"{service.url}/api/v1/middleware/pii_restoration/invoke",
        json={"arguments": {"scope": scope, "positions": "all"}, "context": handles},
        headers={"authorization": f"Bearer {service.key}"},
        timeout=60,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    found: list[str] = answer.json()["content"]
    return found


def recorded(service: Service) -> list[str]:
    """Return the request id of every recorded invocation, as often as it stands there."""
    answer = httpx2.get(
        f"{service.url}/api/v1/audit/export",
        params={"format": "jsonl", "action": "middleware.invoke", "outcome": "ok"},
        headers={"authorization": f"Bearer {service.key}"},
        timeout=120,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    return re.findall(r'"client_request_id": ?"([^"]+)"', answer.text)


def check(service: Service, acknowledged: Acknowledged) -> None:
    assert not acknowledged.given_twice
    for scope in {scope for scope, _ in acknowledged.values}:
        handles = [handle for known, handle in acknowledged.values if known == scope]
        for start in range(0, len(handles), 2000):
            part = handles[start : start + 2000]
            assert restored(service, scope, part) == [acknowledged.values[scope, handle] for handle in part]
    rows = recorded(service)
    assert acknowledged.requests <= set(rows)
    assert len(rows) == len(set(rows))


def kills_of_the_process(folder: Path, kills: int, *, forked: bool = True) -> Acknowledged:
    """Kill the only process on SQLite under load, again and again, and start it again."""
    acknowledged, chance = Acknowledged(), random.Random(1)
    for _ in range(kills):
        with running(folder, forked=forked, **WARM) as service, load([service], acknowledged):
            time.sleep(chance.uniform(0.3, 1.0))
            kill(service)
    with running(folder, forked=forked, **WARM) as service:
        check(service, acknowledged)
    return acknowledged


def kills_of_a_replica(
    folder: Path, url: str, kills: int, *, forked: bool = True, **others: str
) -> Acknowledged:
    """Kill one of two replicas on PostgreSQL under load, again and again; the other goes on serving."""
    acknowledged, chance = Acknowledged(), random.Random(2)
    settings = {"SLUICE_DATABASE__URL": url, "SLUICE_KEYS__FILE": str(folder / "ring.json"), **WARM, **others}
    with ExitStack() as stack:
        stays = stack.enter_context(running(folder, forked=forked, **settings))
        for _ in range(kills):
            with running(folder, forked=forked, **settings) as dies, load([stays, dies], acknowledged):
                time.sleep(chance.uniform(0.3, 1.0))
                kill(dies)
        check(stays, acknowledged)
    return acknowledged


def test_kills_of_the_process_on_sqlite_lose_nothing(tmp_path: Path) -> None:
    assert kills_of_the_process(tmp_path, 2).requests


def test_kills_of_a_replica_on_postgresql_lose_nothing(tmp_path: Path, postgres_url: str) -> None:
    with fresh_postgres(postgres_url) as url:
        assert kills_of_a_replica(tmp_path, url, 2).requests


def test_the_check_finds_a_lost_write(tmp_path: Path) -> None:
    """Negative control: an acknowledgement that was never stored is found."""
    acknowledged = Acknowledged()
    with running(tmp_path, **WARM) as service:
        with load([service], acknowledged):
            time.sleep(0.5)
        check(service, acknowledged)
        acknowledged.note("s0", "[EMAIL_999999]", "lost@example.com", "lost")
        with pytest.raises(AssertionError):
            check(service, acknowledged)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_fifty_kills_of_the_process_on_sqlite_lose_nothing(tmp_path: Path) -> None:
    done = kills_of_the_process(tmp_path, 50, forked=False)
    print(f"SQLite: 50 kills, {len(done.requests)} acknowledged calls, {len(done.values)} handles, none lost")


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_fifty_kills_of_a_replica_on_postgresql_lose_nothing(tmp_path: Path, postgres_url: str) -> None:
    with fresh_postgres(postgres_url) as url:
        done = kills_of_a_replica(tmp_path, url, 50, forked=False)
    print(
        f"PostgreSQL: 50 kills, {len(done.requests)} acknowledged calls, {len(done.values)} handles, none lost"
    )
