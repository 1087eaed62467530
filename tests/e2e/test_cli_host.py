"""The commands that work on the host, against a database of their own."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from tests.e2e.running import begun, running, sluice


class Shell:
    """Run commands that must succeed."""

    def __init__(self, folder: Path) -> None:
        self.environment = begun(folder)

    def __call__(self, *arguments: str, given: str = "") -> str:
        done = sluice(*arguments, environment=self.environment, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_keys_are_made_listed_rotated_and_ended_and_all_of_it_is_on_record(shell: Shell) -> None:
    key = shell("keys", "create", "--role", "invoker", "--name", "chat", "--expires", "90d").strip()
    key_id = key.split("_")[1]
    rotated = shell("keys", "rotate", key_id).strip()
    listed = json.loads(shell("keys", "list", "--json"))
    shell("keys", "revoke", key_id, "--yes")

    assert rotated != key
    assert rotated.split("_")[1] == key_id
    assert [(one["id"], one["name"], one["roles"], one["state"]) for one in listed] == [
        (key_id, "chat", ["invoker"], "rotating")
    ]
    assert json.loads(shell("keys", "list", "--json"))[0]["state"] == "revoked"
    events = [json.loads(line) for line in shell("audit", "query", "--json").splitlines()]
    done = [event["action"] for event in events if event["actor"] == "cli"]
    assert done == ["key.revoke", "key.rotate", "key.create"]
    assert key.split("_", 2)[2] not in json.dumps(events)


def test_a_key_that_the_host_makes_waits_for_nobody(shell: Shell) -> None:
    key_id = shell("keys", "create", "--role", "restorer").split("_")[1]
    refused = sluice("keys", "approve", key_id, environment=shell.environment)

    assert json.loads(shell("keys", "list", "--json"))[0]["state"] == "live"
    assert (refused.returncode, "waits for no approval" in refused.stderr) == (1, True)
    events = [
        json.loads(line) for line in shell("audit", "query", "--action", "key.create", "--json").splitlines()
    ]
    assert events[0]["details"]["custody"] == "exempt"


def test_a_tenant_gets_keys_of_its_own(shell: Shell) -> None:
    shell("tenants", "create", "acme")
    key = shell("keys", "create", "--tenant", "acme", "--role", "auditor").strip()

    assert [one["id"] for one in json.loads(shell("keys", "list", "--tenant", "acme", "--json"))] == [
        key.split("_")[1]
    ]
    assert json.loads(shell("keys", "list", "--json")) == []
    assert [one["name"] for one in json.loads(shell("tenants", "list", "--json"))] == [
        "acme",
        "default",
        "system",
    ]


def test_refused_roles_are_explained(shell: Shell) -> None:
    done = sluice("keys", "create", "--role", "operator", "--role", "restorer", environment=shell.environment)

    assert done.returncode == 1
    assert "operator + restorer" in done.stderr


def test_the_schema_goes_back_and_forth(shell: Shell) -> None:
    shell("db", "upgrade")
    newest = shell("db", "current")
    shell("db", "downgrade", "base", "--yes")
    empty = shell("db", "current")
    shell("db", "upgrade")

    assert "(newest)" in newest
    assert "empty" in empty
    assert shell("db", "current") == newest


def test_the_record_is_exported_once_and_never_over_another_file(shell: Shell, tmp_path: Path) -> None:
    shell("tenants", "create", "acme")
    file = tmp_path / "record.csv"
    shell("audit", "export", "--format", "csv", "--output", str(file))
    again = sluice("audit", "export", "--output", str(file), environment=shell.environment)

    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert "tenant.create" in {row["action"] for row in rows}
    assert again.returncode == 1
    assert "already exists" in again.stderr


def test_scopes_are_shown_ended_and_erased(tmp_path: Path, shell: Shell) -> None:
    with running(tmp_path) as service:
        for scope in ("one", "two", "three"):
            service.sluice("invoke", "pii_redaction", "--scope", scope, given="John Doe, 123-45-6789")
    shell("vault", "expire", "two", "7d")
    by_handle = json.loads(shell("vault", "erase", "--scope", "two", "--handle", "SSN_1", "--yes"))
    by_value = json.loads(shell("vault", "erase", "--value", "-", "--yes", given="John Doe\n"))
    shell("vault", "erase", "--scope", "three", "--yes")
    left = {
        json.loads(line)["scope"]: json.loads(line)
        for line in shell("vault", "scopes", "--json").splitlines()
    }

    assert by_handle["erased"] == {"SSN": 1}
    assert by_value["erased"] == {"PERSON": 3}
    assert set(left) == {"one", "two"}
    assert left["one"]["counts"] == {"SSN": 1}
    assert json.loads(shell("vault", "show", "one"))["expires"] > left["two"]["expires"]

    why = ("--reason", "Request 2026-114")
    seen = json.loads(shell("subjects", "search", "-", *why, "--json", given="\n123-45-6789 \nJohn Doe\n"))
    assert (seen["by_value"], [item["scope"] for item in seen["items"]]) == ([1, 0], ["one"])
    values = tmp_path / "values.txt"
    values.write_text("123-45-6789\n")
    named = ("subjects", "erase", str(values), *why)
    assert json.loads(shell(*named, "--preview"))["counts"] == {"SSN": 1}
    receipt = shell(*named, "--yes")
    stated = json.loads(receipt.splitlines()[1])
    assert (stated["erased"], stated["ordered_by"]) == ({"SSN": 1}, "cli")
    assert shell("subjects", "receipt", stated["id"]) == receipt
    foreign = sluice("subjects", "receipt", stated["id"], "--tenant", "system", environment=shell.environment)
    assert (foreign.returncode, foreign.stdout) == (1, "")
    assert json.loads(shell(*named, "--preview"))["total"] == 0


def test_what_was_redacted_under_an_old_key_is_restored_after_rotation_and_re_wrap(
    tmp_path: Path, shell: Shell
) -> None:
    with running(tmp_path) as service:
        service.sluice("invoke", "pii_redaction", "--scope", "s", given="I am John Doe.")
    shell("vault", "rotate-keys")
    rewrapped = shell("vault", "rewrap")
    epoch = shell("vault", "restore-epoch")
    with running(tmp_path) as service:
        restored = service.sluice("invoke", "pii_restoration", "--scope", "s", given="I am [PERSON_1].")
        later = service.sluice("invoke", "pii_redaction", "--scope", "s", given="I am Jane Smith.")

    assert "under version 2; 0 remain" in rewrapped
    assert "epoch is now 1" in epoch
    assert restored.stdout == "I am John Doe.\n"
    assert later.stdout == "I am [PERSON_2000001].\n"


def test_the_host_gets_a_link_to_the_console_for_a_key_that_it_names(shell: Shell) -> None:
    key = shell("keys", "create", "--role", "auditor").strip()
    link = shell("console", "--print", "--key", key.split("_")[1], "--url", "https://sluice.example/")
    entrance = rf"https://sluice\.example/console/sign-in#default\.{key.split('_')[1]}\.[\w-]{{43}}\n"
    assert re.fullmatch(entrance, link)
    unknown = sluice("console", "--print", "--key", "00000000", environment=shell.environment)
    assert (unknown.returncode, "no such key" in unknown.stderr) == (1, True)
    unnamed = sluice("console", "--print", environment=shell.environment)
    assert (unnamed.returncode, "name one with --key" in unnamed.stderr) == (2, True)
