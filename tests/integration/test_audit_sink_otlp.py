"""A receiver of OTLP gets each event as a log record, and is asked again as the protocol says."""

import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from aiohttp import web
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from app.engines.sinks.choosing import sink_of
from app.places_wiring import sinks
from app.services.audit.sinks import delivery
from app.services.audit.sinks.delivery import Delivery
from app.settings import AuditSettings, ConfigurationError, Settings
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import with_schema
from tests.integration.access_setup import Replica, replica_on
from tests.integration.certificates import self_signed
from tests.integration.ocsf import faults
from tests.integration.otlp_receiver import PROTOBUF, answer_of, receiving
from tests.integration.sink_setup import Kept, record, record_large
from tests.integration.test_audit_anchors import context_of

SECRET = "canary-of-a-token"


@pytest.fixture
async def replica(tmp_path: Path) -> AsyncIterator[Replica]:
    url = with_schema(f"sqlite:///{tmp_path}/sluice.db")
    async with Database(url, patience=PATIENT) as database, replica_on(database) as running:
        yield running


class Waits:
    """Delivers and keeps for how long it was to wait, without waiting."""

    def __init__(self, replica: Replica, address: str) -> None:
        self.waited: list[float] = []
        self.delivery = Delivery(replica.audit, sink_of(address), self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


def texts(attributes: list[KeyValue]) -> dict[str, str]:
    return {each.key: each.value.string_value for each in attributes}


async def test_each_event_is_a_log_record_whose_body_is_its_line(
    replica: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "BATCH", 4)
    await record(replica, 9)
    uid = await record_large(replica, "line\nbreak \0 \u2028 \ud800 " + "Mozilla/5.0 " * 5500)
    certificate, headers = self_signed(tmp_path), tmp_path / "headers"
    headers.write_text(f"Authorization: Bearer {SECRET}\n\nX-Scope: acme\n")
    async with receiving(context_of(certificate)) as receiver:
        running = Delivery(replica.audit, sink_of(f"{receiver.url}?ca={certificate}&headers={headers}"))
        await running.run()
        other = Delivery(replica.audit, sink_of(receiver.url.replace("127.0.0.1", "localhost")))
        await other.run()  # the server's certificate is of no authority that is known
    assert (running.failures, other.failures) == (0, 1)
    whole = Kept()
    await Delivery(replica.audit, whole).run()
    assert receiver.bodies() == [line.decode() for line in whole.lines]
    assert len(receiver.requests) == 3
    ((path, sent),) = {(path, tuple(sorted(sent.items()))) for path, sent in receiver.seen[:1]}
    assert path == "/v1/logs"
    assert dict(sent)["authorization"] == f"Bearer {SECRET}"
    assert dict(sent)["x-scope"] == "acme"
    for each, line in zip(receiver.records(), whole.lines, strict=True):
        document = json.loads(line)
        assert faults(document) == []
        assert texts(list(each.attributes)) == {
            "log.record.uid": document["metadata"]["uid"],
            "sluice.tenant": document["metadata"]["tenant_uid"],
        }
        assert each.time_unix_nano // 1_000_000 == document["time"]
        assert (each.severity_text, each.severity_number) == (
            ("INFO", 9) if document["status_id"] == 1 else ("WARN", 13)
        )
        assert each.event_name == "ocsf.api_activity"
    assert uid in receiver.bodies()[-1]
    (resource,) = {
        request.resource_logs[0].resource.attributes[0].value.string_value for request in receiver.requests
    }
    assert resource == "sluice"


ANSWERS = (
    ({"status": 429, "headers": {"Retry-After": "7"}}, (7, 7)),
    ({"status": 502, "headers": {"Retry-After": "soon"}}, None),
    ({"status": 504}, None),
    ({"status": 503, "headers": {"Retry-After": "999999999999"}}, (300, 300)),
    # Not for another time, says the protocol, but what is set up wrongly loses nothing here.
    ({"status": 401, "headers": {"Retry-After": "7"}}, None),
    ({"status": 500}, None),
    ({"status": 307, "headers": {"Location": "http://127.0.0.1:9/"}}, None),
    ({"text": "<html>Sign in", "content_type": "text/html"}, None),
    ({"body": b"\xff\xff", "content_type": PROTOBUF}, None),
    ({"body": b"x" * 70_000, "content_type": PROTOBUF}, None),
)


async def test_a_request_that_is_not_taken_is_sent_again_when_the_receiver_says(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    await record(replica, 3)
    moment = format_datetime(datetime.now(UTC) + timedelta(minutes=2), usegmt=True)
    dated = ({"status": 503, "headers": {"Retry-After": moment}}, (1, 120))
    async with receiving() as receiver:
        for answer, waits in (*ANSWERS, dated):
            running = Waits(replica, receiver.url)
            receiver.answers = [web.Response(**answer)]
            await running.delivery.run()
            assert (running.delivery.failures, receiver.requests) == (1, []), answer
            assert len(running.waited) == (waits is not None), answer
            assert waits is None or waits[0] <= running.waited[0] <= waits[1], answer
        await running.delivery.run()
        assert len(receiver.records()) == 3
    assert "127.0.0.1:9/" not in caplog.text
    assert "Sign in" not in caplog.text


async def test_what_is_refused_for_its_size_goes_in_parts_and_what_is_rejected_is_not_sent_again(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    await record(replica, 7)
    uid = await record_large(replica, "long words " * 2000)
    async with receiving() as receiver:
        running = Waits(replica, receiver.url).delivery
        receiver.most_bytes = 12_000
        receiver.answers = [web.Response(status=400)]
        await running.run()
        assert (running.shortened, running.rejected) == (1, 0)
        assert [json.loads(body)["metadata"]["uid"] for body in receiver.bodies()][-1] == uid
        assert len(receiver.records()) == 8
        await record(replica, 4)
        receiver.answers = [answer_of(1)]
        await running.run()
        before = len(receiver.seen)
        await running.run()
        assert running.rejected == 1
        assert len(receiver.seen) == before
        assert "rejected 1 of 4 events for good" in caplog.text
        assert "They are too old" not in caplog.text
        # One that rejects every record takes nothing: all of them stay.
        await record(replica, 2)
        receiver.rejects = 1
        receiver.answers = [answer_of(2)]
        await running.run()
        receiver.requests, receiver.rejects = [], 0
        receiver.answers = [web.json_response({"partialSuccess": {"rejectedLogRecords": "0"}})]
        await running.run()
        assert (running.rejected, receiver.requests) == (1, [])
        await running.run()
        assert running.failures > 3


async def test_who_is_away_or_has_no_credentials_gets_it_later(
    replica: Replica, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await record(replica, 2)
    headers = tmp_path / "headers"
    async with receiving() as receiver:
        running = Waits(replica, f"{receiver.url}/own/path?headers={headers}").delivery
        await running.run()
        assert "cannot be read: No such file" in caplog.text
        headers.write_text(f"Bearer {SECRET}\n")
        await running.run()
        headers.write_text(f"Authorization: Bearer {SECRET}\n")
        assert receiver.seen == []
        await running.run()
        assert [path for path, _ in receiver.seen] == ["/own/path"]
        assert len(receiver.records()) == 2
    await record(replica, 1)
    await running.run()  # nobody listens any more
    assert running.failures == 3
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "address",
    [
        f"otlp+https://user:{SECRET}@host:4318",
        "otlp+https://",
        "otlp+http://collector.example:4318?headers=/run/secrets/otlp",
        "otlp://host",
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(ConfigurationError, match="SLUICE_AUDIT__SINKS: otlp") as refusal:
        sinks(Settings(audit=AuditSettings(sinks=(address,))))
    assert SECRET not in str(refusal.value)
    assert "otlp+https://host:4318" in str(refusal.value)


@pytest.mark.parametrize("module", ["opentelemetry", "google.protobuf"])
def test_without_the_extra_the_start_ends_with_one_sentence(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith((module, "app.engines.sinks.otlp"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError) as refusal:
        sinks(Settings(audit=AuditSettings(sinks=("otlp+https://host",))))
    (sentence,) = refusal.value.faults
    assert sentence == (
        "SLUICE_AUDIT__SINKS names a receiver of OTLP, but the extra otel is not installed: "
        "pip install 'sluice-mcp[otel]', or name another place."
    )
