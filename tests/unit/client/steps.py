"""Drive a use case of the client by hand: give its answers and take its result."""

from collections.abc import Iterable
from typing import TypeVar

from sluice_client.wire import Steps, WireAnswer

T = TypeVar("T")


def answered(steps: Steps[T], answers: Iterable[WireAnswer]) -> T:
    """Run ``steps`` with ``answers`` and return the result; an answer that tells an error raises it."""
    call = next(steps)
    for answer in answers:
        error = call.failure(answer)
        if error is not None:
            raise error
        try:
            call = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
    raise AssertionError("The use case wants another answer.")
