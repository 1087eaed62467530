"""A policy's arguments are checked against the middleware's own model."""

from typing import Annotated

import pytest
from pydantic import Field

from app.core.content.context import Context
from app.core.contracts.middleware import Arguments, Middleware, Outcome
from app.core.contracts.registry import Registry
from app.services.access.policies import ArgumentFault, argument_check


class Options(Arguments):
    inner: Annotated[int, Field(ge=1)] = 1


class EchoArguments(Arguments):
    needed: str
    level: int = 1
    options: Options = Options()


class Echo(Middleware[EchoArguments]):
    """Give back what came."""

    name = "echo"
    title = "Echo"
    description = "Gives back what came."
    phase = "outbound"
    arguments = EchoArguments

    async def apply(self, context: Context, arguments: EchoArguments) -> Outcome:
        return Outcome(context, {"level": arguments.level})


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        ({}, None),
        ({"level": 2}, None),
        ({"needed": "x", "options": {"inner": 2}}, None),
        ({"lvel": 2}, "/lvel"),
        ({"level": "2"}, "/level"),
        ({"options": {"inner": 0}}, "/options/inner"),
        ({"options": {"a/b": 0}}, "/options/a~1b"),
    ],
)
def test_wrong_arguments_are_pointed_at_and_missing_ones_are_fine(
    arguments: dict[str, object], pointer: str | None
) -> None:
    check = argument_check(Registry({"echo": Echo(None)}))  # type: ignore[arg-type]
    fault = check("echo", arguments)
    assert (fault.pointer if fault is not None else None) == pointer


def test_an_unknown_middleware_is_a_fault_of_its_own() -> None:
    assert argument_check(Registry({}))("echo", {}) == ArgumentFault(
        "", "There is no middleware of that name."
    )
