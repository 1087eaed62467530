"""`sluice status`: what holds, what is wrong and how to mend it, with exit codes, and never a secret."""

import json
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import Service, begun, environment_of, running, sluice
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

SECRET = "s3cret-of-the-server"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("status")
    with serving_http(ScriptedServer("alpha")) as url:
        config = folder / "mcp.json"
        servers = {
            "alpha": {"url": url, "headers": {"X-Key": SECRET}},
            "gone": {"url": "http://127.0.0.1:9/mcp"},
        }
        config.write_text(json.dumps({"mcpServers": servers}))
        with running(folder, "--config", str(config), SLUICE_DETECTION__WARM="false") as started:
            yield started


def findings(code: int, *arguments: str, environment: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the findings by part; the exit code and the state of the whole must agree."""
    done = sluice("status", "--json", *arguments, environment=environment)
    assert done.returncode == code, done.stdout + done.stderr
    read = json.loads(done.stdout)
    assert read["state"] == {0: "ok", 1: "wrong", 3: "unreachable"}[code]
    return {finding["part"]: finding for finding in read["findings"]}


def test_what_runs_is_shown_with_its_servers_and_without_secrets(service: Service) -> None:
    environment = {**service.environment, **service.client}
    found = findings(1, environment=environment)
    assert found["service"]["facts"]["checks"]["database"] is True
    assert found["schema"]["says"].endswith("(newest)")
    assert (found["keys"]["facts"]["versions"], found["keys"]["facts"]["active"]) == ([1], 1)
    assert found["mark"]["facts"]["erasures"] == 0
    assert set(found["tenants"]["facts"]["names"]) == {"default", "system"}
    (process,) = found["processes"]["facts"]["serving"]
    assert process["release"] == sluice("--version", environment=environment).stdout.split()[1]
    assert found["detector"]["facts"] == {"workers": 2, "ready": True, "deaths": 0}
    # One server answers and one does not: only the second is wrong, and the finding says how to look closer.
    alpha, gone = found["server default/alpha"], found["server default/gone"]
    assert (alpha["state"], alpha["says"]) == ("ok", "approved, ready")
    assert (gone["state"], gone["mend"]) == ("wrong", "sluice servers test gone --tenant default")
    assert {part for part in found if found[part]["state"] == "wrong"} == {
        "server default/gone",
        "connections",
    }
    assert found["traces"]["mend"] == "set SLUICE_TELEMETRY__OTLP_ENDPOINT"
    ring = json.loads(Path(found["keys"]["facts"]["source"]).read_text())
    for arguments in ((), ("--json",)):
        printed = sluice("status", *arguments, environment=environment)
        for secret in (SECRET, service.key, ring["keys"]["1"]):
            assert secret not in printed.stdout + printed.stderr


def await_state(service: Service, code: int) -> "subprocess.CompletedProcess[str]":
    """Wait until the service has followed a command, which takes it seconds."""
    until = time.monotonic() + 30
    while (done := service.sluice("status")).returncode != code:
        assert time.monotonic() < until, done.stdout
        time.sleep(0.5)
    return done


def test_without_a_key_the_counts_of_connections_remain(service: Service) -> None:
    environment = {**service.environment, "SLUICE_URL": service.url}
    found = findings(1, environment=environment)
    assert found["server default/gone"]["says"] == "approved"
    assert (found["connections"]["facts"]["ready"], found["connections"]["facts"]["failed"]) == (1, 1)
    refused = findings(1, environment={**environment, "SLUICE_API_KEY": f"{service.key}x"})
    assert "not valid" in refused["connections"]["says"]


def test_a_service_that_holds_ends_with_zero_whatever_is_off(service: Service) -> None:
    assert service.sluice("servers", "pause", "gone").returncode == 0
    try:
        done = await_state(service, 0)
        found = findings(0, environment={**service.environment, **service.client})
    finally:
        assert service.sluice("servers", "resume", "gone").returncode == 0
        await_state(service, 1)
    assert {finding["state"] for finding in found.values()} == {"ok", "off"}
    gone = found["server default/gone"]
    assert (gone["state"], gone["mend"]) == ("off", "sluice servers resume gone --tenant default")
    assert f"{service.url} is ready" in done.stdout
    assert done.stderr == ""


def test_a_service_of_another_database_is_noticed(service: Service, tmp_path: Path) -> None:
    environment = begun(tmp_path, SLUICE_URL=service.url)
    made = sluice("keys", "create", "--role", "auditor", environment=environment)
    assert made.returncode == 0
    found = findings(1, environment=environment)
    assert found["processes"]["state"] == "wrong"
    assert found["service"]["state"] == "ok"


def test_nothing_running_is_unreachable_and_nothing_is_made(tmp_path: Path) -> None:
    found = findings(3, environment=environment_of(tmp_path, SLUICE_HTTP__PORT="9"))
    assert found["service"]["facts"]["url"] == "http://127.0.0.1:9"
    assert (found["service"]["state"], found["database"]["state"]) == ("unreachable", "wrong")
    assert list(tmp_path.iterdir()) == []
    away = environment_of(tmp_path, SLUICE_DATABASE__URL="postgresql://nobody:n0-one-h3re@127.0.0.1:1/none")
    done = sluice("status", environment={**away, "SLUICE_HTTP__PORT": "9"})
    assert (done.returncode, done.stderr) == (3, "")
    assert "PostgreSQL database 127.0.0.1:1/none does not answer" in done.stdout
    assert "n0-one-h3re" not in done.stdout


def test_faults_of_the_installation_say_how_they_are_mended(service: Service, tmp_path: Path) -> None:
    environment = begun(tmp_path, SLUICE_URL=service.url)
    assert sluice("keys", "create", "--role", "auditor", environment=environment).returncode == 0
    ring, spare = tmp_path / "keyring.json", tmp_path / "spare.json"
    shutil.move(ring, spare)
    assert "cannot be read" in findings(1, environment=environment)["keys"]["says"]
    assert not ring.exists()
    (tmp_path / "other").mkdir()
    other = begun(tmp_path / "other", SLUICE_URL=service.url)
    assert sluice("keys", "create", "--role", "auditor", environment=other).returncode == 0
    shutil.copy(tmp_path / "other" / "keyring.json", ring)
    assert findings(1, environment=environment)["keys"]["state"] == "wrong"
    ring.unlink()
    shutil.move(spare, ring)
    assert findings(1, environment=environment)["keys"]["state"] == "ok"
    assert sluice("db", "downgrade", "--yes", "--", "-1", environment=environment).returncode == 0
    found = findings(1, environment=environment)
    assert (found["schema"]["state"], found["schema"]["mend"]) == ("wrong", "run `sluice db upgrade`")


def test_a_database_behind_its_mark_is_wrong(service: Service, tmp_path: Path) -> None:
    folder = Path(service.environment["SLUICE_DATABASE__URL"].removeprefix("sqlite:///")).parent
    with sqlite3.connect(folder / "sluice.db") as source, sqlite3.connect(tmp_path / "sluice.db") as copy:
        source.backup(copy)
    shutil.copy(folder / "keyring.json", tmp_path / "keyring.json")
    (mark,) = folder.glob("mark-*.json")
    read = json.loads(mark.read_text())
    environment = environment_of(tmp_path, SLUICE_URL=service.url)
    for step, state in ((1, "ok"), (10**6, "wrong")):
        (tmp_path / mark.name).write_text(json.dumps({**read, "step": step}))
        found = findings(1, environment=environment)["mark"]
        assert found["state"] == state
    assert "sluice vault replay-erasures" in found["mend"]


@pytest.mark.parametrize("arguments", [("--url", "ftp://127.0.0.1"), ("--jason",), ("--timeout", "0")])
def test_wrong_usage_ends_with_two(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = sluice("status", *arguments, environment=environment_of(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
