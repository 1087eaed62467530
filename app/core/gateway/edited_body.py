"""A body with the texts that middlewares changed; all other bytes stay."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from app.core.content.context import Context
from app.core.content.shapes.encodings import count_media
from app.core.errors import InternalError, ServiceError
from app.core.gateway.body_parts import (
    BodyItem,
    BodyLeaf,
    body_leaves,
    changes,
    plain_text,
    read_context,
    string_pairs,
)
from app.core.gateway.channels import Path
from app.core.gateway.json_body import JsonBody


@dataclass(frozen=True)
class EditedBody:
    """A body, its current items, items that were added in front, and new values by path."""

    body: JsonBody
    parts: tuple[BodyItem, ...]
    added: tuple[Any, ...] = ()
    values: Mapping[Path, Any] = field(default_factory=dict)

    @property
    def items(self) -> list[Any]:
        """Return the context items, in the order of the body."""
        return [*self.added, *(part.item for part in self.parts)]

    @cached_property
    def context(self) -> Context:
        """Return the items of the body as middlewares read them; parsed once, however often it is read."""
        return read_context(self.parts)

    @cached_property
    def unread(self) -> Counter[str]:
        """Return by kind how much of the items nobody can scan, and under ``unknown`` items of unknown types."""
        texts = [plain_text(part.item) for part in self.parts]
        rest = [part for part, text in zip(self.parts, texts, strict=True) if text is None]
        # A message of one text holds nothing else; most are, and parsing them again takes longer than all of the rest.
        counts = Counter(blob=sum(count_media(text) for text in texts if text is not None))
        try:
            context = self.context if len(rest) == len(self.parts) else read_context(rest)
        except ServiceError:
            context = self.context  # it raises the same, and names the place in the whole
        counts.update(context.unseen)
        counts["unknown"] += sum(context.skipped.values())
        return +counts

    def leaves(self, signed: Sequence[Path]) -> Iterator[BodyLeaf]:
        """Yield every text with its place; ``signed`` are the paths of signed blocks."""
        yield from body_leaves(self.parts, self.context, signed)

    def forms(self, later: "EditedBody") -> Iterator[tuple[str, str]]:
        """Yield every string of the items and what it is in ``later``; nothing if that has other items."""
        if len(self.parts) == len(later.parts):
            for before, after in zip(self.parts, later.parts, strict=True):
                yield from string_pairs(before.item, after.item)

    def changed(self, items: Sequence[Any]) -> "EditedBody":
        """Return the body with changed ``items``; raise InternalError if one is missing or changed its form."""
        added = len(items) - len(self.parts)
        if added < len(self.added):
            raise InternalError("A middleware dropped parts of a body.")
        values = changes(self.parts, items[added:])
        overlaps = _overlap(self.values, values)
        return replace(
            self,
            body=self.written if overlaps else self.body,
            parts=tuple(part.with_item(item) for part, item in zip(self.parts, items[added:], strict=True)),
            added=tuple(items[:added]),
            values=values if overlaps else {**self.values, **values},
        )

    @cached_property
    def written(self) -> JsonBody:
        """Return the body with all changes but for what was added in front; written once, however often it is read."""
        return self.body.replaced(self.values)


def _overlap(earlier: Mapping[Path, Any], later: Mapping[Path, Any]) -> bool:
    """Return whether a path of one leads through a path of the other."""
    return not (_beginnings(earlier).isdisjoint(later) and _beginnings(later).isdisjoint(earlier))


def _beginnings(paths: Collection[Path]) -> set[Path]:
    return {path[:size] for path in paths for size in range(len(path))}
