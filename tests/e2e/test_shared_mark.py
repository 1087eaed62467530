"""Production on several hosts needs a mark that all of them share: a folder, or a place in S3."""

import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from app.store.dialects import address_of
from app.store.vault.mark_objects import MarkBucket
from tests.e2e.running import KEY, begun, environment_of, running, sluice
from tests.integration.s3_server import BUCKET, serving_s3

PLACE = f"s3://{BUCKET}/sluice"


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    with serving_s3() as environment:
        yield environment


def production(folder: Path, **settings: str) -> dict[str, str]:
    return {
        "SLUICE_ENVIRONMENT": "production",
        "SLUICE_AUTH__BOOTSTRAP_KEY": str(KEY),
        "SLUICE_KEYS__FILE": str(folder / "keyring.json"),
        "SLUICE_DETECTION__WARM": "false",
        **settings,
    }


def another_host_serves(folder: Path) -> None:
    """Let a process of another host have announced itself a moment ago."""
    value = {"host": "far.example", "versions": [1], "release": "0.0.1", "seen": time.time() + 30}
    with sqlite3.connect(folder / "sluice.db") as database:
        database.execute(
            "INSERT INTO installation (name, value) VALUES ('process:0a0b', ?)", [json.dumps(value)]
        )


def test_a_second_host_without_a_shared_mark_does_not_start_in_production(
    tmp_path: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sluice("keys", "create", "--role", "auditor", environment=begun(tmp_path))
    assert made.returncode == 0
    another_host_serves(tmp_path)
    alone = environment_of(tmp_path, **production(tmp_path))
    refused = sluice("serve", "--port", "0", environment=alone)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.splitlines()[-1] == (
        "sluice: far.example serves from this database too: let SLUICE_VAULT__MARK name a place that all hosts share."
    )
    with running(tmp_path, **production(tmp_path, SLUICE_VAULT__MARK=PLACE, **s3)) as service:
        assert httpx2.get(f"{service.url}/readyz", trust_env=False).status_code == 200
        found = json.loads(service.sluice("status", "--json", **s3).stdout)["findings"]
        (mark,) = [finding for finding in found if finding["part"] == "mark"]
        assert (mark["state"], mark["facts"]["place"], mark["facts"]["shared"]) == ("ok", PLACE, True)

    # The mark in the bucket is ahead: the database was restored while nothing ran.
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    bucket = MarkBucket(PLACE)
    stored = bucket.find_at(address_of(f"sqlite:///{tmp_path}/sluice.db"))
    assert stored is not None
    assert bucket.raise_to(replace(stored, step=stored.step + 99, erasures=1)) is None
    restored = environment_of(tmp_path, **production(tmp_path, SLUICE_VAULT__MARK=PLACE, **s3))
    refused = sluice("serve", "--port", "0", environment=restored)
    assert refused.returncode == 1
    assert "sluice vault replay-erasures" in refused.stderr
