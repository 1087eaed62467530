"""What reaches a server, to the very bound."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.core.catalog.servers import MCPServerSettings, ServerEntry
from app.core.catalog.tool_filter import ExposedTools


@pytest.mark.parametrize(
    ("fits", "exceeds"),
    [
        ({"timeoutS": 0.5}, {"timeoutS": 0}),
        ({"timeoutS": 3600}, {"timeoutS": 3601}),
        ({"args": ["a"] * 256}, {"args": ["a"] * 257}),
        ({"args": ["a" * 8192]}, {"args": ["a" * 8193]}),
        ({"command": "c" * 4096}, {"command": "c" * 4097}),
        ({"cwd": "c" * 4096}, {"cwd": "c\0"}),
        ({"env": {"A": "b=c"}}, {"env": {"A=": "b"}}),
        ({"env": {"A": ""}}, {"env": {"": "a"}}),
        ({"env": {"A": "b\n"}}, {"env": {"A": "b\0"}}),
        ({"description": "d" * 4096}, {"description": "d" * 4097}),
    ],
)
def test_the_bound_itself_fits_and_one_more_does_not(fits: dict[str, Any], exceeds: dict[str, Any]) -> None:
    MCPServerSettings.model_validate({"command": "c", **fits})
    with pytest.raises(ValidationError):
        MCPServerSettings.model_validate({"command": "c", **exceeds})


@pytest.mark.parametrize(
    ("fits", "wrong"),
    [
        ("https://h/x", "https://h/ x"),
        ("http://h:1/", "http://h:0/"),
        ("http://h:65535/", "http://h:65536/"),
        ("https://[::1]/", "https:///x"),
        ("HTTPS://h", "ftp://h"),
        ("https://h/u@p", "https://u@h/"),
        ("https://h", "https://:p@h/"),
        ("https://h/" + "a" * 2038, "https://h/" + "a" * 2039),
    ],
)
def test_which_addresses_are_taken(fits: str, wrong: str) -> None:
    assert MCPServerSettings.model_validate({"url": fits}).type == "http"
    with pytest.raises(ValidationError):
        MCPServerSettings.model_validate({"url": wrong})


@pytest.mark.parametrize(
    ("name", "value", "is_taken"),
    [
        ("X-Key", "a b", True),
        ("X Key", "a", False),
        ("", "a", False),
        ("X", "a\r\nB: c", False),
        ("X", "", True),
    ],
)
def test_a_header_is_a_word_and_its_value_one_line(name: str, value: str, is_taken: bool) -> None:
    given = {"url": "https://h", "headers": {name: value}}
    if is_taken:
        assert MCPServerSettings.model_validate(given).headers == {name: value}
    else:
        with pytest.raises(ValidationError):
            MCPServerSettings.model_validate(given)


@pytest.mark.parametrize(
    ("name", "is_taken"), [("a" * 64, True), ("a" * 65, False), (".a", False), ("a.", True)]
)
def test_a_server_s_name_has_up_to_64_characters(name: str, is_taken: bool) -> None:
    settings = MCPServerSettings(command="c")
    if is_taken:
        assert ServerEntry(name=name, settings=settings).disclosure == "flat"
    else:
        with pytest.raises(ValidationError):
            ServerEntry(name=name, settings=settings)


ALL, NONE = ExposedTools.parse(None), ExposedTools.parse([])
SOME, BUT = ExposedTools.parse(["a", "b"]), ExposedTools.parse(["-a", "-c"])


@pytest.mark.parametrize(
    ("left", "right", "allowed"),
    [
        (ALL, ALL, "abcd"),
        (ALL, SOME, "ab"),
        (SOME, ALL, "ab"),
        (SOME, BUT, "b"),
        (BUT, SOME, "b"),
        (BUT, BUT, "bd"),
        (BUT, ExposedTools.parse(["-d"]), "b"),
        (SOME, ExposedTools.parse(["b", "c"]), "b"),
        (NONE, ALL, ""),
        (BUT, NONE, ""),
    ],
)
def test_two_filters_together_allow_what_both_allow(
    left: ExposedTools, right: ExposedTools, allowed: str
) -> None:
    both = left.narrowed(right)
    assert "".join(name for name in "abcd" if both.allows(name)) == allowed
    assert ExposedTools.parse(both.spelled()) == both
