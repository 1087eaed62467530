"""Checkpoints of the audit log are kept elsewhere, and what the database's owner did afterwards is found by them."""

import asyncio
import json
import logging
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import S3Store
from pydantic import SecretStr
from sqlalchemy import text

from app.assembly import opened
from app.cli.root import run
from app.cli.terminal import FAILED, UNREACHABLE
from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.errors import StoreUnavailableError
from app.core.transparency.notes import Checkpoint, Note, VerifierKey
from app.engines.anchors.choosing import anchor_of
from app.engines.anchors.file import checkpoints_in
from app.engines.signing import checker
from app.services import background
from app.services.audit import anchoring as anchoring_module
from app.services.audit.anchoring import Anchoring
from app.services.audit.log_keys import LogKeyService
from app.services.audit.verification import LogVerifier
from app.settings import AuditSettings, ConfigurationError, DatabaseSettings, KeysSettings, Settings
from app.store.audit.log import HEADS, newest_checkpoint
from app.store.database import Database
from tests.factories import PATIENT, as_owner, with_schema
from tests.integration.access_setup import Replica, replica_on
from tests.integration.certificates import self_signed
from tests.integration.s3_server import BUCKET, serving_s3
from tests.integration.sealing import seal_all
from tests.integration.service import running_service
from tests.integration.witnesses import witness

pytestmark = pytest.mark.in_turn("own_database_url")


@pytest.fixture
async def replica(own_database_url: str) -> AsyncIterator[Replica]:
    """Yield a service whose database is its own: the whole record is verified here, and others leave gaps in theirs."""
    async with Database(own_database_url, patience=PATIENT) as database, replica_on(database) as running:
        yield running


async def sealed(replica: Replica, tenant: str, count: int = 3) -> Checkpoint:
    """Record and seal some events; return the newest checkpoint."""
    caller = Caller(tenant, "00000001", frozenset({Role.INVOKER}))
    for number in range(count):
        details = {"number": number}
        event = replica.audit.new_event(caller, "middleware.invoke", OUTCOME_OK, None, details=details)
        await replica.audit.record(event)
    await seal_all(replica.audit)
    async with replica.database.system_transaction(write=False) as tx:
        newest = await newest_checkpoint(tx)
    assert newest is not None
    return Checkpoint.parse(Note.parse(newest.note).text)


def anchoring(replica: Replica, *addresses: str) -> Anchoring:
    return Anchoring.over(replica.database, [anchor_of(address) for address in addresses], replica.audit.now)


async def log_key(replica: Replica) -> VerifierKey:
    return (await LogKeyService.over(replica.audit).public())[-1][0]


async def holds(replica: Replica, anchors: list[str]) -> list[str]:
    """Return the kinds of what does not hold beside what was kept elsewhere."""
    result = await LogVerifier(replica.audit).verify(anchors=anchors)
    assert result.anchors == len(anchors)
    return [finding.kind for finding in result.findings]


