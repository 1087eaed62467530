"""Keys rotate while the service runs: it reads the ring again, and nothing is re-wrapped before it did."""

import json
import sqlite3
import time
from pathlib import Path

import pytest

from app.core.access import Role
from app.core.errors import ConflictError
from app.engines.cipher import KeyRing
from app.services.vault.keyring import KeyringService
from app.store.database import Database
from app.store.vault.serving_processes import ServingProcess, announce_process, list_processes, remove_process
from tests.e2e.running import environment_of, sluice
from tests.factories import PATIENT, caller_of, open_vault, random_ring
from tests.integration.service import Service, running_service

SECRET = "kV9#tLq2Zw8!rXpe"


def _redact(service: Service, scope: str) -> None:
    body = {"context": [{"type": "text", "text": f"DB_PASSWORD={SECRET}"}], "arguments": {"scope": scope}}
    answer = service.http.post("/api/v1/middleware/secret_redaction/invoke", json=body)
    assert "[SECRET_PASSWORD_1]" in answer.text


def _originals(service: Service, scope: str) -> list[str]:
    answer = service.http.get(f"/api/v1/vault/scopes/{scope}/entries", params={"originals": True})
    return [entry["original"] for entry in answer.json()["items"]]


def test_keys_rotate_without_a_restart(tmp_path: Path) -> None:
    environment = environment_of(tmp_path)
    with running_service(tmp_path) as service:
        _redact(service, "old")
        assert sluice("vault", "rotate-keys", environment=environment).returncode == 0
        until = time.monotonic() + 30
        while (done := sluice("vault", "rewrap", environment=environment)).returncode:
            assert "lacks key version 2" in done.stderr
            assert time.monotonic() < until
            time.sleep(0.5)
        assert "0 remain under other versions" in done.stdout
        _redact(service, "new")
        assert [_originals(service, scope) for scope in ("old", "new")] == [[SECRET], [SECRET]]
        assert service.http.get("/readyz").status_code == 200
        with sqlite3.connect(tmp_path / "sluice.db") as beside:
            versions = {row[0] for row in beside.execute("SELECT kek_version FROM scope")}
        assert versions == {2}

        # A ring with another key under a known version is not taken.
        ring = json.loads((tmp_path / "keyring.json").read_text())
        other = KeyRing({**KeyRing.load(tmp_path / "keyring.json").keys, 2: random_ring().keys[1]}, 2)
        other.save(tmp_path / "keyring.json")
        while "another key than before" not in service.log.getvalue():
            assert time.monotonic() < until + 15
            time.sleep(0.2)
        assert _originals(service, "old") == [SECRET]
        assert ring["keys"]["1"] not in service.log.getvalue()


async def test_nothing_is_rewrapped_while_a_process_lacks_the_version(own_database_url: str) -> None:
    ring = random_ring()
    database = Database(own_database_url, patience=PATIENT)
    async with open_vault(database, ring=ring) as vault:
        await vault.store(caller_of("acme"), "talk", "Ada")
    behind = KeyringService(database, ring, host="far.example")
    async with open_vault(database, ring=ring.with_new_version().activated(2)) as vault:
        custodian = caller_of("acme", Role.KEY_CUSTODIAN)
        async with behind.running():
            with pytest.raises(ConflictError, match=r"far\.example lacks key version 2"):
                await vault.service.rewrap(custodian)
            assert await vault.service.keyring.other_hosts() == ["far.example"]
        assert await vault.service.keyring.other_hosts() == []  # it said that it ends
        assert (await vault.service.rewrap(custodian)).left == 0
    await database.close()


async def test_a_process_that_says_nothing_for_a_minute_has_ended(
    own_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(own_database_url, patience=PATIENT)
    async with database.system_transaction() as tx:
        await announce_process(tx, ServingProcess("a", "here", frozenset({1})))
        await announce_process(tx, ServingProcess("b", "there", frozenset({1, 2})))
        assert [process.id for process in await list_processes(tx)] == ["a", "b"]
        monkeypatch.setattr("app.store.vault.serving_processes.ALIVE_S", -1)
        assert await list_processes(tx) == []
        monkeypatch.undo()
        await remove_process(tx, ["a"])
        assert [process.versions for process in await list_processes(tx)] == [{1, 2}]
    await database.close()
