"""The three forms of a server's entry: stored, shown and given; secrets are in one of them only, as ciphertext."""

from typing import Any

import pytest

from app.core.catalog.servers import MCPServerSettings, ServerEntry
from app.core.errors import InternalError, InvalidArgumentsError
from app.engines.cipher import RecordKeys
from app.services.servers.sealing import SubmittedServer, changed_parts, document_of, opened, sealed, shown
from app.store.servers import StoredServer
from tests.fakes import NOON

KEYS = RecordKeys(b"k" * 32)
HTTP = {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer s3cret", "X-Team": "a"}}
STDIO = {
    "command": "npx",
    "args": ["-y", "server"],
    "env": {"TOKEN": "t0ken"},
    "timeoutS": 5,
    "namespace": False,
}


def entry_of(settings: dict[str, Any], **more: Any) -> ServerEntry:
    return ServerEntry(name="alpha", settings=MCPServerSettings.model_validate(settings), **more)


def stored(entry: ServerEntry, tenant: str = "acme", name: str = "alpha") -> StoredServer:
    secrets = sealed(KEYS, "acme", entry)
    return StoredServer(tenant, name, document_of(entry), secrets, "api", "pending", None, NOON, "key", NOON)


@pytest.mark.parametrize("settings", [HTTP, STDIO, {"url": "http://localhost/mcp", "type": "sse"}])
def test_an_entry_comes_back_whole_and_its_row_holds_no_secret(settings: dict[str, Any]):
    entry = entry_of(settings, tool_filter=["-x"], aliases={"a": "b"}, disclosure="staged")
    row = stored(entry)
    assert opened(KEYS, row) == entry
    assert not any(word in f"{row.document} {row.secrets!r}" for word in ("s3cret", "t0ken"))
    assert "name" not in row.document


def test_without_secrets_nothing_is_sealed():
    assert sealed(KEYS, "acme", entry_of({"command": "npx"})) is None


@pytest.mark.parametrize(("tenant", "name"), [("other", "alpha"), ("acme", "beta")])
def test_secrets_open_only_where_they_were_sealed(tenant: str, name: str):
    with pytest.raises(InternalError):
        opened(KEYS, stored(entry_of(HTTP), tenant, name))


def test_what_is_shown_has_the_names_of_secrets_and_no_value():
    assert shown(entry_of(HTTP).settings)["headers"] == {"Authorization": None, "X-Team": None}
    assert shown(entry_of(STDIO).settings) == {
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "server"],
        "env": {"TOKEN": None},
        "headers": {},
        "namespace": False,
        "roots": False,
        "definitions": "pinned",
        "instructions": False,
        "timeoutS": 5.0,
    }


def test_what_is_shown_can_be_given_back_and_keeps_the_secrets():
    held = entry_of(HTTP).settings
    again = SubmittedServer({**shown(held), "description": "new"}).entry("alpha", held)
    assert again.settings.headers == HTTP["headers"]
    assert changed_parts(entry_of(HTTP), again) == "description"


def test_secrets_that_are_not_mentioned_stay_and_those_left_out_of_a_list_go():
    held = entry_of(HTTP).settings
    assert SubmittedServer({"url": HTTP["url"]}).entry("alpha", held).settings.headers == HTTP["headers"]
    one = SubmittedServer({"url": HTTP["url"], "headers": {"X-Team": None, "New": "v"}}).entry("alpha", held)
    assert one.settings.headers == {"X-Team": "a", "New": "v"}
    assert SubmittedServer({"url": HTTP["url"], "headers": {}}).entry("alpha", held).settings.headers == {}


def test_stored_secrets_never_go_to_another_address():
    held = entry_of(HTTP).settings
    elsewhere = "https://elsewhere.example.com/mcp"
    for given in ({"url": elsewhere}, {"url": elsewhere, "headers": {"Authorization": None}}):
        with pytest.raises(InvalidArgumentsError) as refused:
            SubmittedServer(given).entry("alpha", held)
        assert refused.value.details["pointer"] == "/settings"
    fresh = SubmittedServer({"url": elsewhere, "headers": {"Authorization": "new"}}).entry("alpha", held)
    assert fresh.settings.headers == {"Authorization": "new"}
    assert fresh.settings.env == {}


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({}, "/settings"),
        ({"url": "ftp://x"}, "/settings/url"),
        ({"url": "https://user:s3cret@x"}, "/settings/url"),
        ({"url": "https://x", "s3cret": 1}, "/settings"),
        ({"url": "https://x", "headers": "s3cret"}, "/settings/headers"),
        ({"url": "https://x", "headers": {"s3cret": 1}}, "/settings/headers"),
        ({"url": "https://x", "headers": {"s3cret": None}}, "/settings/headers"),
        ({"url": "https://x", "timeoutS": -1}, "/settings/timeoutS"),
    ],
)
def test_a_fault_is_pointed_at_without_repeating_what_stands_there(given: dict[str, Any], pointer: str):
    with pytest.raises(InvalidArgumentsError) as refused:
        SubmittedServer(given).entry("alpha")
    assert refused.value.details["pointer"] == pointer
    assert "s3cret" not in f"{refused.value.message} {refused.value.details}"
