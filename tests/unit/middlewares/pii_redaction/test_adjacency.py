"""Texts that are read on as one make a run; a sentence's end and another role close it."""

from typing import Any

import pytest

from app.core.content.context import Context
from app.middlewares.pii_redaction.adjacency import adjacent_runs


def runs(items: list[Any]) -> list[list[str]]:
    leaves = Context.parse(items).leaves
    return [[leaves[place].text for place in run] for run in adjacent_runs(leaves)]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def said(role: str, *words: str) -> dict[str, Any]:
    return {"role": role, "content": [text(word) for word in words]}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (["a 123-", "45-6789"], [["a 123-", "45-6789"]]),
        ([text("a 123-"), text("45-"), text("6789")], [["a 123-", "45-", "6789"]]),
        ([said("user", "a 123-", "45-6789")], [["a 123-", "45-6789"]]),
        ([said("user", "a 123-"), said("user", "45-6789")], [["a 123-", "45-6789"]]),
        ([said("user", "a 123-"), said("assistant", "45-6789")], []),
        ([{"type": "tool_result", "content": [text("a 123-"), text("45-6789")]}], [["a 123-", "45-6789"]]),
        ([{"type": "tool_result", "content": [text("a 123-")]}, text("45-6789")], []),
        (["a 123-", "", "45-6789"], [["a 123-", "45-6789"]]),
    ],
)
def test_texts_of_one_role_are_read_on(items: list[Any], expected: list[list[str]]) -> None:
    assert runs(items) == expected


def test_ends_of_sentences_and_lines_close_a_run() -> None:
    assert runs(["All is well.", "Then we went on"]) == []
    assert runs(["He said \u201cgo!\u201d", "She went"]) == []
    assert runs(["A line\n", "and one more"]) == []
    assert runs(["mail john@example.", "com please"]) == [["mail john@example.", "com please"]]
    assert runs(["server 10.", "0.0.1"]) == [["server 10.", "0.0.1"]]


def test_json_in_text_and_tool_input_belong_to_no_run() -> None:
    assert runs(['{"a": "123-"}', "45-6789"]) == []
    assert runs([{"type": "tool_use", "name": "n", "input": {"a": "123-", "b": "45-6789"}}]) == []
