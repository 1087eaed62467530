"""``sluice policies``, against a database of its own."""

import json
from pathlib import Path

import pytest

from tests.e2e.running import begun, environment_of, sluice

NARROW = {"allowed_middlewares": ["pii_redaction"], "limits": {"burst": 25}}


class Shell:
    """Run commands of ``sluice policies`` on a database of their own."""

    def __init__(self, folder: Path) -> None:
        self.environment = environment_of(folder)

    def __call__(self, *arguments: str, given: str = "", code: int = 0) -> str:
        done = sluice("policies", *arguments, environment=self.environment, given=given)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return the commands on an installation that a first key began."""
    made = sluice("keys", "create", "--role", "invoker", environment=begun(tmp_path))
    assert made.returncode == 0, made.stderr
    return Shell(tmp_path)


def test_a_file_is_compared_stored_and_refused_where_it_is_based_on_another_version(
    shell: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(NARROW))
    compared = shell("diff", str(file))
    assert "/limits/burst" in compared
    assert "It widens no right." in compared
    assert "Version 1 of tenant default" in shell("put", str(file), "--expected-version", "0")
    assert "changed meanwhile" in shell("put", str(file), "--expected-version", "0", code=1)
    widened = json.loads(shell("diff", "-", "--json", given="{}"))["widened"]
    assert [entry["pointer"] for entry in widened] == ["/allowed_middlewares", "/limits/burst"]


def test_a_policy_is_shown_and_explained(shell: Shell) -> None:
    assert "It widens /limits/burst: a higher limit." in shell("put", "-", given="limits: {burst: 326}")
    assert json.loads(shell("get"))["limits"]["burst"] == 326
    assert "now: 326 (default: 300)" in shell("explain", "limits.burst")
    assert "no member limits.brust" in shell("explain", "limits.brust", code=1)


def test_a_file_that_is_no_policy_is_refused_without_being_repeated(shell: Shell) -> None:
    assert "Canary" not in shell("put", "-", given="Canary-4711: 1", code=1)
