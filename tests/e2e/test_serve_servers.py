"""`sluice serve` with MCP servers behind it, and `sluice apply`: what is printed, what is served, what is refused."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.running import Service, begun, environment_of, running, sluice
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Run an MCP server."""
    with serving_http(ScriptedServer()) as found:
        yield found


@pytest.fixture
def config(url: str, tmp_path: Path) -> Path:
    """Return the file of an MCP host with two servers."""
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"one": {"url": url}, "two": {"type": "http", "url": url}}}))
    return file


def tools(service: Service) -> list[str]:
    """Return the names of the tools, once there are some."""
    headers = {
        "Authorization": f"Bearer {service.key}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/list",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}

    def listed() -> list[str]:
        answer = httpx2.post(f"{service.url}/mcp", json=body, headers=headers, trust_env=False).json()
        return [tool["name"] for tool in answer["result"]["tools"]]

    return eventually(listed)


def eventually(read: Callable[[], Any], seconds: float = 20) -> Any:
    """Return what ``read`` gives once that is something."""
    until = time.monotonic() + seconds
    while not (found := read()):
        assert time.monotonic() < until
        time.sleep(0.1)
    return found


def printed(folder: Path, start: str) -> str:
    """Return the line of standard error that begins with ``start``."""

    def found() -> str:
        lines = (folder / "log").read_text().splitlines()
        return next((line for line in lines if line.startswith(start)), "")

    return str(eventually(found))


def test_all_servers_of_a_file_are_served_and_named(config: Path, tmp_path: Path) -> None:
    with running(tmp_path, "--config", str(config)) as service:
        assert printed(tmp_path, "Serving") == "Serving all 2 available servers: one, two"
        names = tools(service)
    assert {"one__echo", "two__echo"} <= set(names)


def test_named_servers_and_filtered_tools_are_served_alone(config: Path, tmp_path: Path) -> None:
    with running(tmp_path, "one", "--config", str(config), "--filter", "one:echo,add") as service:
        assert printed(tmp_path, "Serving") == "Serving 1 servers: one"
        assert sorted(tools(service)) == ["one__add", "one__echo"]


def test_a_negative_filter_takes_tools_away(config: Path, tmp_path: Path) -> None:
    with running(tmp_path, "one", "--config", str(config), "--filter", "one:-echo") as service:
        names = tools(service)
    assert "one__add" in names
    assert "one__echo" not in names


def test_an_unknown_server_ends_the_start_with_an_error(config: Path, tmp_path: Path) -> None:
    done = sluice(
        *("serve", "one", "nine", "--config", str(config), "--port", "0"),
        environment=environment_of(tmp_path),
    )
    assert done.returncode == 1
    assert "Error: Servers not found: nine" in done.stderr.splitlines()
    assert "Traceback" not in done.stderr


def test_a_server_that_is_down_is_named_and_the_other_is_served(config: Path, tmp_path: Path) -> None:
    declared = json.loads(config.read_text())
    declared["mcpServers"]["two"] = {"url": "http://127.0.0.1:9/mcp"}
    config.write_text(json.dumps(declared))
    with running(tmp_path, "--config", str(config)) as service:
        assert printed(tmp_path, "  two: ").startswith("  two: Server 'two' cannot be reached")
        assert all(name.startswith("one__") for name in tools(service))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            '{"mcpServers": {\n"a": {"comand": "x"}}}',
            "mcp.json:2: mcpServers.a.comand: There is no such member; is comm",
        ),
        ("{", "mcp.json:1: The file is not valid JSON"),
    ],
)
def test_a_wrong_file_ends_the_start_and_apply_with_file_line_and_reason(
    content: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(content)
    for command in (("serve", "--config", str(file), "--port", "0"), ("apply", str(file))):
        done = sluice(*command, environment=environment_of(tmp_path))
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = sluice("apply", str(tmp_path / "none.json"), environment=environment_of(tmp_path))
    assert done.returncode == 1
    assert "none.json" in done.stderr


def test_apply_shows_the_plan_then_does_it_then_finds_nothing_to_do(config: Path, tmp_path: Path) -> None:
    environment = begun(tmp_path)
    sluice("tenants", "create", "acme", environment=environment)  # a dry run begins no installation
    shown, done, again = (
        sluice("apply", str(config), *options, environment=environment)
        for options in (("--dry-run",), (), ())
    )
    assert shown.stdout.splitlines() == [
        "+ server one",
        "+ server two",
        "2 would change, 0 match the file.",
    ]
    assert done.stdout.splitlines()[-1] == "2 changed, 0 match the file."
    assert again.stdout.splitlines() == ["Nothing to change: 2 entries match the file."]
    assert json.loads(sluice("apply", str(config), "--json", environment=environment).stdout) == {
        "applied": True,
        "changes": [],
        "unchanged": 2,
    }


def test_a_running_service_follows_what_apply_changes(config: Path, tmp_path: Path) -> None:
    with running(tmp_path, "--config", str(config)) as service:
        tools(service)
        declared = json.loads(config.read_text())
        del declared["mcpServers"]["two"]
        declared["groups"] = [{"name": "sums", "members": [{"kind": "tool", "name": "one__add"}]}]
        config.write_text(json.dumps(declared))
        done = sluice("apply", str(config), environment=service.environment)
        assert done.stdout.splitlines()[:2] == ["- server two", "+ group sums"]
        eventually(lambda: not [name for name in tools(service) if name.startswith("two__")], 60)
