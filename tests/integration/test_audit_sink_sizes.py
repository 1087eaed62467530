"""What is too large for a sink goes in parts or in short; hostile texts break nothing."""

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from app.engines.sinks.choosing import sink_of
from app.engines.sinks.file import FileSink
from app.services.audit.sinks.delivery import Delivery
from app.store.database import Database
from tests.conftest import PATIENT
from tests.integration.access_setup import Replica, replica_on
from tests.integration.certificates import self_signed
from tests.integration.ocsf import faults
from tests.integration.s3_server import BUCKET, serving_s3
from tests.integration.sink_setup import Kept, record, record_large
from tests.integration.test_audit_anchors import context_of, syslog_server

pytestmark = pytest.mark.in_turn("own_database_url")


@pytest.fixture
async def replica(own_database_url: str) -> AsyncIterator[Replica]:
    """Return a process on a database of this test's own, since sinks get the events of all tenants."""
    async with Database(own_database_url, patience=PATIENT) as database, replica_on(database) as running:
        yield running


async def test_a_batch_that_is_too_large_goes_in_parts_and_an_event_that_is_too_large_in_short(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    await record(replica, 9)
    uid = await record_large(replica, "long words " * 2000)
    await record(replica, 4)
    whole, sink = Kept(), Kept()
    whole.name = "whole"
    await Delivery(replica.audit, whole).run()
    sink.most_bytes = 12_000
    running = Delivery(replica.audit, sink)
    with caplog.at_level(logging.ERROR, "sluice.audit"):
        await running.run()
    assert sink.events == whole.events
    assert sink.refused[0] == 14
    assert sink.refused[-1] == 1
    assert (running.failures, running.shortened) == (len(sink.refused) - 1, 1)
    (message,) = caplog.messages
    assert (
        message == f"sink kept got event {uid} of tenant acme only in short: it does not take the whole of it"
    )
    changed = [pair for pair in zip(sink.lines, whole.lines, strict=True) if pair[0] != pair[1]]
    ((short, longer),) = [(json.loads(left), json.loads(right)) for left, right in changed]
    assert short["metadata"] == longer["metadata"]
    assert short["unmapped"]["log"] == longer["unmapped"]["log"]
    assert short["unmapped"]["left_out"] == ["details", "versions"]
    assert "long words" not in json.dumps(short)
    assert faults(short) == []


async def test_a_sink_that_is_too_small_for_any_event_gets_them_when_it_takes_more(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is passed over because a server is set to take nothing."""
    await record(replica, 5)
    sink = Kept()
    sink.most_bytes = 100
    running = Delivery(replica.audit, sink)
    with caplog.at_level(logging.WARNING, "sluice.audit"):
        await running.run()
    assert "Even in short event " in caplog.text
    assert (sink.events, running.shortened) == ([], 0)
    sink.most_bytes = 1 << 20
    await running.run()
    assert len(sink.events) == 5


async def test_a_sink_that_asks_to_be_left_alone_is_and_one_that_rejects_is_counted(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    await record(replica, 3)
    sink, waited = Kept(), []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    running = Delivery(replica.audit, sink, sleep)
    sink.fails_after = 0
    for asked in (0, 7, 100_000):
        sink.wait_s = asked
        await running.run()
    assert waited == [7, 300]
    assert running.failures == 3
    sink.fails_after, sink.rejects = None, 2
    await running.run()
    assert running.rejected == 2
    assert f"rejected 2 of 3 events for good, from event {sink.events[0]} to event {sink.events[-1]}" in (
        caplog.text
    )
    await running.run()
    assert len(sink.events) == 3


HOSTILE = "line\nbreak\r\n<13>1 - - - - - \x01 \u2028 \x1b[31m \U0001f600 ' \" \\ "


async def test_no_text_of_an_event_breaks_what_a_sink_delivers(
    replica: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line breaks, control characters, escapes and 64 KB of text leave each event one document."""
    await record(replica, 2)
    # PostgreSQL stores no NUL.
    text = f"{HOSTILE}\0 \ud800" if replica.database.embedded else HOSTILE
    uids = [await record_large(replica, text), await record_large(replica, HOSTILE + "Mozilla/5.0 " * 5500)]
    await record(replica, 2)
    path, certificate = tmp_path / "events.jsonl", self_signed(tmp_path)
    await Delivery(replica.audit, FileSink(path)).run()
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    with serving_s3() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        await Delivery(replica.audit, sink_of(f"s3://{BUCKET}/hostile")).run()
        store = S3Store(BUCKET, prefix="hostile", client_options={"allow_http": True})
        (stored,) = [entry["path"] for batch in obstore.list(store) for entry in batch]
        assert bytes(obstore.get(store, stored).bytes()) == path.read_bytes()
    async with syslog_server(context_of(certificate)) as (port, messages):
        running = Delivery(replica.audit, sink_of(f"syslog+tls://127.0.0.1:{port}?ca={certificate}"))
        await running.run()
    sent = [message.partition(b" - ocsf - ")[2] for message in messages]
    for delivered in (lines, sent):
        assert not any(byte < 0x20 for line in delivered for byte in line)
        by_uid = {json.loads(line)["metadata"]["uid"]: json.loads(line) for line in delivered}
        assert by_uid[uids[0]]["unmapped"]["details"]["text"].startswith("line\nbreak\r\n<13>1")
        assert len(by_uid) == 6
    # A message of syslog has a greatest length, a line of a file has none.
    assert [line for line in lines if line not in sent] == [lines[-3]]
    assert running.shortened == 1
