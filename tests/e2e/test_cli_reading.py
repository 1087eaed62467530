"""Commands that read create nothing and say what they read; the small options that save hours."""

from pathlib import Path

import pytest

from app import __version__
from tests.e2e.running import environment_of, sluice

READING = (
    "keys list",
    "tenants list",
    "audit query",
    "audit export",
    "audit verify",
    "audit checkpoint",
    "audit key",
    "audit prove",
    "vault scopes",
    "vault show talk",
    "servers list",
    "providers list",
    "groups list",
    "concerns list",
    "pipelines list",
    "documents list",
    "db current",
    "keys revoke 0a1b2c3d --yes",
    "vault erase --scope talk --yes",
    "vault rewrap",
)


def environment(folder: Path) -> dict[str, str]:
    return environment_of(folder, SLUICE_KEYS__FILE=str(folder / "keyring.json"))


def test_a_command_that_reads_creates_neither_a_database_nor_a_ring(tmp_path: Path) -> None:
    for command in READING:
        done = sluice(*command.split(), environment=environment(tmp_path))
        assert (done.returncode, done.stdout) == (1, ""), command
        assert f"There is no SQLite database {tmp_path}/sluice.db" in done.stderr, command
        assert done.stderr.count("\n") == 1
        assert list(tmp_path.iterdir()) == [], command


def test_without_its_ring_a_database_is_not_read_and_no_other_ring_is_made(tmp_path: Path) -> None:
    ring = tmp_path / "keyring.json"
    assert sluice("keys", "create", "--role", "auditor", environment=environment(tmp_path)).returncode == 0
    ring.rename(tmp_path / "elsewhere.json")
    done = sluice("keys", "list", environment=environment(tmp_path))
    assert done.returncode == 1
    assert f"There is no key ring at {ring}" in done.stderr
    assert not ring.exists()


def test_a_command_says_which_database_it_used_and_never_a_password(tmp_path: Path) -> None:
    made = sluice("keys", "create", "--role", "auditor", environment=environment(tmp_path))
    listed = sluice("keys", "list", environment=environment(tmp_path))
    for done in (made, listed):
        assert f"sluice: using SQLite database {tmp_path}/sluice.db\n" in done.stderr
        assert "using" not in done.stdout
    url = "postgresql://nobody:n0-one-h3re@127.0.0.1:1/none"
    away = sluice(
        "keys", "create", "--role", "auditor", environment=environment_of(tmp_path, SLUICE_DATABASE__URL=url)
    )
    assert away.returncode == 3
    assert "using PostgreSQL database 127.0.0.1:1/none" in away.stderr
    assert "n0-one-h3re" not in away.stderr


def test_the_version_is_printed(tmp_path: Path) -> None:
    done = sluice("--version", environment=environment(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sluice ")
    assert done.stdout.split()[1] == __version__


@pytest.mark.parametrize(("typed", "expected"), [("sluice ke", "keys"), ("sluice keys cr", "create")])
def test_a_shell_completes_commands(tmp_path: Path, typed: str, expected: str) -> None:
    asked = {
        "_SLUICE_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = sluice(environment={**environment(tmp_path), **asked})
    assert expected in done.stdout.split()
