"""Commands that read create nothing and say what they read; the small options that save hours."""

from pathlib import Path

import pytest

from app import __version__
from tests.e2e.running import environment_of, sluice
from tests.e2e.test_cli_groups import DOCUMENT as GROUPS
from tests.e2e.test_cli_pipelines import PIPELINE

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
    "db index-vectors",
    "keys revoke 0a1b2c3d --yes",
    "vault erase --scope talk --yes",
    "vault rewrap",
    "vault replay-erasures",
    # These begin an installation, but only on a database that was made: its address could be mistyped.
    "keys create --role invoker",
    "tenants create acme",
    "apply {files}/declaration.yaml",
    "documents add {files}/notes.txt -c notes",
    "groups import {files}/groups.yaml",
    "pipelines put {files}/pipeline.yaml",
)


def environment(folder: Path) -> dict[str, str]:
    return environment_of(folder, SLUICE_KEYS__FILE=str(folder / "keyring.json"))


def test_no_command_creates_a_database_and_one_that_reads_no_ring(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = tmp_path_factory.mktemp("files")
    contents = {
        "declaration.yaml": "{}",
        "notes.txt": "Notes",
        "groups.yaml": GROUPS,
        "pipeline.yaml": PIPELINE,
    }
    for name, content in contents.items():
        (files / name).write_text(content)
    for command in READING:
        done = sluice(*command.format(files=files).split(), environment=environment(tmp_path))
        assert (done.returncode, done.stdout) == (1, ""), command
        assert f"There is no SQLite database {tmp_path}/sluice.db" in done.stderr, command
        assert done.stderr.count("\n") == 1
        assert list(tmp_path.iterdir()) == [], command


def test_without_its_ring_a_database_is_not_read_and_no_other_ring_is_made(tmp_path: Path) -> None:
    ring = tmp_path / "keyring.json"
    sluice("db", "upgrade", environment=environment(tmp_path))
    assert sluice("keys", "create", "--role", "auditor", environment=environment(tmp_path)).returncode == 0
    ring.rename(tmp_path / "elsewhere.json")
    done = sluice("keys", "list", environment=environment(tmp_path))
    assert done.returncode == 1
    assert f"There is no key ring at {ring}" in done.stderr
    assert not ring.exists()


def test_a_command_says_which_database_it_used_and_never_a_password(tmp_path: Path) -> None:
    sluice("db", "upgrade", environment=environment(tmp_path))
    made = sluice("keys", "create", "--role", "auditor", environment=environment(tmp_path))
    listed = sluice("keys", "list", environment=environment(tmp_path))
    for done in (made, listed):
        assert f"sluice: on this host, SQLite database {tmp_path}/sluice.db\n" in done.stderr
        assert "on this host" not in done.stdout
    url = "postgresql://nobody:n0-one-h3re@127.0.0.1:1/none"
    away = sluice(
        "keys", "create", "--role", "auditor", environment=environment_of(tmp_path, SLUICE_DATABASE__URL=url)
    )
    assert away.returncode == 3
    assert "on this host, PostgreSQL database 127.0.0.1:1/none" in away.stderr
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
