"""Cut a stream of server-sent events into whole events, whatever its chunks, and keep every byte of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.core.errors import TooLargeError

MAX_EVENT_BYTES: Final = 32 * 1024 * 1024

_REACH: Final = 3
"""The longest end of a line and a half, which may begin in an earlier chunk."""

_PAIR: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))")
_PLAIN: Final = re.compile(rb"(?:event: ([^\r\n]*)\n)?data: ([^\r\n]*)\n\n")
"""An event as most providers write it; all others are read line by line."""

_LINE: Final = re.compile(rb"([^\r\n]*)(\r\n|\n|\r|\Z)")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event, or comments alone: its bytes as they came, and its data (None without any, or if it is no UTF-8)."""

    raw: bytes
    name: str
    data: str | None

    def with_data(self, data: str) -> bytes:
        """Return the event's bytes with other data; its name, comments and line ends stay."""
        pieces: list[bytes] = []
        is_written = False
        for line, end in _lines(self.raw):
            if not _is_data(line):
                pieces.append(line + end)
            elif not is_written:
                prefix = b"data: " if line.startswith(b"data: ") else b"data:"
                pieces += [prefix + part + end for part in data.encode().split(b"\n")]
                is_written = True
        return b"".join(pieces)


class EventReader:
    """Reads events from chunks of any size; the events do not depend on the chunks."""

    def __init__(self, maximum: int = MAX_EVENT_BYTES) -> None:
        self._maximum = maximum
        self._parts: list[bytes] = []
        self._size = 0
        self._tail = b""
        self._ends_with_crlf = False

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yield each event that ``chunk`` ends; raise TooLargeError if one is larger than allowed."""
        if not self._size and b"\r" not in chunk:
            *events, rest = chunk.split(b"\n\n")
            if events and not rest:  # whole events, as they mostly come
                self._ends_with_crlf = True
                for plain in events:
                    yield _event(plain + b"\n\n")
                return
        self._ends_with_crlf = self._ends_with_crlf or b"\n" in chunk
        window = self._tail + chunk
        if _PAIR.search(window) is None:
            # A large event comes in many chunks; joining them at each one would take quadratic time.
            self._keep(chunk, window)
            return
        searched = max(0, self._size - _REACH)
        buffer = self._taken() + chunk
        start = 0
        while pair := _PAIR.search(buffer, max(start, searched)):
            # A carriage return at the end may be half of a line end; streams that never have a line feed end here.
            if pair.end() == len(buffer) and self._ends_with_crlf and pair[0].endswith(b"\r"):
                break
            event = buffer[start : pair.end()]
            start = pair.end()
            yield _event(event)
        self._keep(buffer[start:], buffer[start:])

    def rest(self) -> StreamEvent | None:
        """Return what is left when the stream has ended: an event without its empty line, or None."""
        buffer = self._taken()
        return _event(buffer) if buffer else None

    def _keep(self, part: bytes, window: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        self._tail = window[-_REACH:]
        if self._size > self._maximum:
            self._taken()
            raise TooLargeError("An event of the provider's stream is too large.", details={"limit": "event"})

    def _taken(self) -> bytes:
        buffer = b"".join(self._parts)
        self._parts, self._size, self._tail = [], 0, b""
        return buffer


def written_event(data: str, name: str | None = None) -> bytes:
    """Return the bytes of an event of our own."""
    head = f"event: {name}\n" if name is not None else ""
    return f"{head}data: {data}\n\n".encode()


def _lines(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    for match in _LINE.finditer(raw):
        if match[0]:
            yield match[1], match[2]


def _is_data(line: bytes) -> bool:
    return line == b"data" or line.startswith(b"data:")


def _event(raw: bytes) -> StreamEvent:
    if (plain := _PLAIN.fullmatch(raw)) is not None:
        name = plain[1].decode(errors="replace") if plain[1] is not None else "message"
        return StreamEvent(raw, name, _text(plain[2]))
    name, parts = "message", []
    for line, _ in _lines(raw):
        if _is_data(line):
            parts.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"event:"):
            name = line[6:].removeprefix(b" ").decode(errors="replace")
    return StreamEvent(raw, name, _text(b"\n".join(parts)) if parts else None)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
