"""Erasures that are noted in a bucket of S3: any host repeats them by itself on a restored database."""

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import StoreUnavailableError
from app.core.ids import uuid7
from app.services.vault.erasure import ErasureReceipt, ErasureSink
from app.store.vault.erasure_objects import ErasureBucket
from app.store.vault.mark_files import MarkUnreadableError
from tests.integration.s3_server import BUCKET, SECRET, serving_s3
from tests.integration.service import Service, running_service

REASON = "Request 2026-114"
HISTORY = "0011223344556677"
AT = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with serving_s3() as environment:
        yield environment


@pytest.fixture
def location(server: dict[str, str], monkeypatch: pytest.MonkeyPatch, request: Any) -> str:
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{request.node.name}"


def seal(service: Service, scope: str, secret: str, key: str | None = None) -> str:
    """Seal a secret in a scope and return its handle."""
    context = [{"type": "text", "text": f"DB_PASSWORD={secret}"}]
    answer = service.http.post(
        "/api/v1/middleware/secret_redaction/invoke",
        json={"context": context, "arguments": {"scope": scope}},
        headers={"authorization": f"Bearer {key}"} if key else {},
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["content"][0]["text"]).partition("=")[2]


def originals(service: Service, scope: str, key: str | None = None) -> list[str]:
    answer = service.http.get(
        f"/api/v1/vault/scopes/{scope}/entries",
        params={"originals": True},
        headers={"authorization": f"Bearer {key}"} if key else {},
    )
    return [entry["original"] for entry in answer.json()["items"]] if answer.status_code == 200 else []


def ordered(service: Service, order: dict[str, Any]) -> dict[str, Any]:
    answer = service.http.post("/api/v1/erasures", json=order)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def done(service: Service, order: dict[str, Any]) -> dict[str, Any]:
    """Return the job of an order at its end."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        job: dict[str, Any] = service.http.get(f"/api/v1/erasures/{order['id']}").json()
        if job["state"] == "done":
            return job
        time.sleep(0.1)
    raise AssertionError("The erasure is not done.")


def copy(source: Path, target: Path) -> None:
    """Copy a database while nothing runs on it."""
    target.unlink(missing_ok=True)
    with sqlite3.connect(source) as opened:
        opened.execute(f"VACUUM INTO '{target}'")
    opened.close()


def test_another_host_repeats_by_itself_what_the_bucket_has(location: str, tmp_path: Path) -> None:
    secrets = {name: f"kV9#tLq2Zw8!{name}" for name in ("scope", "value", "late", "stays")}
    database, here, there = tmp_path / "sluice.db", tmp_path / "here", tmp_path / "there"
    for host in (here, there):
        host.mkdir()
    where: dict[str, Any] = {"database_url": f"sqlite:///{database}", "mark": location}
    with running_service(here, **where) as service:
        for name, secret in secrets.items():
            seal(service, f"of-{name}", secret)
    copy(database, tmp_path / "backup.db")
    with running_service(here, **where) as service:
        assert service.http.delete("/api/v1/vault/scopes/of-scope").status_code == 200
        order = {"values": [{"value": secrets["value"]}], "reason": REASON}
        earlier = done(service, ordered(service, order))
        assert earlier["counts"] == {"SECRET_PASSWORD": 1}
        # Whether the background begins with this one before the service ends: it is done in the end.
        late = ordered(service, {"values": [{"value": secrets["late"]}], "reason": REASON})
    assert not list(tmp_path.glob("**/erasures*.jsonl")), "this host has none of it"
    for name in ("sluice.db-wal", "sluice.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    copy(tmp_path / "backup.db", database)
    shutil.copy(here / "keyring.json", there / "keyring.json")
    with running_service(there, **where) as service:
        assert service.http.get(f"/api/v1/erasures/{earlier['id']}").json() == earlier, "with its receipt"
        stated = json.loads(done(service, late)["receipt"].splitlines()[1])
        assert (stated["id"], stated["erased"], stated["scopes"]) == (late["id"], {"SECRET_PASSWORD": 1}, 1)
        assert {name: originals(service, f"of-{name}") for name in secrets} == {
            "scope": [],
            "value": [],
            "late": [],
            "stays": [secrets["stays"]],
        }
        assert "erasures were repeated" in service.log.getvalue()
        assert service.http.get("/readyz").status_code == 200
        # The control: a start that finds all in order repeats nothing.
        seal(service, "of-value", secrets["value"])
    with running_service(here, **where) as service:
        assert originals(service, "of-value") == [secrets["value"]]
        assert "repeated" not in service.log.getvalue()


async def test_an_erasure_is_an_object_under_the_history_of_its_database(location: str) -> None:
    bucket, sink = ErasureBucket(location), ErasureSink(ErasureBucket(location))
    receipts = [ErasureReceipt(uuid7(), "scope", AT, "0516edb4", f"talk-{number}", {}) for number in range(3)]
    for receipt in receipts:
        await sink.append("acme", receipt, [], HISTORY)
    await sink.append("acme", receipts[0], [], HISTORY)  # sent again, as after an answer that was lost
    assert bucket.list_ids(HISTORY) == {receipt.id for receipt in receipts}
    (line,) = map(json.loads, bucket.read(HISTORY, [receipts[1].id]))
    assert (line["database"], line["tenant"], line["scope"]) == (HISTORY, "acme", "talk-1")
    assert bucket.list_ids("ffeeddccbbaa9988") == set()
    assert bucket.list_ids(HISTORY[:-1]) == set(), "not by the beginning of a name"


async def test_nothing_is_erased_where_the_bucket_cannot_note_it(
    location: str, server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    receipt = ErasureReceipt(uuid7(), "scope", AT, "0516edb4", "talk", {})
    with pytest.raises(StoreUnavailableError, match="nothing was erased") as raised:
        await ErasureSink(ErasureBucket("s3://no-such-bucket/x")).append("acme", receipt, [], HISTORY)
    assert SECRET not in str(raised.value)
    with monkeypatch.context() as away:
        away.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        with pytest.raises(StoreUnavailableError, match="nothing was erased"):
            await ErasureSink(ErasureBucket(location)).append("acme", receipt, [], HISTORY)
    with pytest.raises(MarkUnreadableError, match="s3://no-such-bucket/x cannot be read"):
        ErasureBucket("s3://no-such-bucket/x").list_ids(HISTORY)
    gone = ErasureBucket(location)
    with pytest.raises(MarkUnreadableError, match="cannot be read"):
        gone.read(HISTORY, [receipt.id])
