"""End this process when its parent ends, even if killed, so that no orphan keeps the port."""

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_LOOK_EVERY_S: Final = 0.5
_GRACE_S: Final = 25.0


def end_with_parent(parent: int | None = None) -> None:
    """Ask for SIGTERM when the parent ends, and end now if it has already (``parent`` is its id if known).

    Linux signals a process when its parent dies. On other systems a thread polls the parent's id; it also
    kills the process if SIGTERM does not end it.
    """
    expected = os.getppid() if parent is None else parent
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != expected:  # it ended before the request reached the kernel
        os._exit(1)
    threading.Thread(target=_watch, args=(expected,), name="parent-watch", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY_S)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(1)
