"""Processes that outlive the tests that started them: found when a run ends, named and killed.

With xdist the controller looks once its workers have ended. Who looks becomes the parent of every process that its
own parent left, so that a server whose starter died is found as well.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest

GRACE_S = 10.0
"""What was told to end may take this long."""
_BECOME_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
_closing: list[Callable[[], object]] = []


def close_at_the_end(close: Callable[[], object]) -> None:
    """Run ``close`` before the look: for a helper process that the tests of one process share."""
    _closing.append(close)


def adopt_orphans(*, runs_tests: bool) -> None:
    """Become the parent of every descendant whose parent ends.

    Where tests run in this process, they wait for children of their own: dead orphans stay uncollected then.
    """
    if not sys.platform.startswith("linux"):
        return
    if ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0) == 0 and not runs_tests:
        signal.signal(signal.SIGCHLD, _collect)


def _collect(_number: int, _frame: object) -> None:
    for child in psutil.Process().children():
        with suppress(psutil.Error, ChildProcessError):
            if child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def living() -> list[psutil.Process]:
    """Return the descendants of this process that still live after the time of grace."""
    for close in _closing:
        close()
    until = time.monotonic() + GRACE_S
    while (found := [child for child in psutil.Process().children(recursive=True) if _lives(child)]) and (
        time.monotonic() < until
    ):
        time.sleep(0.1)
    return found


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def fail_if_any_lives(session: pytest.Session) -> None:
    """Name and kill what still lives; the run has failed then."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    for process in living():
        with suppress(psutil.Error):
            words = " ".join(process.cmdline())
            line = f"left behind: process {process.pid}, started {_clock(process)}: {words[:200]}"
            reporter.write_line(line, red=True)
            process.kill()
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _clock(process: psutil.Process) -> str:
    return time.strftime("%H:%M:%S", time.localtime(process.create_time()))
