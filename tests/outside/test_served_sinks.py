"""A service delivers its record to real receivers, though it is killed and they are away: all of it, in its order."""

import asyncio
import json
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import obstore
import pytest
from aiohttp import web

from app.store.vault.mark_objects import store_at
from sluice_client import Sluice, SluiceError
from sluice_client.mcp import HANDSHAKE, MODERN
from tests.e2e.running import Service, running, started, stop
from tests.integration.certificates import self_signed
from tests.integration.kafka_cluster import Cluster, reading, running_cluster
from tests.integration.ocsf import faults
from tests.integration.otlp_receiver import Receiver, receiving
from tests.integration.s3_server import BUCKET, serving_s3
from tests.outside.test_syslog_anchor import rsyslog
from tests.upstreams.providing import free_port

pytestmark = [pytest.mark.outside, pytest.mark.needs("rsyslogd")]
NOT_ENOUGH_REPLICAS, TOPIC_AUTHORIZATION_FAILED = 19, 29
CALLS = 60
"""Calls at all doors together, each time: at first, while receivers are away, and when they are there again."""
PATIENCE_S = 120.0


class Places:
    """Receivers of four kinds, of which all but the bucket can be away."""

    def __init__(self, folder: Path, cluster: Cluster, bucket: str) -> None:
        self.folder, self.cluster = folder, cluster
        self.certificate, self.syslog_port, self.otlp_port = self_signed(folder), free_port(), free_port()
        self.store = store_at(bucket)
        self.received: list[Receiver] = []
        self._kafka: list[bytes] = []
        self._up = False
        self.addresses = {
            "bucket": bucket,
            "kafka": cluster.address,
            "otlp": f"otlp+http://127.0.0.1:{self.otlp_port}",
            "syslog": f"syslog+tls://127.0.0.1:{self.syslog_port}?ca={self.certificate}",
        }

    @asynccontextmanager
    async def there(self) -> AsyncIterator[None]:
        """Have all receivers answer for a while; the first requests of two are refused."""
        self.cluster.come_up()
        self._up = True
        self.cluster.fail(NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS, TOPIC_AUTHORIZATION_FAILED)
        async with receiving(port=self.otlp_port) as receiver:
            receiver.answers = [web.Response(status=503, headers={"Retry-After": "1"})]
            self.received.append(receiver)
            with rsyslog(self.folder, self.certificate, self.syslog_port):
                yield
                self.documents()
        self._up = False
        self.cluster.go_down()

    def documents(self) -> dict[str, list[dict[str, Any]]]:
        """Return what each kind has got, in the order of arrival."""
        if self._up:
            with reading(self.cluster) as log:
                self._kafka = [each.value for each in log.read()]
        objects = [entry["path"] for batch in obstore.list(self.store) for entry in batch]
        bucket = b"".join(bytes(obstore.get(self.store, name).bytes()) for name in sorted(objects))
        file = self.folder / "received.log"
        lines = file.read_text().rpartition("\n")[0].splitlines() if file.exists() else []
        arrived: dict[str, Sequence[str | bytes]] = {
            "bucket": bucket.splitlines(),
            "kafka": self._kafka,
            "otlp": [body for receiver in self.received for body in receiver.bodies()],
            "syslog": [line[line.index("{") :] for line in lines],
        }
        return {kind: [json.loads(each) for each in bodies] for kind, bodies in arrived.items()}


