"""What calls return: frozen records over the JSON of the wire."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any
"""A JSON value as Python has it; integers of any length stay exact."""


@dataclass(frozen=True, slots=True)
class MiddlewareInfo:
    """One middleware that the caller may invoke; ``phase`` is ``outbound`` or ``inbound`` of the model."""

    name: str
    description: str = ""
    title: str | None = None
    phase: str | None = None
    input_schema: Mapping[str, Json] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, value: Mapping[str, Json]) -> "MiddlewareInfo":
        """Read one member of ``middleware`` in a list."""
        meta = value.get("_meta") or {}
        return cls(
            name=value["name"],
            description=value.get("description") or "",
            title=value.get("title"),
            phase=value.get("phase") or meta.get("dev.sluice/phase"),
            input_schema=value.get("inputSchema") or {},
        )


@dataclass(frozen=True, slots=True)
class Redaction:
    """One handle in the content, such as ``PERSON_1`` of type ``person``."""

    handle: str
    type: str


def _text_of(item: Json) -> str | None:
    if isinstance(item, str):
        return item
    kind = item.get("type") if isinstance(item, Mapping) and "role" not in item else None
    if kind == "text":
        return str(item["text"])
    if kind in {"image", "audio"}:
        return None
    raise ValueError(
        "This context has messages or other items that are no plain text: read messages or content instead of text."
    )


@dataclass(frozen=True, slots=True)
class InvokeResult:
    """The context after a middleware, in its original shape, and the middleware's metadata."""

    content: list[Json]
    metadata: Mapping[str, Json]

    @property
    def text(self) -> str:
        """Return the text of all plain text items, joined by line feeds; images and audio have none.

        Raise ValueError where an item has text that this would leave out, such as a message or a tool call: read
        ``content`` then.
        """
        return "\n".join(text for item in self.content if (text := _text_of(item)) is not None)

    @property
    def messages(self) -> list[dict[str, Json]]:
        """Return the messages of a conversation, each with a ``role``.

        Raise ValueError where an item is none: a list of messages that lacks something would lie.
        """
        if not all(isinstance(item, Mapping) and "role" in item for item in self.content):
            raise ValueError("This context has items that are no messages: read content instead of messages.")
        return [dict(item) for item in self.content]


@dataclass(frozen=True, slots=True)
class RedactResult(InvokeResult):
    """A context without personal data; ``scope`` is what ``restore`` needs to undo it."""

    @property
    def scope(self) -> str:
        """Return the name of the vault scope that holds the originals."""
        return str(self.metadata["scope"])

    @property
    def redactions(self) -> tuple[Redaction, ...]:
        """Return the inserted handles; empty if nothing was redacted."""
        redactions = self.metadata.get("redactions", [])
        if isinstance(redactions, Mapping):
            return tuple(Redaction(name, name.rpartition("_")[0].lower()) for name in redactions)
        return tuple(Redaction(entry["handle"], entry["type"]) for entry in redactions)

    @property
    def mapping(self) -> Mapping[str, str] | None:
        """Return handle -> original; present only with ``returnMapping`` and the role ``restorer``."""
        redactions = self.metadata.get("redactions")
        return redactions if isinstance(redactions, Mapping) else None


@dataclass(frozen=True, slots=True)
class RestoreResult(InvokeResult):
    """A context with its originals restored."""

    @property
    def unresolved(self) -> int:
        """Return how many handles were not restored: they are unknown, erased, expired or in an unsafe position."""
        unresolved = self.metadata.get("unresolved", 0)
        return unresolved if isinstance(unresolved, int) else len(unresolved)


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the service is ready; ``checks`` has the result of each check."""

    ready: bool
    checks: Mapping[str, Json]


ContextLike = str | Iterable[Json]
"""A text, or the items of a context (content blocks, messages, tool calls and results)."""


def items_of(context: ContextLike) -> list[Json]:
    """Return the items of ``context``; a text becomes one text item."""
    if isinstance(context, str):
        return [{"type": "text", "text": context}]
    if isinstance(context, Mapping):
        raise TypeError("A context is a list of items; put this single item into a list.")
    return list(context)
