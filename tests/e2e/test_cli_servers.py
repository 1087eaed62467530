"""`sluice servers` on the host, and that a running service follows it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.e2e.running import Service, begun, running, sluice
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import MISDECLARED, ScriptedServer

SECRET = "s3cret-of-the-server"


@pytest.fixture
def script() -> ScriptedServer:
    made = ScriptedServer("alpha")
    made.tools["region"]["inputSchema"] = MISDECLARED
    return made


@pytest.fixture
def service(tmp_path: Path, script: ScriptedServer) -> Iterator[Service]:
    with serving_http(script) as url:
        config = tmp_path / "mcp.json"
        server = {"url": url, "headers": {"X-Key": SECRET}}
        config.write_text(json.dumps({"mcpServers": {"alpha": server}}))
        with running(tmp_path, "--config", str(config)) as started:
            yield started


def said(service: Service, *arguments: str, code: int = 0) -> str:
    done = service.sluice("servers", *arguments)
    assert done.returncode == code, done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def follows(service: Service, state: str | None) -> None:
    """Wait until the running service tells this state of its connection."""
    headers = {"authorization": f"Bearer {service.key}"}
    until = time.monotonic() + 60
    while True:
        found = httpx2.get(f"{service.url}/api/v1/servers/alpha", headers=headers, trust_env=False)
        status = found.json().get("status")
        if (status["state"] if status else None) == state:
            return
        assert time.monotonic() < until, found.text
        time.sleep(0.2)


def test_servers_are_listed_tested_approved_paused_and_removed_on_the_host(
    service: Service, script: ScriptedServer
) -> None:
    follows(service, "ready")
    (listed,) = json.loads(said(service, "list", "--json"))
    assert (listed["name"], listed["state"], listed["origin"]) == ("alpha", "approved", "file")
    assert json.loads(said(service, "show", "alpha"))["settings"]["headers"] == {"X-Key": None}

    script.tools["echo"] |= {"description": "Now other."}
    tried = said(service, "test", "alpha")
    assert "1 prompts" in tried and "invalid-header" in tried and "changed" in tried
    approved = said(service, "approve", "alpha", "--only", "tool:echo")
    assert "1 definitions" in approved and "region" in approved
    assert "tool:NAME" in said(service, "approve", "alpha", "--only", "echo", code=2)

    said(service, "pause", "alpha")
    follows(service, None)
    assert "approved" in said(service, "resume", "alpha")
    follows(service, "ready")
    assert "--yes" in said(service, "remove", "alpha", code=2)
    said(service, "remove", "alpha", "--yes")
    assert json.loads(said(service, "list", "--json")) == []


def test_a_server_that_does_not_answer_fails_the_test_with_a_reason(tmp_path: Path) -> None:
    environment = begun(tmp_path)
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"down": {"url": "http://127.0.0.1:9/mcp"}}}))
    assert sluice("apply", str(config), environment=environment).returncode == 0
    done = sluice("servers", "test", "down", environment=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert "down" in done.stderr
