"""Every sealed event reaches each sink in the form of OCSF, in order, whatever fails on the way, and delays nobody."""

import asyncio
import hashlib
import json
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store
from pydantic import SecretStr

from app.assembly import opened
from app.core.transparency.hashing import HASH_BYTES
from app.core.transparency.tiles import TilePlace
from app.engines.sinks.choosing import sink_of
from app.engines.sinks.file import FileSink
from app.services.audit.anchoring import LogLag
from app.services.audit.sinks import delivery
from app.services.audit.sinks.delivery import Delivery
from app.settings import AuditSettings, ConfigurationError, DatabaseSettings, KeysSettings, Settings
from app.store.audit.log import list_tiles
from app.store.audit.sinks import SinkCursor, list_pending
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import as_owner, with_schema
from tests.integration.access_setup import Replica, replica_on
from tests.integration.certificates import self_signed
from tests.integration.ocsf import faults
from tests.integration.s3_server import BUCKET, serving_s3
from tests.integration.sink_setup import TENANTS, Kept, by_tenant, documents, in_log, record
from tests.integration.test_audit_anchors import context_of, syslog_server

pytestmark = pytest.mark.in_turn("own_database_url")


@pytest.fixture
async def replica(own_database_url: str) -> AsyncIterator[Replica]:
    """Return a process on a database of this test's own, since sinks get the events of all tenants."""
    async with Database(own_database_url, patience=PATIENT) as database, replica_on(database) as running:
        yield running


async def test_each_sealed_event_is_a_line_of_ocsf_in_the_order_of_the_log(
    replica: Replica, tmp_path: Path
) -> None:
    delivering = Delivery(replica.audit, FileSink(tmp_path / "events.jsonl"))
    await delivering.run()
    assert not (tmp_path / "events.jsonl").exists()
    await record(replica, 24)
    await record(replica, 1, seal=False)
    await delivering.run()
    await delivering.run()
    lines = documents(tmp_path / "events.jsonl")
    assert by_tenant(lines) == await in_log(replica)
    assert len(lines) == 24
    assert [fault for line in lines for fault in faults(line)] == []
    text = (tmp_path / "events.jsonl").read_text()
    assert "kept content" not in text
    assert "somebody" not in text
    assert {line["actor"]["app_name"] for line in lines} == {"desk"}
    assert {line["actor"]["user"]["uid"] == "00000001" for line in lines} == {True, False}
    assert {line["action_id"] for line in lines} == {1, 2, 3, 4, 99}
    for tenant in TENANTS:
        own = [line for line in lines if line["metadata"]["tenant_uid"] == tenant]
        assert [line["metadata"]["sequence"] for line in own] == list(range(len(own)))
        async with replica.database.system_transaction(write=False) as tx:
            tile = (await list_tiles(tx, [(tenant, TilePlace(0, 0))]))[tenant][TilePlace(0, 0)]
        hashes = [tile[at : at + HASH_BYTES].hex() for at in range(0, len(tile), HASH_BYTES)]
        assert [line["unmapped"]["log"]["leaf"] for line in own] == hashes
    failed = [line for line in lines if line["unmapped"]["outcome"] != "ok"]
    assert {(line["status_id"], line["status_code"]) for line in failed} == {(2, "forbidden")}
    assert {line["severity_id"] for line in lines if line["api"]["operation"] == "audit.gap"} == {5}
    assert {line["activity_id"] for line in lines if line["api"]["operation"] == "key.revoke"} == {4}


async def test_a_changed_document_does_not_fit_its_fingerprint(replica: Replica, tmp_path: Path) -> None:
    await record(replica, 2)
    await Delivery(replica.audit, FileSink(tmp_path / "events.jsonl")).run()
    for document in documents(tmp_path / "events.jsonl"):
        for actor, fits in (("00000001", True), ("00000002", False)):
            document["actor"]["user"]["uid"] = actor
            (attestation,) = document["attestation_list"]
            bare = {name: value for name, value in attestation.items() if name != "fingerprint"}
            signed = {**document, "attestation_list": [bare]}
            text = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
            assert (hashlib.sha256(text).hexdigest() == attestation["fingerprint"]["value"]) == fits


def test_the_check_of_the_form_finds_what_does_not_fit() -> None:
    assert "/api is missing" in faults({"metadata": {"profiles": []}})
    assert "/trace is of the profile trace" in faults({"trace": {"uid": "x"}, "metadata": {"profiles": []}})
    assert "/severity_id has another value" in faults({"severity_id": 7})
    assert "/severity_id and severity differ" in faults({"severity_id": 2, "severity": "High"})
    assert "/prompt is unknown" in faults({"prompt": "x"})
    assert any(fault.startswith("/actor has none of") for fault in faults({"actor": {}}))


