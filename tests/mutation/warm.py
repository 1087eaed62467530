"""A process that holds the libraries imported and forks one child of pytest for each order: start-up is paid once.

Run in a tree of its own as ``python -m tests.mutation.warm``. Reads one JSON value a line: first the names of the
libraries, then orders (``arguments``, ``output``, ``limit_s``). Answers each order with one line: the exit code, or
null where the limit ended it. Modules of the tree are imported by the children alone, so each child sees its mutant.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import warnings
from typing import Any, NoReturn

POLL_S = 0.02


def serve() -> None:
    """Import the libraries and follow the orders."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in json.loads(sys.stdin.readline()):
            # A library that only its own test can import is imported by that test.
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            run(order)
        print(json.dumps(wait(child, order["limit_s"])), flush=True)


def run(order: dict[str, Any]) -> NoReturn:
    """Run pytest in this child and end the process with its exit code."""
    code: int = 70
    try:
        os.setsid()
        output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for target in (1, 2):
            os.dup2(output, target)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        import pytest

        code = int(pytest.main(order["arguments"]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def wait(child: int, limit_s: float) -> int | None:
    """Return the exit code of a child, or ``None`` once the limit has ended it."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(POLL_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


if __name__ == "__main__":
    serve()
