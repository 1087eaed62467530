"""A SQLite file that is deleted or replaced under the running service ends its readiness and its answers."""

import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.service import Service, running_service

INVOKE = "/api/v1/middleware/timestamp_injector/invoke"
BODY = {"context": [{"type": "text", "text": "What is the time?"}]}
REUSED_S = 1.1
"""How long an answer about readiness is reused, and a little more."""


def _deleted(file: Path) -> None:
    file.unlink()


def _replaced(file: Path) -> None:
    copy = file.with_name("copy.db")
    shutil.copyfile(file, copy)
    copy.replace(file)


def _statuses(service: Service) -> list[int]:
    return [
        service.http.post(INVOKE, json=BODY).status_code,
        service.http.get("/api/v1/vault/scopes").status_code,
        service.http.get("/readyz").status_code,
    ]


def _written(file: Path) -> int:
    with sqlite3.connect(file) as beside:
        found = beside.execute("SELECT value FROM installation WHERE name = 'readiness'").fetchone()
    return int(found[0])


@pytest.mark.parametrize("lose", [_deleted, _replaced])
def test_a_lost_file_stops_readiness_and_answers(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    file = tmp_path / "sluice.db"
    with running_service(tmp_path) as service:
        assert _statuses(service) == [200, 200, 200]
        # Other programs may read and tidy up a database in use.
        beside = sqlite3.connect(file)
        beside.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        beside.execute(f"VACUUM INTO '{tmp_path}/backup.db'")
        beside.close()
        file.touch()
        first = _written(file)
        time.sleep(REUSED_S)
        assert _statuses(service) == [200, 200, 200]
        assert _written(file) > first  # readiness has written, and something new

        lose(file)
        time.sleep(REUSED_S)
        assert _statuses(service) == [503, 503, 503]
        assert service.http.get("/readyz").json()["checks"]["database"] is False
        assert file.exists() == (lose is _replaced)  # nobody makes an empty one in its place
        assert "deleted or replaced" in service.log.getvalue()

        if lose is _replaced:
            # Whatever is put there later: the connections of this process belong to a file that is gone.
            (tmp_path / "backup.db").replace(file)
            time.sleep(REUSED_S)
            assert _statuses(service) == [503, 503, 503]
