"""The registry of servers: the file that MCP hosts share, read, narrowed and written."""

import json
import stat

import pytest

from app.upstream.registry import MCPServerSettings, ServerRegistry

SERVERS = {
    "memory": {"command": "mcp-memory", "args": ["--file", "x"], "description": "Remembers things"},
    "github": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "secret"}},
    "old": {"type": "sse", "url": "https://example.com/sse"},
}


@pytest.fixture
def registry():
    return ServerRegistry.from_dict(SERVERS)


def test_filter_servers_keeps_the_named_ones_in_the_order_of_the_registry(registry):
    filtered = registry.filter_servers(["old", "memory", "memory"])
    assert filtered.list_servers() == ["memory", "old"]
    assert filtered.registry["memory"] is registry.registry["memory"]
    assert registry.list_servers() == ["memory", "github", "old"]


def test_filter_servers_names_all_that_are_missing(registry):
    with pytest.raises(ValueError, match=r"^Servers not found: a, b$"):
        registry.filter_servers(["a", "memory", "b"])


def test_filter_servers_with_an_empty_list_gives_an_empty_registry(registry):
    assert registry.filter_servers([]).list_servers() == []


def test_settings_are_made_as_the_rfc_has_them():
    settings = MCPServerSettings(
        type="stdio", command="python", args=["-m", "x"], env={"A": "b"}, description="d"
    )
    assert ServerRegistry({"x": settings}).registry["x"] is settings


def test_from_dict_infers_the_type():
    registry = ServerRegistry.from_dict({"a": {"command": "x"}, "b": {"url": "http://localhost/mcp"}})
    assert [one.type for one in registry.registry.values()] == ["stdio", "http"]


def test_a_file_is_read_and_what_stands_beside_the_servers_is_left_alone(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": SERVERS, "groups": [], "theme": "dark"}))
    for given in (path, str(path)):
        assert ServerRegistry.from_config(given).list_servers() == ["memory", "github", "old"]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Config file not found: .*absent\.json"):
        ServerRegistry.from_config(tmp_path / "absent.json")


def test_a_file_without_servers_is_refused_in_the_agreed_words(tmp_path):
    path = tmp_path / "mcp.json"
    for text in ("{}", "[]", '{"servers": {}}'):
        path.write_text(text)
        with pytest.raises(KeyError) as refused:
            ServerRegistry.from_config(path)
        assert refused.value.args == ("Config file must have a 'mcpServers' section",)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"mcpServers": []}',
        '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}',
        '{"mcpServers": {"a": {"env": {"K": "top secret"}}}}',
        '{"mcpServers": {"a": {"command": "x", "env": {"K": 1}, "headers": "top secret"}}}',
        '{"mcpServers": {"a/b": {"command": "x"}}}',
    ],
)
def test_a_wrong_file_is_a_value_error_that_shows_no_secret(tmp_path, text):
    path = tmp_path / "mcp.json"
    path.write_text(text)
    with pytest.raises(ValueError) as refused:
        ServerRegistry.from_config(path)
    assert "top secret" not in str(refused.value)


def test_what_is_saved_is_what_is_read_and_only_the_owner_may_read_it(tmp_path, registry):
    path = tmp_path / "new" / "mcp.json"
    registry.save_config(path)
    assert ServerRegistry.from_config(path).registry == registry.registry
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["mcpServers"]["memory"] == {"type": "stdio", **SERVERS["memory"]}
    registry.filter_servers(["old"]).save_config(str(path))
    assert ServerRegistry.from_config(path).list_servers() == ["old"]
    assert [one.name for one in path.parent.iterdir()] == ["mcp.json"]


def test_our_own_members_survive_saving(tmp_path):
    registry = ServerRegistry.from_dict(
        {"a": {"command": "x", "namespace": False, "timeoutS": 5, "cwd": "/"}}
    )
    registry.save_config(tmp_path / "mcp.json")
    assert ServerRegistry.from_config(tmp_path / "mcp.json").registry == registry.registry


def test_the_info_of_a_server_is_one_line_without_secrets(registry):
    assert registry.get_server_info("memory") == "memory: stdio: mcp-memory --file x - Remembers things"
    assert registry.get_server_info("github") == "github: http: https://example.com/mcp"
    assert registry.get_server_info("absent") == "Server 'absent' not found"


async def test_a_client_of_an_unknown_server_is_refused(registry):
    with pytest.raises(ValueError, match="Server 'absent' not found in registry"):
        async with registry.get_client("absent"):
            pass


def test_members_that_hosts_keep_for_themselves_are_passed_over():
    registry = ServerRegistry.from_dict({"time": {"command": "x", "autoApprove": ["a"], "disabled": False}})
    assert registry.registry["time"].command == "x"


def test_a_member_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="comand"):
        ServerRegistry.from_dict({"time": {"command": "x", "comand": "y"}})
