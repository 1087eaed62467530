"""What ``sluice invoke`` takes for a context, for text and for arguments."""

import pytest

from app.cli.invoke.invoke import parsed_items, read_arguments
from app.cli.terminal import USAGE, CommandError


@pytest.mark.parametrize(
    "raw",
    [
        '[{"type": "text", "text": "x"}]',
        '[{"role": "user", "content": "x"}, {"type": "image"}]',
        '{"type": "text", "text": "x"}',
        "[]",
    ],
)
def test_blocks_and_messages_are_a_context(raw: str) -> None:
    assert isinstance(parsed_items(raw, required=False), list)


@pytest.mark.parametrize(
    "raw",
    [
        "Hello",
        "12",
        '"quoted"',
        '{"name": "John"}',
        '[{"type": "text"}, "x"]',
        "[1]",
        '{"type": 1}',
        "[" * 9999,
    ],
)
def test_everything_else_is_text_so_that_it_is_scanned(raw: str) -> None:
    assert parsed_items(raw, required=False) is None


def test_text_is_refused_where_a_context_is_required() -> None:
    with pytest.raises(CommandError) as caught:
        parsed_items("Hello", required=True)
    assert caught.value.code == USAGE


def test_arguments_are_json_where_they_can_be() -> None:
    found = read_arguments('{"a": 1, "b": 2}', ["b=true", "c=text", 'd=["x"]', "e=a=b", "f="], "s")

    assert found == {"a": 1, "b": True, "c": "text", "d": ["x"], "e": "a=b", "f": "", "scope": "s"}


@pytest.mark.parametrize(("whole", "single"), [("{", []), ("[]", []), (None, ["novalue"]), (None, ["=x"])])
def test_arguments_that_are_none_are_wrong_usage(whole: str | None, single: list[str]) -> None:
    with pytest.raises(CommandError) as caught:
        read_arguments(whole, single, None)
    assert caught.value.code == USAGE
