"""Wrong arguments are refused with a pointer to the fault, in the spelling of the schema."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from app.core.contracts.middleware import Arguments
from app.core.errors import BlockedByPolicyError, InvalidArgumentsError
from app.services.invoke.calls import checked, refuse_changes


class Entry(BaseModel):
    name: str


class Example(Arguments):
    max_results: int = Field(default=5, ge=1, alias="maxResults")
    entries: list[Entry] = Field(default=[])
    tools: list[str | dict[str, Any]] = Field(default=[])
    modes: dict[str, int] = Field(default={})


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        ({"maxResults": 0}, "/maxResults"),
        ({"max_results": 0}, "/maxResults"),
        ({"entries": [{"name": "a"}, {}]}, "/entries/1/name"),
        ({"tools": ["a", 1]}, "/tools/1"),
        ({"modes": {"Jane Smith": "x"}}, "/modes"),
        ({"Jane Smith": 1}, ""),
    ],
)
def test_the_pointer_leads_to_the_fault_as_far_as_names_are_no_text_of_the_caller(
    arguments: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        checked(Example, arguments)
    assert caught.value.details["pointer"] == f"/arguments{pointer}"
    assert caught.value.details["arguments"] == ["entries", "maxResults", "modes", "strict", "tools"]


def test_arguments_that_are_taken_elsewhere_are_told_too() -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        checked(Arguments, {"pii_redactoin": {}}, beside={"pii_redaction"})
    assert caught.value.details["arguments"] == ["pii_redaction", "strict"]


def test_every_form_that_a_value_may_have_is_told() -> None:
    with pytest.raises(InvalidArgumentsError, match="valid string, or Input should be a valid dictionary"):
        checked(Example, {"tools": [1]})


def test_a_fixed_argument_is_named_as_callers_write_it() -> None:
    with pytest.raises(BlockedByPolicyError) as caught:
        refuse_changes(Example, {"max_results": 3}, {"max_results": 2}, "Fixed.")
    assert caught.value.details == {"pointer": "/arguments/maxResults"}