@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
async def test_pages_of_any_size_hold_each_event_once(replica: Replica, limit: int) -> None:
    await record(replica, 23)
    cursor, seen = SinkCursor("any"), []
    while True:
        async with replica.database.system_transaction(write=False) as tx:
            pending = await list_pending(tx, cursor, limit)
        if pending.following == cursor:
            break
        assert len(pending.events) <= limit
        seen += [(leaf.tenant, leaf.position) for leaf, _ in pending.events]
        cursor = pending.following
    assert len(seen) == len(set(seen)) == 23
    for tenant in TENANTS:
        own = [position for name, position in seen if name == tenant]
        assert own == list(range(len(own)))


@pytest.mark.parametrize("taken", [0, 3, 5])
async def test_who_fails_or_dies_in_a_batch_gets_it_again_and_nothing_is_lost(
    replica: Replica, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    monkeypatch.setattr(delivery, "BATCH", 5)
    await record(replica, 17)
    sink = Kept()
    running = Delivery(replica.audit, sink)
    monkeypatch.setattr(delivery, "_BATCHES", 1)
    await running.run()
    sink.fails_after = taken
    await running.run()
    assert running.failures == 1
    sink.fails_after = None
    with monkeypatch.context() as patch:
        # The process dies when the batch is there and the cursor is not.
        async def die(*_: object) -> None:
            raise asyncio.CancelledError

        patch.setattr(delivery, "put_cursor", die)
        with pytest.raises(asyncio.CancelledError):
            await running.run()
    monkeypatch.setattr(delivery, "_BATCHES", 100)
    following = Delivery(replica.audit, sink)
    await following.run()
    once = list(dict.fromkeys(sink.events))
    assert len(once) == 17
    assert len(sink.events) == 17 + taken + 5
    whole = Kept()
    whole.name = "whole"
    await Delivery(replica.audit, whole).run()
    assert once == whole.events


async def test_a_line_that_a_crash_cut_off_is_taken_back(replica: Replica, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    running = Delivery(replica.audit, FileSink(path))
    await record(replica, 3)
    await running.run()
    with path.open("ab") as file:
        file.write(b'{"class_uid": 6003, "details": "' + b"x" * 200_000)
    await record(replica, 3)
    await running.run()
    assert by_tenant(documents(path)) == await in_log(replica)
    path.write_bytes(b"no line yet")
    await record(replica, 1)
    await running.run()
    assert len(documents(path)) == 1


async def test_a_sink_that_is_away_delays_no_other_and_its_lag_is_seen(
    replica: Replica, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = Delivery(replica.audit, sink_of(f"file://{tmp_path}/later/events.jsonl"))
    there = Delivery(replica.audit, sink_of(f"file://{tmp_path}/now.jsonl"))
    lag = LogLag(replica.database, [], replica.audit.now, [away.sink.name, there.sink.name])
    assert lag.delivering_s() == {"file events.jsonl": 0, "file now.jsonl": 0}
    await record(replica, 6)
    with caplog.at_level(logging.WARNING, "sluice.audit"):
        for _ in range(3):
            await away.run()
            await there.run()
    assert len([line for line in caplog.messages if "does not take events" in line]) == 1
    assert (away.failures, there.failures) == (3, 0)
    replica.clock.advance(90)
    await lag.look()
    assert lag.delivering_s()["file now.jsonl"] == 0
    assert 60 < lag.delivering_s()["file events.jsonl"] <= 90
    assert lag.late() == ["sink file events.jsonl"]
    (tmp_path / "later").mkdir()
    with caplog.at_level(logging.WARNING, "sluice.audit"):
        await away.run()
    assert "takes events again" in caplog.text
    assert by_tenant(documents(tmp_path / "later/events.jsonl")) == await in_log(replica)
    await lag.look()
    assert lag.late() == []


async def test_events_that_were_deleted_meanwhile_are_passed_over(replica: Replica) -> None:
    await record(replica, 20)
    async with replica.database.connection() as tx:
        statement = "SELECT event FROM log_leaf WHERE tenant = 'acme' AND position IN (0, 2, 3)"
        rows = [f"'{row[0]}'" for row in await tx.exec_driver_sql(statement)]
    await as_owner(replica.database, f"DELETE FROM audit_event WHERE id IN ({', '.join(rows)})")  # noqa: S608
    await as_owner(replica.database, f"DELETE FROM log_leaf WHERE event IN ({', '.join(rows[1:])})")  # noqa: S608
    sink = Kept()
    await Delivery(replica.audit, sink).run()
    assert len(sink.events) == 17


async def test_a_bucket_gets_objects_whose_names_sort_in_order_and_a_batch_that_comes_again_replaces_its_own(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "BATCH", 4)
    await record(replica, 11)
    with serving_s3() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        running = Delivery(replica.audit, sink_of(f"s3://{BUCKET}/events"))
        with monkeypatch.context() as patch:

            async def die(*_: object) -> None:
                raise asyncio.CancelledError

            patch.setattr(delivery, "put_cursor", die)
            with pytest.raises(asyncio.CancelledError):
                await running.run()
        await running.run()
        store = S3Store(BUCKET, prefix="events", client_options={"allow_http": True})
        names = sorted(entry["path"] for batch in obstore.list(store) for entry in batch)
        lines = [bytes(obstore.get(store, name).bytes()).splitlines() for name in names]
    assert [len(each) for each in lines] == [4, 4, 3]
    whole = Kept()
    await Delivery(replica.audit, whole).run()
    assert [json.loads(line)["metadata"]["uid"] for each in lines for line in each] == whole.events


async def test_a_bucket_that_is_not_there_gets_the_batch_later(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    await record(replica, 2)
    with serving_s3() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        running = Delivery(replica.audit, sink_of("s3://no-such-bucket/events"))
        await running.run()
    assert running.failures == 1


@pytest.mark.parametrize("tls", [False, True])
async def test_a_syslog_server_gets_each_event_as_a_message(
    replica: Replica, tmp_path: Path, tls: bool
) -> None:
    await record(replica, 9)
    certificate = self_signed(tmp_path)
    async with syslog_server(context_of(certificate) if tls else None) as (port, messages):
        place = f"127.0.0.1:{port}"
        address = f"syslog+tls://{place}?ca={certificate}" if tls else f"syslog+tcp://{place}"
        await Delivery(replica.audit, sink_of(address)).run()
    delivered = []
    for message in messages:
        head, _, body = message.partition(b" - ocsf - ")
        document = json.loads(body)
        assert head.startswith(b"<109>1 " if document["status_id"] == 1 else b"<108>1 ")
        assert head.split(b" ")[3:] == [b"sluice"]
        delivered.append(document)
    assert by_tenant(delivered) == await in_log(replica)


async def test_a_syslog_server_that_cuts_off_gets_the_batch_again(replica: Replica) -> None:
    """A server that resets the connection has not read all: nothing counts as delivered."""
    await record(replica, 9)
    cut = asyncio.Event()

    async def receive(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cut.set()
        writer.transport.abort()

    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        running = Delivery(replica.audit, sink_of(f"syslog+tcp://127.0.0.1:{port}"))
        await running.run()
    assert cut.is_set()
    assert running.failures == 1
    await running.run()  # nobody listens any more
    assert running.failures == 2


async def test_a_server_of_another_authority_gets_nothing(replica: Replica, tmp_path: Path) -> None:
    await record(replica, 2)
    context: ssl.SSLContext = context_of(self_signed(tmp_path))
    async with syslog_server(context) as (port, messages):
        running = Delivery(replica.audit, sink_of(f"syslog+tls://127.0.0.1:{port}"))
        await running.run()
    assert not messages
    assert running.failures == 1


@pytest.mark.parametrize(
    ("addresses", "told"),
    [
        (("/var/events.jsonl",), "is no sink"),
        (("file://host/events.jsonl",), "file://… is no sink"),
        (("https://user:pa55word@siem.example/",), "https://… is no sink"),
        (("syslog+udp://host",), "syslog+udp://… is no sink"),
        (("syslog+tls://[",), "is no address"),
        (("file:///a/events.jsonl", "file:///b/events.jsonl"), "names file events.jsonl twice"),
    ],
)
async def test_a_service_whose_sinks_are_none_does_not_start(
    tmp_path: Path, addresses: tuple[str, ...], told: str
) -> None:
    settings = Settings(
        database=DatabaseSettings(url=SecretStr(with_schema(f"sqlite:///{tmp_path}/sluice.db"))),
        keys=KeysSettings(file=tmp_path / "keyring.json"),
        audit=AuditSettings(sinks=addresses),
    )
    with pytest.raises(ConfigurationError, match="SLUICE_AUDIT__SINKS") as refusal:
        async with opened(settings):
            pass
    assert told in str(refusal.value)
    assert "pa55word" not in str(refusal.value)
