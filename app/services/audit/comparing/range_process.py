"""One process that verifies parts of the log for `range_processes`: it reads questions, answers them, ends with them.

Questions and answers are pickled by these two programs for each other: no other data comes in.
"""

import asyncio
import gc
import os
import pickle
import sys
from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO, Final, NamedTuple

from app.core.errors import ServiceError
from app.engines.cipher import RecordKeys
from app.services.audit.comparing.ranges import LogRanges
from app.store.database import Database
from app.store.dialects import Patience

LENGTH: Final = 8
"""Bytes in front of each frame that say how long it is."""


class Opening(NamedTuple):
    """What a process needs to read a record, sent through its standard input, never as an argument."""

    url: str
    direct_url: str | None
    patience: Patience
    keys: RecordKeys


def framed(value: object) -> bytes:
    """Return a value as a frame."""
    body = pickle.dumps(value)
    return len(body).to_bytes(LENGTH, "big") + body


async def answer(ranges: LogRanges, method: str, arguments: tuple[Any, ...]) -> object:
    """Return what a method of `LogRanges` returns, or the error that whoever asked may know."""
    ask: Callable[..., Awaitable[object]] = getattr(ranges, method)
    try:
        return await ask(*arguments)
    except ServiceError as error:
        return error


async def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer each question, one after the other, until there are no more."""
    opening: Opening = _read(questions)
    database = Database(opening.url, pool_size=1, patience=opening.patience, direct_url=opening.direct_url)
    async with database:
        ranges = LogRanges(database, opening.keys)
        while (question := _read(questions)) is not None:
            answers.write(framed(await answer(ranges, *question)))
            answers.flush()


def _read(questions: BinaryIO) -> Any:
    head = questions.read(LENGTH)
    return pickle.loads(questions.read(int.from_bytes(head, "big"))) if len(head) == LENGTH else None  # noqa: S301 - our own


def main() -> None:
    """Serve the process that started this one."""
    # Rows come and go by the thousand, and searching them for cycles takes a tenth of the time.
    gc.set_threshold(200_000, 20, 50)
    gc.freeze()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    asyncio.run(serve(sys.stdin.buffer, answers))


if __name__ == "__main__":
    main()