@contextmanager
def callers(service: Service) -> Iterator[Sequence[Sluice]]:
    """Open a client for each door: REST, and both revisions of MCP."""
    doors: list[dict[str, Any]] = [
        {"transport": "rest"},
        {"transport": "mcp", "revision": HANDSHAKE},
        {"transport": "mcp", "revision": MODERN},
    ]
    clients = [Sluice(service.url, service.key, retries=0, timeout=20, **door) for door in doors]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def call(service: Service, most: int = CALLS) -> int:
    """Make calls at every door, each in a thread, until the service is killed; return how many were answered."""

    def some(client: Sluice) -> int:
        for number in range(most // 3):
            try:
                client.redact(f"My SSN is 123-45-6789 ({number}).", scope="talk")
            except SluiceError:
                return number
            time.sleep(0.02)
        return most // 3

    with callers(service) as clients, ThreadPoolExecutor(len(clients)) as threads:
        return sum(threads.map(some, clients))


def logged(service: Service) -> list[str]:
    """Return the ids of the tenant's events in the order of its log."""
    headers = {"authorization": f"Bearer {service.key}"}
    answer = httpx2.get(f"{service.url}/api/v1/audit/proofs", headers=headers, timeout=60, trust_env=False)
    lines = [json.loads(line) for line in answer.text.splitlines()[1:]] if answer.status_code == 200 else []
    events = [json.loads(line["event"]) for line in lines]
    return [event["id"] for event in events if event["action"] == "middleware.invoke"]


def failing(service: Service) -> set[str]:
    """Return the kinds of sinks that have not taken a batch."""
    shown = httpx2.get(f"{service.url}/metrics", timeout=60, trust_env=False).text
    counts = re.findall(r'^sluice_audit_sink_failures_total{sink="(\w+) .+"} (.+)$', shown, re.MULTILINE)
    return {kind for kind, count in counts if float(count)}


def uids(documents: Sequence[dict[str, Any]], among: Sequence[str]) -> list[str]:
    """Return which events of ``among`` arrived, by their first arrival."""
    wanted = set(among)
    arrived = dict.fromkeys(each["metadata"]["uid"].replace("-", "") for each in documents)
    return [uid for uid in arrived if uid in wanted]


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(holds):
            await asyncio.sleep(0.3)


@pytest.fixture
async def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Places]:
    async with AsyncExitStack() as stack:
        environment = stack.enter_context(serving_s3())
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        cluster = stack.enter_context(running_cluster())
        yield Places(tmp_path, cluster, f"s3://{BUCKET}/events")


@pytest.mark.timeout(600)
async def test_what_was_answered_reaches_every_sink_in_its_order(places: Places, tmp_path: Path) -> None:
    settings = {"SLUICE_AUDIT__SINKS": ",".join(places.addresses.values())}
    async with places.there():
        service = await asyncio.to_thread(started, tmp_path, **settings)
        try:
            answered = await asyncio.to_thread(call, service)
            # Killed while the first events arrive and others are being stored.
            under_way = asyncio.create_task(asyncio.to_thread(call, service, 100_000))
            await eventually(lambda: all(places.documents().values()))
        finally:
            await asyncio.to_thread(stop, service.process, signal.SIGKILL)
        answered += await under_way
    before = places.documents()
    assert answered >= CALLS
    # All receivers but the bucket are away: it gets what they do not, and calls are answered.
    with running(tmp_path, **settings) as service:
        answered += await asyncio.to_thread(call, service)
        await eventually(lambda: len(logged(service)) >= answered)
        middle = await asyncio.to_thread(logged, service)
        await eventually(lambda: uids(places.documents()["bucket"], middle) == middle)
        await eventually(lambda: failing(service) == {"kafka", "otlp", "syslog"})
        for kind in ("kafka", "otlp", "syslog"):
            assert len(places.documents()[kind]) == len(before[kind]), kind
        async with places.there():
            answered += await asyncio.to_thread(call, service)
            await eventually(lambda: len(logged(service)) >= answered)
            expected = await asyncio.to_thread(logged, service)
            await eventually(
                lambda: all(
                    len(uids(each, expected)) == len(expected) for each in places.documents().values()
                )
            )
            documents = places.documents()
    assert len(expected) >= answered >= 3 * CALLS
    for kind, each in documents.items():
        assert uids(each, expected) == expected, kind
        assert faults(each[0]) == [], kind
