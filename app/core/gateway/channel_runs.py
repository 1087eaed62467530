"""Run texts through their channels, whole or in parts, and remember the results."""

from collections.abc import Sequence

from app.core.gateway.answer_texts import AnswerText
from app.core.gateway.channels import ChannelKind, ChannelText, OpenChannel, Path, TextChannel, TextPiece
from app.core.gateway.json_strings import JsonEscaping, perhaps_json
from app.core.gateway.offsets import OffsetMap


class ChannelRun:
    """One channel that is open: what came, what went out, and the offsets between them.

    ``keeps``: both texts are needed again, since the provider repeats them.
    """

    def __init__(self, changes: ChannelText | None, *, keeps: bool) -> None:
        self._changes = changes
        self._keeps = keeps
        self._came: list[str] = []
        self._went: list[str] = []
        self.received = 0
        self.offsets = OffsetMap()
        self.is_finished = False

    def feed(self, text: str) -> str:
        """Return what is complete after ``text``."""
        self.received += len(text)
        if self._keeps:
            self._came.append(text)
        if self._changes is None:
            return self._out([TextPiece(text, text)])
        return self._out(self._changes.feed(text))

    def finish(self) -> str:
        """Return the rest."""
        if self.is_finished:
            return ""
        self.is_finished = True
        return self._out(self._changes.finish()) if self._changes is not None else ""

    @property
    def is_settled(self) -> bool:
        """Return whether nothing is held back."""
        return self.offsets.source_length == self.received

    @property
    def source(self) -> str:
        """Return the text as it came."""
        return "".join(self._came)

    @property
    def text(self) -> str:
        """Return the text as it went out."""
        return "".join(self._went)

    def _out(self, pieces: Sequence[TextPiece]) -> str:
        for piece in pieces:
            self.offsets.add(piece)
        text = "".join(piece.text for piece in pieces)
        if self._keeps:
            self._went.append(text)
        return text


class ChannelRuns:
    """The channels of one answer, by the places of their texts."""

    def __init__(self, open_channel: OpenChannel, *, keeps: bool) -> None:
        self._open_channel = open_channel
        self._keeps = keeps
        self.runs: dict[Path, ChannelRun] = {}

    def opened(self, text: AnswerText) -> ChannelRun:
        """Return the channel of a text that arrives in parts."""
        run = self.runs.get(text.path)
        if run is None or run.is_finished:
            run = self.runs[text.path] = ChannelRun(self._changes(text), keeps=self._keeps)
        return run

    def whole(self, text: AnswerText) -> str:
        """Return what becomes of a whole text: the same as when it came before, in parts or whole."""
        run = self.runs.get(text.path)
        # What is held back of an open text belongs to its next part, so that such a text is read apart.
        is_said = run is not None and (run.is_finished or run.is_settled)
        if run is not None and is_said and self._keeps and run.source == text.text:
            run.finish()
            return run.text
        whole_run = ChannelRun(self._changes(text), keeps=self._keeps)
        if run is None or run.is_finished:
            self.runs[text.path] = whole_run
        return whole_run.feed(text.text) + whole_run.finish()

    def open_below(self, prefix: Path) -> list[Path]:
        """Return the places below ``prefix`` whose channels are open, in the order in which they were opened."""
        size = len(prefix)
        return [path for path, run in self.runs.items() if not run.is_finished and path[:size] == prefix]

    def _changes(self, text: AnswerText) -> ChannelText | None:
        channel = text.channel
        if text.is_json:
            return perhaps_json(lambda pointer: self._open_channel(_inner(channel, pointer)), "", 0)
        changes = self._open_channel(channel)
        if changes is None or channel.kind is ChannelKind.ARGUMENTS:
            return changes
        return JsonEscaping(changes)


def _inner(channel: TextChannel, pointer: str) -> TextChannel:
    return TextChannel(channel.path, channel.kind, channel.tool, channel.runner, pointer)
