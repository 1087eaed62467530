"""A database that was restored from a backup is noticed, and whoever was erased stays erased, on both engines."""

import asyncio
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import make_url

from tests.e2e.running import environment_of, sluice
from tests.integration.service import Service, running_service

SECRETS = {"asked": "kV9#tLq2Zw8!rXpe", "stays": "Jd4$mNb7Qc1@yHsu", "later": "wE6!gTz3Rk5#aFvo"}
COMMAND = "sluice vault replay-erasures"


@dataclass
class Installation:
    """A folder with keys and marks, and a database that can be copied and put back while nothing runs."""

    folder: Path
    url: str

    @property
    def _file(self) -> Path:
        return self.folder / "sluice.db"

    def back_up(self) -> None:
        if self.url.startswith("sqlite"):
            with sqlite3.connect(self._file) as source:
                source.execute(f"VACUUM INTO '{self.folder}/backup.db'")
            source.close()
        else:
            self._copy(self.url, _named(self.url, "backup"))

    def restore(self) -> None:
        """Put the backup back: over the SQLite file, or as a PostgreSQL database of another name."""
        if self.url.startswith("sqlite"):
            self.lose()
            shutil.copyfile(self.folder / "backup.db", self._file)
        else:
            backup, self.url = _named(self.url, "backup"), _named(self.url, "again")
            self._copy(backup, self.url)

    def lose(self) -> None:
        for name in ("sluice.db", "sluice.db-wal", "sluice.db-shm"):
            (self.folder / name).unlink(missing_ok=True)

    def command(self, *arguments: str) -> tuple[int, str]:
        settings = {
            "SLUICE_DATABASE__URL": self.url,
            "SLUICE_KEYS__FILE": str(self.folder / "keyring.json"),
            "SLUICE_HTTP__PORT": "0",
        }
        done = sluice(*arguments, environment=environment_of(self.folder, **settings))
        return done.returncode, done.stdout + done.stderr

    def marks(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in self.folder.glob("mark-*.json")]

    @staticmethod
    def _copy(source: str, target: str) -> None:
        names = [make_url(url).database for url in (source, target)]

        async def copy() -> None:
            connection = await asyncpg.connect(
                make_url(source).set(database="postgres").render_as_string(False)
            )
            try:
                await connection.execute(f'CREATE DATABASE "{names[1]}" TEMPLATE "{names[0]}"')
            finally:
                await connection.close()

        asyncio.run(copy())


