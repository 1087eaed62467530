"""Whole answers of a provider: their texts, tool calls and citations, and the same bytes with changed texts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.core.errors import InvalidArgumentsError
from app.core.gateway.answer_texts import AnswerText, TextSetting, answer_texts
from app.core.gateway.body_parts import BodyItem, BodyLeaf
from app.core.gateway.channel_runs import ChannelRuns
from app.core.gateway.channels import OpenChannel, Path, ToolRunner
from app.core.gateway.citations import moved_citations, outdated_logprobs
from app.core.gateway.edited_body import EditedBody
from app.core.gateway.json_body import JsonBody
from app.core.gateway.offsets import OffsetMap, compared
from app.core.gateway.requests import value_at
from app.core.gateway.signed_blocks import SignedBlock, signed_in

LOGPROBS_DROPPED = "logprobs_dropped"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool in an answer; ``arguments`` are JSON, as text or as a value."""

    name: str | None
    arguments: Any
    runner: ToolRunner
    path: Path


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """What a family says of its answers.

    ``items`` are the parts of an answer that middlewares read, ``texts`` all texts and what they are. ``lists`` are the
    members with blocks, ``signed`` the types of those that the provider signs. ``calls`` yields the tool calls. ``ids``
    are paths of ids by which a later request may name its conversation. ``echoed`` yields the members that repeat what
    the caller never said, as they would be without it.
    """

    items: Callable[[Mapping[str, Any]], Iterator[BodyItem]]
    texts: Callable[[Any], Iterator[AnswerText]]
    calls: Callable[[Mapping[str, Any]], Iterator[ToolCall]]
    lists: tuple[str, ...] = ()
    signed: frozenset[str] = frozenset()
    ids: Mapping[str, Path] = field(default_factory=dict)
    echoed: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None


def plain_texts(value: Any) -> Iterator[AnswerText]:
    """Yield all texts of an answer without a form of its own."""
    yield from answer_texts(value, (), TextSetting())


@dataclass(frozen=True, slots=True)
class GatewayAnswer:
    """A parsed answer; immutable. Bytes that no change touches are those that came.

    ``signed`` are the signed blocks as the provider wrote them, to be sealed before the answer goes out. ``notes``
    count what was left out of it.
    """

    table: AnswerTable
    edited: EditedBody
    signed: tuple[SignedBlock, ...]
    notes: Mapping[str, int] = field(default_factory=dict)
    documents: tuple[OffsetMap, ...] = ()

    @classmethod
    def read(cls, body: JsonBody, table: AnswerTable, documents: Sequence[OffsetMap] = ()) -> "GatewayAnswer":
        """Read an answer; ``documents`` map offsets in the request's documents back to the caller's."""
        is_object = isinstance(body.value, dict)
        if is_object and table.echoed is not None:
            body = body.replaced({(name,): member for name, member in table.echoed(body.value).items()})
        parts = tuple(table.items(body.value)) if is_object else ()
        signed = tuple(signed_in(body, table.lists, table.signed)) if is_object else ()
        return cls(table, EditedBody(body, parts), signed, documents=tuple(documents))

    @property
    def items(self) -> list[Any]:
        """Return the context items for middlewares and pipelines."""
        return self.edited.items

    def leaves(self) -> Iterator[BodyLeaf]:
        """Yield the texts of ``items`` with their places."""
        return self.edited.leaves([block.path for block in self.signed])

    @property
    def texts(self) -> Iterator[AnswerText]:
        """Yield every text, what it is, and whose tool it goes to."""
        return self.table.texts(self.edited.written.value)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """Return the calls of tools."""
        value = self.edited.body.value
        return list(self.table.calls(value)) if isinstance(value, dict) else []

    @property
    def ids(self) -> dict[str, str]:
        """Return the ids that a caller may send back, by what they identify."""
        named = {name: value_at(self.edited.body.value, path) for name, path in self.table.ids.items()}
        return {name: text for name, text in named.items() if isinstance(text, str)}

    @property
    def usage(self) -> Mapping[str, Any]:
        """Return the provider's count of tokens."""
        usage = value_at(self.edited.body.value, ("usage",))
        return usage if isinstance(usage, dict) else {}

    def changed(self, items: Sequence[Any]) -> "GatewayAnswer":
        """Return the answer with changed ``items``; raise InternalError if one is missing or changed its form."""
        before = self.edited
        after = before.changed(items)
        if after.added:
            raise InvalidArgumentsError("An answer has no place for the text that a middleware adds.")
        maps: dict[Path, OffsetMap] = {}
        for path, value in after.values.items():
            source = value_at(before.written.value, path)
            if isinstance(source, str) and isinstance(value, str) and source != value:
                maps[path] = compared(source, value)
        return self._moved(after, maps, documents=())

    def rewritten(self, open_channel: OpenChannel) -> "GatewayAnswer":
        """Return the answer with every text changed by its channel, as a stream of it would be."""
        runs = ChannelRuns(open_channel, keeps=False)
        body = self.edited.written
        values: dict[Path, Any] = {}
        maps: dict[Path, OffsetMap] = {}
        for text in self.table.texts(body.value):
            changed = runs.whole(text)
            if changed != text.text:
                values[text.path] = text.written(changed)
                maps[text.path] = runs.runs[text.path].offsets
        edited = EditedBody(body, self.edited.parts, values=values)
        return self._moved(edited, maps, self.documents)

    def _moved(
        self, edited: EditedBody, maps: Mapping[Path, OffsetMap], documents: Sequence[OffsetMap]
    ) -> "GatewayAnswer":
        value = edited.body.value
        notes = Counter(self.notes)
        moved: dict[Path, Any] = dict(moved_citations(value, (), maps.get, documents))
        for path, logprobs in outdated_logprobs(value, (), lambda path: _is_below(path, maps)):
            moved[path] = logprobs
            notes[LOGPROBS_DROPPED] += 1
        written = edited.body.replaced({**edited.values, **moved})
        parts = tuple(self.table.items(written.value)) if isinstance(written.value, dict) else ()
        return replace(self, edited=EditedBody(written, parts, edited.added), notes=dict(notes), documents=())

    def to_bytes(self) -> bytes:
        """Return the body; what no change touched is as it came."""
        return self.edited.written.text.encode()


def _is_below(path: Path, maps: Mapping[Path, OffsetMap]) -> bool:
    return any(changed[: len(path)] == path for changed in maps)
