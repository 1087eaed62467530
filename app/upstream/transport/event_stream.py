"""Split what a server sends into lines and events, with a bound on the size of each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

HEAD_BYTES: Final = 512
_ENDS: Final = re.compile(rb"[\r\n]")


@dataclass(frozen=True, slots=True)
class Oversize:
    """Stands for a line or event that was larger than allowed: its beginning; the rest was discarded."""

    head: bytes


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One server-sent event; ``id`` and ``retry_s`` are None where the event did not set them."""

    name: str
    data: bytes
    id: str | None = None
    retry_s: float | None = None


class Lines:
    """Splits bytes at LF, CR or CRLF; a line above ``maximum`` bytes is reported once, as soon as it is too large."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._parts: list[bytes] = []
        self._size = 0
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversize]:
        """Yield each line that ``chunk`` ends, without its end."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if not _ENDS.search(chunk):
            yield from self._add_part(chunk)
            return
        self._after_cr = chunk.endswith(b"\r")
        for line in chunk.splitlines(keepends=True):
            content = line.rstrip(b"\r\n")
            yield from self._add_part(content)
            if len(content) < len(line):
                parts, size = self._parts, self._size
                self._parts, self._size = [], 0
                if size <= self._maximum:
                    yield parts[0] if len(parts) == 1 else b"".join(parts)

    def _add_part(self, part: bytes) -> Iterator[Oversize]:
        before = self._size
        self._size += len(part)
        if self._size <= self._maximum:
            self._parts.append(part)
        elif before <= self._maximum:
            head = b"".join([*self._parts, part[:HEAD_BYTES]])[:HEAD_BYTES]
            # Free the parts before the reader gets this: it may stop here and keep this object in a traceback.
            self._parts = []
            yield Oversize(head)


class Events:
    """Reads the server-sent events of one stream, as browsers do; comments and unknown fields are skipped."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._lines = Lines(maximum + len(b"data: "))
        self._begin()

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent | Oversize]:
        """Yield each event that ``chunk`` ends, and once each that has become too large."""
        for line in self._lines.feed(chunk):
            if isinstance(line, Oversize):
                yield from self._outgrown(line.head.removeprefix(b"data:"))
            elif line:
                yield from self._field(line)
            else:
                if not self._too_large and (self._data or self._id is not None or self._retry_s is not None):
                    yield ServerSentEvent(self._name, b"\n".join(self._data), self._id, self._retry_s)
                self._begin()

    def _begin(self) -> None:
        self._data: list[bytes] = []
        self._size = 0
        self._name = "message"
        self._id: str | None = None
        self._retry_s: float | None = None
        self._too_large = False

    def _field(self, line: bytes) -> Iterator[Oversize]:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value) + bool(self._data)
            if self._size > self._maximum:
                yield from self._outgrown(b"\n".join([*self._data, value]))
            else:
                self._data.append(value)
        elif name == b"event":
            self._name = value.decode(errors="replace")
        elif name == b"id" and b"\0" not in value and len(value) <= HEAD_BYTES:
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and len(value) < HEAD_BYTES:
            self._retry_s = int(value) / 1000

    def _outgrown(self, content: bytes) -> Iterator[Oversize]:
        self._data = []
        if not self._too_large:
            self._too_large = True
            yield Oversize(content[:HEAD_BYTES])