def _named(url: str, word: str) -> str:
    """Return the address of another database on the same server."""
    return (
        make_url(url).set(database=f"{make_url(url).database}_{word}").render_as_string(hide_password=False)
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    if request.param == "sqlite":
        yield Installation(tmp_path, f"sqlite:///{tmp_path}/sluice.db")
        return
    server = request.getfixturevalue("postgres_url")

    async def run(*statements: str) -> None:
        connection = await asyncpg.connect(server)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    with request.getfixturevalue("migrated_postgres")() as url:
        yield Installation(tmp_path, url)
        name = make_url(url).database
        asyncio.run(
            run(*(f'DROP DATABASE IF EXISTS "{name}_{copy}" WITH (FORCE)' for copy in ("backup", "again")))
        )


def _redact(service: Service, scope: str, *names: str) -> list[str]:
    """Seal secrets and return their handles."""
    context = [{"type": "text", "text": f"DB_PASSWORD={SECRETS[name]}"} for name in names]
    body = {"context": context, "arguments": {"scope": scope}}
    answer = service.http.post("/api/v1/middleware/secret_redaction/invoke", json=body)
    assert answer.status_code == 200, answer.text
    return [block["text"].partition("=")[2].strip("[]") for block in answer.json()["content"]]


def _originals(service: Service, scope: str) -> dict[str, str]:
    answer = service.http.get(f"/api/v1/vault/scopes/{scope}/entries", params={"originals": True})
    if answer.status_code == 404:
        return {}
    assert answer.status_code == 200, answer.text
    return {entry["handle"]: entry["original"] for entry in answer.json()["items"]}


def _erased_after_a_backup(installation: Installation) -> None:
    """Back up, then erase the whole of a scope and, by an order, a value in another, then restore the backup."""
    with running_service(installation.folder, database_url=installation.url) as service:
        assert _redact(service, "talk", "asked", "stays") == ["SECRET_PASSWORD_1", "SECRET_PASSWORD_2"]
        _redact(service, "whole", "asked", "later")
    installation.back_up()
    with running_service(installation.folder, database_url=installation.url) as service:
        assert service.http.delete("/api/v1/vault/scopes/whole").status_code == 200
        assert _redact(service, "talk", "later") == ["SECRET_PASSWORD_3"]
    values = installation.folder / "values.txt"
    values.write_text(SECRETS["asked"].upper())
    code, said = installation.command(
        "subjects", "erase", str(values), "--variants", "--yes", "--reason", "Request 2026-114"
    )
    assert (code, '"erased": {"SECRET_PASSWORD": 1}' in said) == (0, True), said
    installation.restore()


def test_erased_stays_erased_after_a_restore(installation: Installation) -> None:
    folder = installation.folder
    _erased_after_a_backup(installation)
    with running_service(folder, database_url=installation.url) as service:
        assert _originals(service, "talk") == {"SECRET_PASSWORD_2": SECRETS["stays"]}
        assert _originals(service, "whole") == {}
        # The third handle is known outside: its number names nothing else.
        assert _redact(service, "talk", "asked") == ["SECRET_PASSWORD_2000001"]
        events = service.http.get("/api/v1/audit/events", params={"action": "vault.replay_erasure"}).json()
        assert sorted(sum(event["counts"].values()) for event in events["items"]) == [1, 2]
        assert service.http.get("/readyz").status_code == 200
        assert "2 erasures were repeated" in service.log.getvalue()
        assert SECRETS["asked"] not in service.log.getvalue()
    with running_service(folder, database_url=installation.url) as service:
        # A start that finds all in order repeats nothing: what was sealed since stays.
        assert _originals(service, "talk")["SECRET_PASSWORD_2000001"] == SECRETS["asked"]
        assert "repeated" not in service.log.getvalue()


def test_without_mark_and_files_the_erased_come_back(installation: Installation) -> None:
    """Negative control: nothing but the mark and the files of erasures keeps them erased."""
    _erased_after_a_backup(installation)
    for path in [*installation.folder.glob("mark-*.json"), installation.folder / "erasures.jsonl"]:
        path.unlink()
    with running_service(installation.folder, database_url=installation.url) as service:
        assert _originals(service, "talk")["SECRET_PASSWORD_1"] == SECRETS["asked"]
        assert "whether the database was restored cannot be said" in service.log.getvalue()


def test_a_start_without_all_files_of_erasures_names_the_command(installation: Installation) -> None:
    _erased_after_a_backup(installation)
    file, elsewhere = installation.folder / "erasures.jsonl", installation.folder / "of another host.jsonl"
    first, ordered, second, receipt = file.read_text().splitlines()
    file.write_text(f"{first}\n")
    foreign = {**json.loads(second), "database": "0123456789abcdef", "scope": "talk"}
    elsewhere.write_text(f"{second[:40]}\n{ordered}\n{second}\n{receipt}\n{json.dumps(foreign)}\n")

    code, said = installation.command("serve")
    assert code == 1
    assert COMMAND in said
    assert (
        "counts 4 orders, steps and receipts of erasures, but database and files of erasures have 1" in said
    )
    code, said = installation.command("vault", "erase", "--scope", "talk", "--yes")
    assert (code, COMMAND in said) == (1, True)
    code, said = installation.command("vault", "replay-erasures")
    assert (code, COMMAND in said) == (1, True)

    code, said = installation.command("vault", "replay-erasures", str(file), str(elsewhere))
    assert code == 0, said
    assert "Repeated 2 erasures: SECRET_PASSWORD=3." in said
    assert "1 erasures of other databases" in said
    assert "2 orders and receipts" in said
    assert "1 lines that are no erasures" in said
    with running_service(installation.folder, database_url=installation.url) as service:
        assert _originals(service, "talk") == {"SECRET_PASSWORD_2": SECRETS["stays"]}
        assert _originals(service, "whole") == {}


def test_a_database_that_is_gone_is_not_made_anew_unasked(tmp_path: Path) -> None:
    installation = Installation(tmp_path, f"sqlite:///{tmp_path}/sluice.db")
    with running_service(tmp_path, database_url=installation.url) as service:
        _redact(service, "talk", "stays")
    installation.lose()
    code, said = installation.command("serve")
    assert code == 1
    assert COMMAND in said
    assert not (tmp_path / "sluice.db").exists()

    code, said = installation.command("vault", "replay-erasures")
    assert (code, "creates none" in said) == (1, True)
    assert not (tmp_path / "sluice.db").exists()
    assert installation.command("db", "upgrade")[0] == 0
    code, said = installation.command("vault", "replay-erasures")
    assert code == 0, said
    with running_service(tmp_path, database_url=installation.url) as service:
        assert _redact(service, "talk", "later") == ["SECRET_PASSWORD_2000001"]
    assert [mark["epoch"] for mark in installation.marks()] == [1]


def test_a_backup_put_back_while_it_runs_stops_the_answers(tmp_path: Path) -> None:
    installation = Installation(tmp_path, f"sqlite:///{tmp_path}/sluice.db")
    with running_service(tmp_path) as service:
        _redact(service, "talk", "asked")
        installation.back_up()
        assert (
            service.http.post("/api/v1/vault/erasures", json={"value": SECRETS["asked"]}).status_code == 201
        )
        with (
            sqlite3.connect(tmp_path / "backup.db") as backup,
            sqlite3.connect(tmp_path / "sluice.db") as live,
        ):
            backup.backup(live)
        backup.close()
        live.close()
        until = time.monotonic() + 15
        while service.http.get("/readyz").status_code == 200 and time.monotonic() < until:
            time.sleep(0.2)
        assert service.http.get("/readyz").status_code == 503
        answer = service.http.get("/api/v1/vault/scopes/talk/entries", params={"originals": True})
        assert answer.status_code == 503
        assert SECRETS["asked"] not in answer.text
    with running_service(tmp_path) as service:
        assert _originals(service, "talk") == {}
