"""Settings of a server, as the files of MCP hosts have them."""

import pytest
from pydantic import ValidationError

from app.core.catalog.servers import MCPServerSettings, ServerEntry


def settings(**given):
    return MCPServerSettings.model_validate(given)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"command": "x"}, "stdio"),
        ({"url": "https://example.com/mcp"}, "http"),
        ({"type": "sse", "url": "http://example.com/sse"}, "sse"),
        ({"type": "http", "url": "http://example.com"}, "http"),
        ({"type": "streamable-http", "url": "http://example.com"}, "http"),
        ({"type": "streamableHttp", "url": "http://example.com"}, "http"),
        ({"transport": "sse", "url": "http://example.com"}, "sse"),
        ({"transport": "streamable_http", "url": "http://example.com"}, "http"),
    ],
)
def test_the_type_is_taken_from_what_is_there_and_from_the_spellings_of_hosts(given, kind):
    assert settings(**given).type == kind


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"args": ["x"]},
        {"type": "stdio", "url": "http://example.com"},
        {"type": "http", "command": "x"},
        {"type": "sse"},
        {"type": "websocket", "url": "http://example.com"},
        {"type": 7, "command": "x"},
        {"type": ["stdio"], "command": "x"},
        {"command": "x", "unknown": 1},
        {"command": ""},
        {"command": "x", "args": "x"},
        {"command": "x", "env": {"A": 1}},
        {"command": "x", "timeoutS": 0},
        {"command": "x", "roots": True},
        {"type": "stdio", "command": "x", "url": "http://example.com", "roots": True},
        {"url": "http://example.com", "roots": "often"},
        {"command": "x", "timeoutS": 3601},
        {"url": "ftp://example.com"},
        {"url": "example.com"},
        {"url": "http://"},
        {"url": "https://user:word@example.com"},
        {"url": "https://example.com:port/"},
        {"url": "https://example.com:0/"},
        {"url": "https://example.com:99999/"},
        {"url": "https://example.com/a b"},
        {"url": "https://example.com/\nX: y"},
        {"url": "https://example.com", "headers": {"A": "b\r\nX: y"}},
        {"url": "https://example.com", "headers": {"A b": "c"}},
        {"url": "https://example.com", "headers": {"": "c"}},
        {"command": "x\0"},
        {"command": "x", "args": ["a", "b\0"]},
        {"command": "x", "cwd": "\0"},
        {"command": "x", "env": {"A": "\0"}},
        {"command": "x", "env": {"A=B": "c"}},
        {"command": "x", "env": {"": "c"}},
        {"url": "https://[::1/"},
    ],
)
def test_settings_that_reach_no_server_are_refused(given):
    with pytest.raises(ValidationError):
        settings(**given)


def test_secrets_are_neither_in_the_representation_nor_in_errors():
    whole = settings(command="x", env={"TOKEN": "hunter2"})
    assert "hunter2" not in repr(whole) + str(whole)
    with pytest.raises(ValidationError) as refused:
        settings(command="x", env={"TOKEN": "hunter2", "A": 1}, headers="hunter2")
    assert "hunter2" not in str(refused.value)


def test_settings_are_written_as_they_are_read():
    whole = settings(url="https://example.com/mcp", timeoutS=5, namespace=False, headers={"A": "b"})
    written = whole.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    assert MCPServerSettings.model_validate(written) == whole
    assert written["timeoutS"] == 5


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a/b", "a" * 65, "é", "a\n"])
def test_names_that_would_be_ambiguous_are_refused(name):
    with pytest.raises(ValidationError):
        ServerEntry(name=name, settings=settings(command="x"))


@pytest.mark.parametrize("name", ["a", "a" * 64, "A.b_c-d", "0", "a__b"])
def test_plain_names_are_taken(name):
    assert ServerEntry(name=name, settings=settings(command="x")).disclosure == "flat"