async def test_a_file_gets_each_new_checkpoint_once(replica: Replica, tenant: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    running = anchoring(replica, f"file://{kept}")
    checkpoints = []
    for _ in range(3):
        checkpoints.append(await sealed(replica, tenant))
        await running.run()
        await running.run()
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [Checkpoint.parse(Note.parse(line["checkpoint"]).text) for line in lines] == checkpoints
    key = await log_key(replica)
    assert all(Note.parse(line["checkpoint"]).is_signed(key, checker(key)) for line in lines)
    assert await holds(replica, checkpoints_in(kept.read_text())) == []


async def test_before_the_first_checkpoint_nothing_is_kept_and_nothing_fails(
    own_database_url: str, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.jsonl"
    async with Database(own_database_url, patience=PATIENT) as database, replica_on(database) as replica:
        running = anchoring(replica, f"file://{kept}")
        await running.run()
        assert not kept.exists() or not kept.read_text()
        checkpoint = await sealed(replica, "acme")
        await running.run()
    (line,) = map(json.loads, kept.read_text().splitlines())
    assert Checkpoint.parse(Note.parse(line["checkpoint"]).text) == checkpoint


async def test_without_anchors_the_log_is_not_read(tmp_path: Path) -> None:
    def now() -> datetime:
        return datetime.now(UTC)

    async with Database("postgresql://nobody@127.0.0.1:1/none") as away:
        await Anchoring.over(away, [], now).run()
        with pytest.raises(StoreUnavailableError):
            await Anchoring.over(away, [anchor_of(f"file://{tmp_path}/kept.jsonl")], now).run()


async def test_a_line_that_a_crash_cut_off_is_ended_and_not_believed(
    replica: Replica, tenant: str, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.jsonl"
    running = anchoring(replica, f"file://{kept}")
    await sealed(replica, tenant)
    await running.run()
    with kept.open("a") as file:
        file.write('{"at": "2026-01-0')
    newest = await sealed(replica, tenant)
    await running.run()
    first, cut, last = kept.read_text().splitlines()
    assert cut == '{"at": "2026-01-0'
    assert first != last
    assert Checkpoint.parse(Note.parse(json.loads(last)["checkpoint"]).text) == newest


async def test_a_log_that_does_not_continue_what_is_kept_gets_no_further(
    replica: Replica, tenant: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The owner of the database wrote another history and signed it: the file keeps the first, and says so."""
    kept = tmp_path / "kept.jsonl"
    running = anchoring(replica, f"file://{kept}")
    first = await sealed(replica, tenant)
    await running.run()
    other = Checkpoint(first.origin, first.size, bytes(32))
    note = Note.parse(json.loads(kept.read_text())["checkpoint"])
    kept.write_text(json.dumps({"checkpoint": str(Note(other.text(), note.signatures))}) + "\n")
    await sealed(replica, tenant)
    with caplog.at_level(logging.WARNING, "sluice.audit"):
        await running.run()
    assert len(kept.read_text().splitlines()) == 1
    assert "does not continue what it keeps" in caplog.text
    longer = Checkpoint(first.origin, first.size + 1000, first.root)
    kept.write_text(json.dumps({"checkpoint": str(Note(longer.text(), note.signatures))}) + "\n")
    caplog.clear()
    with caplog.at_level(logging.WARNING, "sluice.audit"):
        await running.run()
    assert len(kept.read_text().splitlines()) == 1
    assert "the log was set back" in caplog.text


async def test_a_log_with_tiles_that_are_gone_gets_no_further_and_delays_no_other_anchor(
    replica: Replica, tenant: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept, new = (tmp_path / name for name in ("kept.jsonl", "new.jsonl"))
    await sealed(replica, tenant)
    await anchoring(replica, f"file://{kept}").run()
    await sealed(replica, tenant)
    await as_owner(replica.database, "DELETE FROM log_tile WHERE log = :log", log=HEADS)
    with caplog.at_level(logging.WARNING, "sluice.audit"):
        await anchoring(replica, f"file://{kept}", f"file://{new}").run()
    assert "Tiles of the log are missing" in caplog.text
    assert [len(file.read_text().splitlines()) for file in (kept, new)] == [1, 1]


async def test_a_witness_cosigns_and_the_checkpoint_carries_it(replica: Replica, tenant: str) -> None:
    async with witness() as seen:
        running = anchoring(replica, f"{seen.url}#{seen.key}")
        first = await sealed(replica, tenant)
        seen.trusted.append(await log_key(replica))
        await running.run()
        assert seen.seen == {first.origin: first}
        second = await sealed(replica, tenant, 300)
        await running.run()
        await running.run()
        assert seen.seen == {first.origin: second}
        assert seen.requests[-1].startswith(f"old {first.size}\n")
        assert len(seen.requests) <= 3, "what it cosigned already is not asked for again"
        assert second.size > first.size
        async with replica.database.system_transaction(write=False) as tx:
            newest = await newest_checkpoint(tx)
        assert newest is not None
        note = Note.parse(newest.note)
        assert note.cosigned_at(seen.key, checker(seen.key))
        assert await holds(replica, [newest.note]) == []


async def test_a_witness_that_knows_more_or_less_is_asked_anew(replica: Replica, tenant: str) -> None:
    async with witness() as seen:
        first = await sealed(replica, tenant)
        seen.trusted.append(await log_key(replica))
        await anchoring(replica, f"{seen.url}#{seen.key}").run()
        await sealed(replica, tenant)
        newest = await sealed(replica, tenant)
        async with replica.database.system_transaction() as tx:
            await tx.execute(text("UPDATE log_anchor SET size = 0"))
        await anchoring(replica, f"{seen.url}#{seen.key}").run()
        assert [body.split("\n")[0] for body in seen.requests[-2:]] == ["old 0", f"old {first.size}"]
        assert seen.seen == {first.origin: newest}


@pytest.mark.parametrize("fault", ["unknown log", "another key", "another history", "gone"])
async def test_what_a_witness_refuses_is_told_and_delays_no_other_anchor(
    replica: Replica, tenant: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    kept = tmp_path / "kept.jsonl"
    async with witness() as seen, witness() as stranger:
        address = f"{seen.url}#{stranger.key if fault == 'another key' else seen.key}"
        if fault == "gone":
            address = f"http://127.0.0.1:1/#{seen.key}"
        newest = await sealed(replica, tenant)
        if fault != "unknown log":
            seen.trusted.append(await log_key(replica))
        if fault == "another history":
            seen.seen[newest.origin] = Checkpoint(newest.origin, 1, bytes(32))
        with caplog.at_level(logging.WARNING, "sluice.audit"):
            await anchoring(replica, address, f"file://{kept}").run()
    told = {
        "unknown log": "404. It does not know this log",
        "another key": "not signed by the key",
        "another history": "422. It says that the log does not continue",
        "gone": "does not answer",
    }
    assert told[fault] in caplog.text
    assert Checkpoint.parse(Note.parse(checkpoints_in(kept.read_text())[-1]).text) == newest


def context_of(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@asynccontextmanager
async def syslog_server(context: ssl.SSLContext | None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Receive messages framed by their length (RFC 6587)."""
    messages: list[bytes] = []

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while length := (await reader.readuntil(b" ")).strip():
                messages.append(await reader.readexactly(int(length)))
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(receive, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1], messages


@pytest.mark.parametrize("tls", [False, True])
async def test_a_syslog_server_gets_a_message_that_verifies(
    replica: Replica, tenant: str, tmp_path: Path, tls: bool
) -> None:
    newest = await sealed(replica, tenant)
    certificate = self_signed(tmp_path)
    async with syslog_server(context_of(certificate) if tls else None) as (port, messages):
        place = f"127.0.0.1:{port}"
        address = f"syslog+tls://{place}?ca={certificate}" if tls else f"syslog+tcp://{place}"
        running = anchoring(replica, address)
        await running.run()
        await running.run()
        async with asyncio.timeout(20):
            while not messages:
                await asyncio.sleep(0.01)
    (message,) = messages
    head, _, body = message.partition(b" - checkpoint - ")
    assert head.startswith(b"<109>1 ")
    assert head.split(b" ")[3:] == [b"sluice"]
    note = json.loads(body)["checkpoint"]
    assert Checkpoint.parse(Note.parse(note).text) == newest
    assert await holds(replica, [note]) == []


async def test_a_syslog_server_of_another_authority_gets_nothing(
    replica: Replica, tenant: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await sealed(replica, tenant)
    async with syslog_server(context_of(self_signed(tmp_path))) as (port, messages):
        running = anchoring(replica, f"syslog+tls://127.0.0.1:{port}")
        with caplog.at_level(logging.WARNING, "sluice.audit"):
            await running.run()
    assert not messages
    assert "The syslog server does not take it" in caplog.text


async def test_a_bucket_gets_an_object_for_each_checkpoint_and_replaces_none(
    replica: Replica, tenant: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving_s3() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        running = anchoring(replica, f"s3://{BUCKET}/{tenant}")
        first = await sealed(replica, tenant)
        await running.run()
        await running.run()
        second = await sealed(replica, tenant)
        await running.run()
        store = S3Store(BUCKET, prefix=tenant, client_options={"allow_http": True})
        names = sorted(entry["path"] for batch in obstore.list(store) for entry in batch)
        notes = [bytes(obstore.get(store, name).bytes()).decode() for name in names]
        assert [Checkpoint.parse(Note.parse(note).text) for note in notes] == [first, second]
        assert await holds(replica, notes) == []
        # The log is told that the bucket keeps less than it does: what is there stays, and another one is refused.
        obstore.put(store, names[1], notes[0].encode())
        async with replica.database.system_transaction() as tx:
            await tx.execute(text("UPDATE log_anchor SET size = 0"))
        with caplog.at_level(logging.WARNING, "sluice.audit"):
            await running.run()
        assert bytes(obstore.get(store, names[1]).bytes()).decode() == notes[0]
    assert "another checkpoint of that size" in caplog.text


async def test_the_lag_of_sealing_and_of_each_anchor_is_seen_by_every_process(
    replica: Replica, tenant: str, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.jsonl"
    running = anchoring(replica, f"file://{kept}", f"file://{tmp_path}/no-such-folder/never.jsonl")
    await sealed(replica, tenant)
    await running.run()
    now = replica.audit.now()

    def at(seconds: float) -> Callable[[], Any]:
        return lambda: now + timedelta(seconds=seconds)

    running.lag.now = at(120)
    await running.lag.look()
    assert running.lag.sealing_s == 0
    assert running.lag.anchoring_s()["file kept.jsonl"] == 0
    assert running.lag.anchoring_s()["file never.jsonl"] > 60
    assert running.lag.late() == ["anchor file never.jsonl"]
    caller = Caller(tenant, "00000001", frozenset({Role.INVOKER}))
    await replica.audit.record(replica.audit.new_event(caller, "middleware.invoke", OUTCOME_OK, None))
    await running.lag.look()
    assert 60 < running.lag.sealing_s <= 121
    assert "sealing the audit log" in running.lag.late()
    running.lag.now = at(0.5)
    await running.lag.look()
    assert "sealing the audit log" not in running.lag.late()


@pytest.mark.parametrize(
    "address",
    [
        "/var/checkpoints.jsonl",
        "file://host/checkpoints.jsonl",
        "https://user:pa55word@witness.example/",
        "http://witness.example/#w+00000000+AQ==",
        "syslog+udp://host",
        "ftp://host/",
        "https://[",
    ],
)
def test_an_address_that_is_no_anchor_is_explained_without_repeating_it(address: str) -> None:
    with pytest.raises(ValueError, match=r"is no anchor|is no address|public key behind #") as refusal:
        anchor_of(address)
    assert "pa55word" not in str(refusal.value)


def test_a_running_service_keeps_its_anchors_and_sinks_and_warns_of_those_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(background, "_SEAL_S", 0.05)
    monkeypatch.setattr(anchoring_module, "LATE_S", 0.1)
    kept = tmp_path / "kept.jsonl"
    anchors = [f"file://{kept}", f"file://{tmp_path}/nowhere/lost.jsonl"]
    delivered = tmp_path / "events.jsonl"
    sinks = [f"file://{delivered}", f"file://{tmp_path}/nowhere/nothing.jsonl"]
    warnings = {"anchor file lost.jsonl", "sink file nothing.jsonl"}
    with running_service(tmp_path, anchors=anchors, sinks=sinks) as service:
        until = time.monotonic() + 30
        while not (
            kept.exists()
            and delivered.exists()
            and delivered.read_bytes()
            and warnings <= set(service.http.get("/readyz").json().get("warnings", ()))
        ):
            assert time.monotonic() < until
            time.sleep(0.05)
        answer = service.http.get("/readyz")
        assert (answer.status_code, answer.json()["status"]) == (200, "ready")
        metrics = service.http.get("/metrics").text
        keys = service.http.get("/api/v1/audit/keys").json()["items"]
    lags = dict(
        re.findall(r'^sluice_audit_anchor_lag_seconds{anchor="file (.+)"} (.+)$', metrics, re.MULTILINE)
    )
    assert lags.keys() == {"kept.jsonl", "lost.jsonl"}
    assert float(lags["lost.jsonl"]) > 0.1
    assert "\nsluice_audit_sealing_lag_seconds " in metrics
    assert "\nsluice_audit_purged_events_total 0.0" in metrics
    key = VerifierKey.parse(keys[-1]["key"])
    assert all(Note.parse(note).is_signed(key, checker(key)) for note in checkpoints_in(kept.read_text()))
    assert "anchor file lost.jsonl does not keep the newest checkpoint" in service.log.getvalue()
    assert "sink file nothing.jsonl does not take events" in service.log.getvalue()
    lags = dict(re.findall(r'^sluice_audit_sink_lag_seconds{sink="file (.+)"} (.+)$', metrics, re.MULTILINE))
    assert lags.keys() == {"events.jsonl", "nothing.jsonl"}
    assert float(lags["nothing.jsonl"]) > 0.1
    failures = r'^sluice_audit_sink_failures_total{sink="file (.+)"} (.+)$'
    failed = {name: float(count) for name, count in re.findall(failures, metrics, re.MULTILINE)}
    assert failed["events.jsonl"] == 0 < failed["nothing.jsonl"]
    for count in ("rejected", "shortened"):
        assert f'\nsluice_audit_sink_{count}_events_total{{sink="file nothing.jsonl"}} 0.0' in metrics
    actions = [json.loads(line)["api"]["operation"] for line in delivered.read_text().splitlines()]
    assert "key.create" in actions
    monkeypatch.setenv("SLUICE_DATABASE__URL", f"sqlite:///{tmp_path}/sluice.db")
    monkeypatch.setenv("SLUICE_KEYS__FILE", str(tmp_path / "keyring.json"))
    monkeypatch.setenv("SLUICE_AUDIT__SINKS", ",".join(sinks))
    # In this process, so that what is late is late here, too; how a command logs would outlive the test.
    for module in ("app.cli.host", "app.edge.logs"):
        monkeypatch.setattr(f"{module}.configure_logging", lambda *_: None)
    assert run(["audit", "sinks", "--json"]) == FAILED
    kept_up, late = map(json.loads, capsys.readouterr().out.splitlines())
    assert (kept_up["name"], late["name"], late["delivered"]) == (
        "file events.jsonl",
        "file nothing.jsonl",
        None,
    )
    assert kept_up["delivered"]
    assert late["waits_s"] > 0.1
    assert run(["status", "--url", "http://127.0.0.1:1", "--json"]) == UNREACHABLE
    findings = {each["part"]: each["state"] for each in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["sink file nothing.jsonl"] == "wrong"
    assert "sink file events.jsonl" in findings


async def test_a_service_with_an_address_that_is_no_anchor_does_not_start(tmp_path: Path) -> None:
    settings = Settings(
        database=DatabaseSettings(url=SecretStr(with_schema(f"sqlite:///{tmp_path}/sluice.db"))),
        keys=KeysSettings(file=tmp_path / "keyring.json"),
        audit=AuditSettings(anchors=("ftp://host/",)),
    )
    with pytest.raises(ConfigurationError, match="SLUICE_AUDIT__ANCHORS: ftp://… is no anchor"):
        async with opened(settings):
            pass
