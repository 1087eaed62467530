"""The text of a result: all of it, or none."""

from typing import Any

import pytest

from sluice_client.results import InvokeResult, RedactResult

TEXT = {"type": "text", "text": "I am [PERSON_1]."}
IMAGE = {"type": "image", "data": "QUJD", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([TEXT], "I am [PERSON_1]."),
        ([TEXT, IMAGE, "plain"], "I am [PERSON_1].\nplain"),
        ([], ""),
        ([IMAGE], ""),
    ],
)
def test_plain_text_is_joined(content: list[Any], text: str) -> None:
    assert InvokeResult(content, {}).text == text


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "I am [PERSON_1]."},
        {"role": "assistant", "content": [TEXT]},
        {"role": "user", "type": "text", "text": "x"},
        {"type": "tool_use", "id": "t", "name": "find", "input": {"name": "[PERSON_1]"}},
        {"type": "input_text", "text": "I am [PERSON_1]."},
        {"text": "I am [PERSON_1]."},
        7,
    ],
)
def test_a_result_with_more_than_plain_text_has_no_text(item: Any) -> None:
    with pytest.raises(ValueError, match="content"):
        _ = RedactResult([TEXT, item], {"scope": "s"}).text
