"""Documents in JSON and YAML: what is read, what is refused with its place, and that what is written is read again."""

import json
from typing import Any

import pytest

from app.core.errors import InvalidRequestError, TooLargeError
from app.services.data_files import MAX_YAML_BYTES, DocumentFormat, read_document, write_document

FORMATS: list[DocumentFormat] = ["json", "yaml"]
TEXTS = [
    *("yes", "on", "no", "null", "~", "true", "1", "1e5", "1.5", "0x1f", "010", "1:30", "2026-01-01", ".nan"),
    *("", " a ", "a: b", "# x", "- a", "*x", "&x", "!t", "'", '"', "a\nb", "ä\u2028", "é" * 200, "@", "%"),
]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_stays_a_text_as_name_and_as_value(form: DocumentFormat, text: str) -> None:
    value = {"a": [text], f"name {text}": text, text or "empty": None}

    assert read_document(write_document(value, form).encode(), form) == value


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("value", [0, -1, 10**30, 1.5, 1e300, -2.5e-7, True, False, None, [], {}, [[{}]]])
def test_every_json_value_comes_back(form: DocumentFormat, value: Any) -> None:
    assert read_document(write_document({"value": value}, form).encode(), form) == {"value": value}


def test_json_is_yaml_too() -> None:
    value = {"a": [1, 2.5, None, True, "x"], "b": {}}

    assert read_document(json.dumps(value).encode(), "yaml") == value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\na: 2\n", 1),
        ("x:\n  a: 1\n  a: 2\n", 2),
        ("1: 2\n", 1),
        ("a: &x [1]\nb: *x\n", 2),
        ("a: !!python/object/apply:os.getcwd []\n", 1),
        ("a: [1\n", 2),
        ("---\na: 1\n---\nb: 2\n", 3),
    ],
)
def test_what_json_could_not_hold_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(InvalidRequestError) as refusal:
        read_document(text.encode(), "yaml")

    assert refusal.value.details["line"] == line
    assert text not in refusal.value.message


@pytest.mark.parametrize(
    "text", ["a: !!binary aGk=", "a: !!timestamp 2020-01-01", "a: !!set {x}", "a: !!int z", "\0"]
)
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        read_document(text.encode(), "yaml")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidRequestError):
        read_document(b"a: \xff", "yaml")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000 + "a", "#" * (MAX_YAML_BYTES + 1)]
)
def test_depth_and_size_are_bounded(text: str) -> None:
    with pytest.raises(TooLargeError):
        read_document(text.encode(), "yaml")


@pytest.mark.parametrize("form", FORMATS)
def test_a_document_as_deep_as_the_limit_is_read_and_a_deeper_one_refused(form: DocumentFormat) -> None:
    def nested(levels: int) -> bytes:
        return b"[" * levels + b"]" * levels

    assert read_document(nested(64), form)
    assert len(read_document(b"[" + b",".join([b"[]"] * 100) + b"]", form)) == 100
    with pytest.raises(TooLargeError) as refused:
        read_document(nested(65), form)
    assert refused.value.details == {"limit": "depth", "maximum": 64}
