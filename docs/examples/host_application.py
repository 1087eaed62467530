# ruff: noqa: INP001, T201 -- an example is a script, and it prints
"""A host application: redact what goes to a model, restore what comes back.

Run it beside a running service:

    SLUICE_API_KEY=slc_... .venv/bin/python docs/examples/host_application.py
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

from sluice_client import RedactResult, Sluice, SluiceError

Message = dict[str, Any]

QUESTION = "I am John Doe (john.doe@example.com). Please write me a reminder to call Jane Smith."


def model(messages: list[Message]) -> Iterator[str]:
    """Stand for a language model: answer in small pieces, with the handles it was given."""
    heard = messages[-1]["content"]
    names = [word.strip(".,()") for word in heard.split() if word.startswith(("[PERSON", "([EMAIL"))]
    answer = f"Dear {names[0]}, remember to call {names[-1]} today."
    for start in range(0, len(answer), 4):
        yield answer[start : start + 4]


def ask(sluice: Sluice, messages: list[Message], scope: str) -> Iterator[str]:
    """Send a conversation to the model without personal data and yield its answer with it."""
    safe: RedactResult = sluice.redact(messages, scope=scope)
    for message in safe.content:
        print(f"to the model: {message['content']}", file=sys.stderr)
    yield from sluice.restore_stream(model(safe.content), scope=safe.scope)


def main() -> int:
    """Ask one question and show the answer as it comes."""
    url = os.environ.get("SLUICE_URL", "http://127.0.0.1:8000")
    try:
        with Sluice(url, os.environ.get("SLUICE_API_KEY")) as sluice:
            for piece in ask(sluice, [{"role": "user", "content": QUESTION}], "host-example"):
                print(piece, end="", flush=True)
        print()
    except SluiceError as error:
        # Fail closed: without a redaction the model is not called.
        print(f"{error.message} ({error.code}, request {error.request_id})", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
