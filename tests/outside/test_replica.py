"""A streaming replica answers audit queries and retrieval, and never what the primary no longer holds."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from app.store.migrate import upgrade
from tests.e2e.running import Service, running
from tests.outside.calling import calling, eventually, invoked
from tests.outside.standby import Server, server_and_standby

pytestmark = pytest.mark.outside
LOOKED = (
    "SELECT coalesce(sum(seq_scan + coalesce(idx_scan, 0)), 0) FROM pg_stat_user_tables "
    "WHERE relname LIKE 'TABLE%'"
)
QUESTION = "What is the budget of the harbour office?"


@dataclass(frozen=True)
class Pair:
    """A service with its two servers."""

    primary: Server
    standby: Server
    service: Service

    def reads(self, server: Server, table: str) -> int:
        """Return how often a server has looked into a table."""
        return int(server.ask(LOOKED.replace("TABLE", table)))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with server_and_standby() as (primary, standby):
        upgrade(primary.url)
        settings = {"SLUICE_DATABASE__URL": primary.url, "SLUICE_DATABASE__READ_URL": standby.url}
        with running(tmp_path_factory.mktemp("replica"), **settings) as service:
            yield Pair(primary, standby, service)


@pytest.fixture
def http(pair: Pair) -> Iterator[httpx2.Client]:
    with calling(pair.service) as client:
        yield client
    pair.standby.ask("SELECT pg_wal_replay_resume()")


def document(http: httpx2.Client, name: str, text: str) -> str:
    """Store a document and return its id."""
    assert http.put("/api/v1/collections/office", json={}).is_success
    made = http.post(
        "/api/v1/collections/office/documents",
        json={"external_id": name, "title": "Harbour office", "text": text},
    )
    assert made.status_code == 201, made.text
    return str(made.json()["document"]["id"])


def actions(http: httpx2.Client) -> list[str]:
    answer = http.get("/api/v1/audit/events", params={"limit": 50})
    assert answer.status_code == 200, answer.text
    return [event["action"] for event in answer.json()["items"]]


def read_by(pair: Pair, server: Server, table: str, ask: Callable[[], Any]) -> None:
    """Ask until ``server`` has looked into ``table``."""
    before = pair.reads(server, table)

    def has_looked() -> bool:
        ask()
        return pair.reads(server, table) > before

    eventually(has_looked)


def test_queries_of_the_record_and_of_documents_are_read_from_the_replica(
    pair: Pair, http: httpx2.Client
) -> None:
    document(http, "a", "The budget is 4,711 crowns.")
    read_by(pair, pair.standby, "audit_event", lambda: actions(http))
    read_by(pair, pair.standby, "document_chunk", lambda: invoked(http, "document_retrieval", [QUESTION]))
    export = http.get("/api/v1/audit/export", params={"format": "jsonl"})
    assert "documents.put" in export.text


def test_each_answer_has_what_was_stored_just_before(http: httpx2.Client) -> None:
    for number in range(20):
        key = http.post("/api/v1/keys", json={"roles": ["invoker"], "name": f"n{number}"}).json()["key"]
        assert "key.create" in actions(http)[:2]
        assert http.delete(f"/api/v1/keys/{key[4:12]}").is_success
        assert "key.revoke" in actions(http)[:2]


def test_what_is_deleted_is_not_shown_by_a_replica_that_lags(pair: Pair, http: httpx2.Client) -> None:
    held = document(http, "b", "The harbour office's secret budget is 8,642 crowns.")
    eventually(lambda: "8,642" in str(invoked(http, "document_retrieval", [QUESTION])))
    read_by(pair, pair.standby, "document_chunk", lambda: invoked(http, "document_retrieval", [QUESTION]))
    pair.standby.ask("SELECT pg_wal_replay_pause()")
    assert http.delete(f"/api/v1/collections/office/documents/{held}").status_code == 204
    # Negative control: the replica still has it.
    assert pair.standby.ask("SELECT count(*) FROM document_chunk WHERE text LIKE '%8,642%'") == "1"
    assert "8,642" not in str(invoked(http, "document_retrieval", [QUESTION]))
    assert "documents.delete" in actions(http)[:3]


def test_a_replica_that_is_gone_is_missed_by_nobody_and_asked_when_it_is_back(
    pair: Pair, http: httpx2.Client
) -> None:
    read_by(pair, pair.standby, "audit_event", lambda: actions(http))
    pair.standby.kill()
    began = time.monotonic()
    while time.monotonic() < began + 3:
        assert actions(http)
    pair.standby.start()
    read_by(pair, pair.standby, "audit_event", lambda: actions(http))
