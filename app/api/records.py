"""Read and write streams of JSON records, one per line or one per server-sent event."""

from collections.abc import AsyncIterator
from typing import Any, Final

from app.core.errors import InvalidArgumentsError
from app.core.strictjson import dumps, loads

LINES: Final = "application/x-ndjson"
EVENTS: Final = "text/event-stream"


async def read_records(pieces: AsyncIterator[bytes], kind: str) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON objects of a body of type ``kind`` as they complete, whatever the piece boundaries."""
    unfinished = _Event() if kind == EVENTS else None
    async for line in _lines(pieces):
        record = unfinished.take(line) if unfinished is not None else line
        if record:
            yield _parsed(record)
    if unfinished is not None and (record := unfinished.take(b"")):
        yield _parsed(record)


def written(record: dict[str, Any], kind: str) -> bytes:
    """Return ``record`` as one line or one event; a record with an error becomes an event named error."""
    body = dumps(record)
    if kind == LINES:
        return body + b"\n"
    name = b"event: error\n" if "error" in record else b""
    return name + b"data: " + body + b"\n\n"


class _Event:
    """Collects the data lines of one server-sent event; names, ids and comments are ignored."""

    def __init__(self) -> None:
        self._data: list[bytes] = []

    def take(self, line: bytes) -> bytes:
        """Take a line; return the data of the event that it completes, else empty bytes."""
        if not line:
            data = b"\n".join(self._data)
            self._data = []
            return data
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return b""


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield lines without their LF or CR LF; the last line needs no end."""
    parts: list[bytes] = []
    async for piece in pieces:
        *complete, rest = piece.split(b"\n")
        for line in complete:
            yield b"".join([*parts, line]).removesuffix(b"\r")
            parts = []
        parts.append(rest)
    last = b"".join(parts)
    if last:
        yield last.removesuffix(b"\r")


def _parsed(record: bytes) -> dict[str, Any]:
    value = loads(record)
    if not isinstance(value, dict):
        raise InvalidArgumentsError("Each record must be a JSON object.", details={"pointer": ""})
    return value
