"""Remember what became of the messages of a conversation, so that a new turn pays for what is new in it."""

import secrets
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from app.core.content.handles import find_handles
from app.core.content.shapes.encodings import LEAST_MEDIA, count_media
from app.core.contracts.policy_steps import Step
from app.core.contracts.settled_texts import Findings, SettledTexts
from app.core.strictjson import dumps

_ALONE: Final = ("pii_redaction", "secret_redaction")
"""Middlewares in whose hands a message depends on itself and, for the first of them, on names in other messages."""
_KEY: Final = secrets.token_bytes(64)
_DIGEST: Final = 16
_PER_ITEM: Final = 600
_PER_FINDING: Final = 120
_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_MEMBERS: Final = frozenset({"role", "content"})
_PLAIN: Final = _MEMBERS | {"type", "tool_call_id"}
_BLOCK: Final = frozenset({"type", "text"})
_IN_BLOCK: Final = ("content", 0, "text")

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class SettledItem:
    """What became of a message with one text: the text with handles, and what was found in it, also by label."""

    form: str
    findings: Findings
    counts: Mapping[str, int]
    handles: tuple[Place, ...]

    @property
    def size(self) -> int:
        """Return about how many bytes it takes."""
        return _PER_ITEM + 2 * len(self.form) + _PER_FINDING * (len(self.findings) + len(self.handles))


@dataclass(slots=True)
class SettledItems:
    """The settled messages of a scope, by keyed digest; it holds no originals and ends with the scope."""

    size: int = 0
    _items: dict[bytes, SettledItem] = field(default_factory=dict)

    def get(self, digest: bytes) -> SettledItem | None:
        """Return what became of a message."""
        return self._items.get(digest)

    def keep(self, digest: bytes, item: SettledItem) -> None:
        """Remember what became of a message."""
        before = self._items.get(digest)
        self.size += item.size - (before.size if before is not None else 0)
        self._items[digest] = item


@dataclass(slots=True)
class SettledPart:
    """The items of one run, parted into settled ones and those that the run must read."""

    items: Sequence[Any]
    digests: Sequence[bytes | None]
    settled: dict[int, SettledItem] = field(default_factory=dict)

    @property
    def rest(self) -> list[int]:
        """Return the numbers of the items that the run must read."""
        return [number for number in range(len(self.items)) if number not in self.settled]

    def texts(self) -> SettledTexts:
        """Return the settled texts, for the middlewares that read the rest."""
        rest = self.rest
        gaps = {place for place, number in enumerate(rest) if number - 1 in self.settled}
        return SettledTexts(
            [text_of(self.items[number]) or "" for number in self.settled],
            [item.findings for item in self.settled.values()],
            frozenset(gaps),
        )

    def unsettle(self, numbers: Sequence[int]) -> None:
        """Let the run read settled items whose texts have these numbers, too."""
        of_texts = list(self.settled)
        for number in numbers:
            del self.settled[of_texts[number]]

    def settle(self, kept: SettledItems, changed: Sequence[Any], texts: SettledTexts) -> None:
        """Remember in ``kept`` what the run made of the items that it read beside ``texts``."""
        for place, number in enumerate(self.rest):
            digest, before, after = self.digests[number], text_of(self.items[number]), text_of(changed[place])
            if digest is None or before is None or after is None:
                continue
            path = (place, "content") if isinstance(changed[place]["content"], str) else (place, *_IN_BLOCK)
            findings = texts.of_new.get(path)
            if findings is None or _has_media(before) or next(find_handles(before), None) is not None:
                continue  # what text like a handle means depends on the texts before it
            handles = {
                (match.handle.label, match.handle.ordinal) for match in find_handles(after, exact=True)
            }
            counts = texts.counts.get(place, Counter[str]())
            kept.keep(digest, SettledItem(after, findings, dict(counts), tuple(sorted(handles))))

    def merged(self, changed: Sequence[Any]) -> list[Any]:
        """Return all items as they are to leave, with ``changed`` for those that the run read."""
        merged = list(self.items)
        for number, settled in self.settled.items():
            merged[number] = _with_text(self.items[number], settled.form)
        for number, item in zip(self.rest, changed, strict=True):
            merged[number] = item
        return merged


def parted(items: Sequence[Any], kept: SettledItems | None, terms: bytes | None) -> SettledPart:
    """Return ``items`` with those settled that ``kept`` has under the same ``terms`` (see ``terms_of``)."""
    if terms is None:
        return SettledPart(items, [None] * len(items))
    texts, roles = list(map(text_of, items)), list(map(_role_of, items))
    under = blake2b(terms + b"\0", key=_KEY, digest_size=_DIGEST)
    digests = [
        None if text is None else _digest(under.copy(), item, text)
        for item, text in zip(items, texts, strict=True)
    ]
    part = SettledPart(items, digests)
    for number, digest in enumerate(digests):
        settled = kept.get(digest) if kept is not None and digest is not None else None
        if settled is not None and _stands_alone(roles, texts, number):
            part.settled[number] = settled
    return part


def terms_of(steps: Sequence[Step], policy_version: int, shared: Collection[Place] = ()) -> bytes | None:
    """Return what settled items depend on beside themselves; None if ``steps`` read more than one item at a time.

    ``shared`` are places of handles that another scope gives them.
    """
    names = tuple(step.name for step in steps)
    if names not in {_ALONE, _ALONE[:1]} or any(
        getattr(step, "on_error", "fail") != "fail" for step in steps
    ):
        return None
    return dumps([policy_version, *([step.name, step.arguments] for step in steps), *sorted(shared)])


def text_of(item: Any) -> str | None:
    """Return the text of a message that has nothing but one text, or None."""
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        return None
    if not item.keys() >= _MEMBERS or not item.keys() <= _PLAIN or item.get("type", "message") != "message":
        return None
    content = item["content"]
    if isinstance(content, list) and len(content) == 1:
        block = content[0]
        if not isinstance(block, dict) or block.keys() != _BLOCK or block["type"] not in _TEXTS:
            return None
        content = block["text"]
    return content if isinstance(content, str) and content else None


def _with_text(item: Any, text: str) -> Any:
    if isinstance(item["content"], str):
        return {**item, "content": text}
    return {**item, "content": [{**item["content"][0], "text": text}]}


def _digest(under: Any, item: Any, text: str) -> bytes:
    # Most messages are a role and a text; the mark tells them from JSON.
    is_short = item.keys() == _MEMBERS and isinstance(item["content"], str)
    under.update(f"m{item['role']}\0{text}".encode() if is_short else b"j" + dumps(item))
    digest: bytes = under.digest()
    return digest


def _role_of(item: Any) -> Any:
    return item.get("role") if isinstance(item, dict) else None


def _has_media(text: str) -> bool:
    return len(text) >= LEAST_MEDIA and count_media(text) > 0


def _stands_alone(roles: Sequence[Any], texts: Sequence[str | None], number: int) -> bool:
    """Return whether other speakers stand on both sides: texts of one speaker may be read as one."""
    behind, before = range(number + 1, len(roles)), range(number - 1, -1, -1)
    return _differs(roles, texts, behind, roles[number]) and _differs(roles, texts, before, roles[number])


def _differs(roles: Sequence[Any], texts: Sequence[str | None], around: range, role: Any) -> bool:
    for number in around:
        if roles[number] == role:
            return False
        if texts[number] is not None:
            return True
    return True
