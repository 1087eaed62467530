"""Streamed answers: events in, events out, with every text changed as in the whole answer."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.errors import UpstreamUnavailableError
from app.core.gateway.answer_texts import AnswerText
from app.core.gateway.answers import LOGPROBS_DROPPED
from app.core.gateway.channel_runs import ChannelRun, ChannelRuns
from app.core.gateway.channels import OpenChannel, Path
from app.core.gateway.citations import moved_citations, outdated_logprobs
from app.core.gateway.json_body import JsonBody
from app.core.gateway.offsets import OffsetMap
from app.core.gateway.signed_blocks import SignedBlock
from app.core.gateway.sse import EventReader, StreamEvent

_UNREADABLE: Final = (TypeError, ValueError, LookupError, AttributeError, RecursionError)
"""What reading an event of a form that no API has may raise, where no rule foresaw the form."""

INTERRUPTED: Final = "upstream_interrupted"
_INTERRUPTED_MESSAGE: Final = "The provider's stream ended before the answer was whole."


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a text in an event: ``place`` in the event, and the text of the answer that it continues."""

    place: Path
    text: AnswerText


class EventStream(ABC):
    """One streamed answer: ``feed`` chunks, then ``end`` it; a family says what its events hold.

    After each of them ``take_signed`` returns blocks that must be sealed before the bytes go out. ``ids``, ``usage``,
    ``notes`` and ``ended`` (whether the family's last event was seen) tell what has passed.
    """

    keeps_texts = False
    """Whether texts come again, whole, after they were streamed."""

    def __init__(self, open_channel: OpenChannel, documents: Sequence[OffsetMap] = ()) -> None:
        self.runs = ChannelRuns(open_channel, keeps=self.keeps_texts)
        self.documents = documents
        self.ids: dict[str, str] = {}
        self.usage: dict[str, Any] = {}
        self.notes: Counter[str] = Counter()
        self.ended = False
        self._reader = EventReader()
        self._signed: list[SignedBlock] = []
        self._digests: set[str] = set()
        self._is_unreadable = False

    def feed(self, chunk: bytes) -> bytes:
        """Return the events that ``chunk`` ends, changed; raise TooLargeError if one is larger than allowed.

        An event that cannot be read ends the stream like one that died: the next call raises UpstreamUnavailableError.
        """
        if self._is_unreadable:
            raise UpstreamUnavailableError(
                "The provider's stream holds an event of a form that its API has not."
            )
        return b"".join(self._written(self._reader.feed(chunk)))

    def end(self, *, died: bool, code: str = INTERRUPTED, message: str = _INTERRUPTED_MESSAGE) -> bytes:
        """Return what is left: texts held back and, if the stream died, the error with which the family ends one."""
        rest = self._reader.rest()
        pieces: list[bytes] = []
        if rest is not None and not died:
            pieces += self._written([rest])
        died = died or self._is_unreadable
        pieces += self.finished(())
        if died and not self.ended:
            pieces.append(self.failure(code, message))
        self.ended = True
        return b"".join(pieces)

    def take_signed(self) -> list[SignedBlock]:
        """Return the signed blocks that were seen since the last call, as the provider wrote them."""
        signed, self._signed = self._signed, []
        return signed

    def _written(self, events: Iterable[StreamEvent]) -> list[bytes]:
        """Return what goes out for ``events``, up to one that cannot be read."""
        pieces: list[bytes] = []
        try:
            for event in events:
                pieces.extend(self._changed(event))
        except _UNREADABLE:
            self._is_unreadable = True
            self.notes["malformed"] += 1
        return pieces

    def _changed(self, event: StreamEvent) -> Iterable[bytes]:
        body = JsonBody.lenient(event.data) if event.data is not None else None
        if body is not None and isinstance(body.value, dict):
            return self.changed(event, body)
        if event.data is not None and event.data.strip() == "[DONE]":
            self.ended = True
            return [*self.finished(()), event.raw]
        self.notes["malformed"] += event.data is not None
        return [event.raw]

    @abstractmethod
    def changed(self, event: StreamEvent, body: JsonBody) -> Iterator[bytes]:
        """Yield what goes out for one event."""

    @abstractmethod
    def continued(self, path: Path, rest: str) -> bytes:
        """Return an event that continues the text at ``path`` of the answer."""

    @abstractmethod
    def failure(self, code: str, message: str) -> bytes:
        """Return the event with which a stream of this family ends that cannot go on."""

    def finished(self, prefix: Path) -> Iterator[bytes]:
        """Yield the events with what is held back of the texts below ``prefix``, which have ended."""
        for path in self.runs.open_below(prefix):
            rest = self.runs.runs[path].finish()
            if rest:
                yield self.continued(path, rest)
            yield from self.after_text(path)

    def after_text(self, _path: Path) -> Iterator[bytes]:
        """Yield events that waited for the text at a place to end."""
        yield from ()

    def fragments_changed(self, fragments: Iterable[Fragment]) -> dict[Path, Any]:
        """Feed fragments to their channels and return the new values by their places in the event."""
        values: dict[Path, Any] = {}
        for fragment in fragments:
            changed = self.runs.opened(fragment.text).feed(fragment.text.text)
            if changed != fragment.text.text:
                values[fragment.place] = changed
        return values

    def wholes_changed(self, value: Any, base: Path, texts: Iterable[AnswerText]) -> dict[Path, Any]:
        """Return the new values in a part of the answer that an event holds whole, by their places in that part."""
        values: dict[Path, Any] = {}
        size = len(base)
        for text in texts:
            if text.text:
                changed = self.runs.whole(text)
                if changed != text.text:
                    values[text.path[size:]] = text.written(changed)
        moved = moved_citations(value, base, self.offsets_of, self.documents)
        values.update({path[size:]: offset for path, offset in moved})
        for path, logprobs in outdated_logprobs(value, base, self.is_changed):
            values[path[size:]] = logprobs
            self.notes[LOGPROBS_DROPPED] += 1
        return values

    def offsets_of(self, path: Path) -> OffsetMap | None:
        """Return the offsets of the text at ``path`` of the answer, or None if nothing of it changed."""
        run = self.runs.runs.get(path)
        return run.offsets if run is not None and run.offsets.is_changed else None

    def is_changed(self, path: Path) -> bool:
        """Return whether a text at or below ``path`` of the answer changed."""
        size = len(path)
        return any(place[:size] == path and run.offsets.is_changed for place, run in self.runs.runs.items())

    def run_of(self, path: Path) -> ChannelRun | None:
        """Return the channel of the text at ``path`` of the answer."""
        return self.runs.runs.get(path)

    def note_signed(self, block: SignedBlock) -> None:
        """Keep a signed block for ``take_signed``, once."""
        if block.digest not in self._digests:
            self._digests.add(block.digest)
            self._signed.append(block)


def below(place: Path, values: Mapping[Path, Any]) -> dict[Path, Any]:
    """Return ``values`` by their places in the whole event, of which they are a part at ``place``."""
    return {(*place, *path): value for path, value in values.items()}


def written(event: StreamEvent, body: JsonBody, values: Mapping[Path, Any]) -> bytes:
    """Return the event with other values; without any, its bytes as they came."""
    return event.with_data(body.replaced(values).text) if values else event.raw
