"""Server-sent events: the incremental parser that both drivers and the streaming restoration use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One dispatched event; ``name`` is ``message`` if the stream names none."""

    name: str
    data: str


class EventParser:
    """Assemble lines into events (WHATWG HTML, section 9.2.6); ids and retry hints are not needed here."""

    def __init__(self) -> None:
        self._name = ""
        self._data: list[str] = []

    def line(self, line: str) -> StreamEvent | None:
        """Take one line without its line end; return the event that it completes."""
        if not line:
            event = StreamEvent(self._name or "message", "\n".join(self._data)) if self._data else None
            self._name, self._data = "", []
            return event
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None
