"""Keep long computations off the event loop."""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

INLINE_CHARACTERS = 32_768
"""Work on texts up to this size takes less than a millisecond, about the cost of using a thread."""
LIGHT: Final = 4
"""For light work, the characters count a quarter: to copy, encode or place what was found, not to search for it."""


async def off_loop(size: int, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return ``work(...)``, computed in a thread if ``size`` (characters to read) makes it long."""
    if size <= INLINE_CHARACTERS:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
