"""Strip hidden content from foreign texts: invisible characters, and markup that is hidden or active."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app.core.content.markup import (
    BEACON,
    SCRIPT_URL,
    TAG_LIKE,
    MarkupEdit,
    is_beacon,
    is_script_url,
    markup_parts,
)

INVISIBLE: Final = "invisible_characters"
TERMINAL: Final = "terminal_escape"
MARKDOWN_COMMENT: Final = "markdown_comment"
NESTED: Final = "nested_markup"

_ROUNDS: Final = 6
_UNSEEN_CHARACTERS: Final = re.compile(
    "(\x1b\\[[0-9;?]{0,24}[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+)"
    "|[\U000e0000-\U000e007f]+|[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
    "|[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u180e\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u061c\ufff9-\ufffb]+"
)
_FLAG: Final = "\U0001f3f4"
_LONGEST_FLAG: Final = 8
_JOINERS: Final = frozenset("\u200c\u200d")
_DIRECTIONS: Final = frozenset("\u200e\u200f\u061c")
_KEYCAPS: Final = frozenset("#*0123456789")
_TARGET: Final = re.compile(
    r"\]\(\s{0,8}<?([A-Za-z][A-Za-z0-9+.&#;-]{1,40}[:;][^\s)>]{1,2000}|[/\\]{2}[^\s)>]{1,2000})"
)
_DEFINITION: Final = re.compile(
    r"(?m)^(?:[ \t]{0,8}(?:>|[-*+]|\d{1,9}[.)])){0,4} {0,3}\[([^\]\n]{1,200})\]:"
    r"[ \t]{0,8}\n?[ \t]{0,8}<?([^\s>]{1,2000})[^\n]*\n?"
)
_COMMENT_LABELS: Final = frozenset({"//", "comment", "hidden", "#", "_", "_comment_"})
_FENCE: Final = re.compile(r"(?m)^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,})[^\n]*$")
_INLINE: Final = re.compile(r"`[^`\n]{1,400}`")
_LONGEST_LABEL: Final = 400


@dataclass(frozen=True, slots=True)
class Sanitized:
    """A stripped text, how much of each kind was stripped, and the ``[start, end)`` of hidden parts in the input."""

    text: str
    stripped: Mapping[str, int]
    hidden: tuple[tuple[int, int], ...]


def sanitized(text: str) -> Sanitized:
    """Return ``text`` without hidden content, also without content that only appears once other parts are stripped."""
    counts: Counter[str] = Counter()
    hidden: tuple[tuple[int, int], ...] = ()
    for round_number in range(_ROUNDS):
        parts = _outermost(
            sorted([*_invisible_edits(text), *_markup_edits(text)], key=lambda part: (part.start, -part.end))
        )
        if not parts:
            return Sanitized(text, dict(counts), hidden)
        if round_number == 0:
            hidden = tuple((part.start, part.end) for part in parts if part.hidden)
        counts.update(part.kind for part in parts)
        text = _with_edits(text, parts)
    # The markup is nested on purpose, so disarm all of it.
    counts[NESTED] += 1
    plain = TAG_LIKE.sub(lambda match: f"&lt;{match[0][1:]}", text).replace("](", "] (")
    return Sanitized(_with_edits(plain, list(_invisible_edits(plain))), dict(counts), hidden)


def _with_edits(text: str, parts: list[MarkupEdit]) -> str:
    pieces = []
    place = 0
    for part in parts:
        pieces += [text[place : part.start], part.instead]
        place = part.end
    return "".join([*pieces, text[place:]])


def _outermost(parts: list[MarkupEdit]) -> list[MarkupEdit]:
    """Return the outer parts among those that overlap."""
    kept: list[MarkupEdit] = []
    for part in parts:
        if not kept or part.start >= kept[-1].end:
            kept.append(part)
    return kept


def _invisible_edits(text: str) -> Iterator[MarkupEdit]:
    if text.isascii() and text.isprintable():
        return
    for match in _UNSEEN_CHARACTERS.finditer(text):
        start, end = match.span()
        if match[1]:
            yield MarkupEdit(start, end, TERMINAL, hidden=True)
        elif not _belongs_there(text, start, end):
            yield MarkupEdit(start, end, INVISIBLE, hidden=True)


def _belongs_there(text: str, start: int, end: int) -> bool:
    """Return whether invisible characters are legitimate: in an emoji, a flag, or a script that needs them."""
    before, after = text[start - 1 : start], text[end : end + 1]
    run = text[start:end]
    if "\U000e0000" <= run[0] <= "\U000e007f":
        return before == _FLAG and len(run) <= _LONGEST_FLAG and run[-1] == "\U000e007f"
    foreign = bool(before) and not before.isascii()
    if "\ufe00" <= run[0] <= "\ufe0f" or "\U000e0100" <= run[0] <= "\U000e01ef":
        return len(run) == 1 and (foreign or before in _KEYCAPS)
    if len(run) > 1 and run[0] != "\ufe0f":
        return False
    if run in _JOINERS:
        return foreign and bool(after) and not after.isascii()
    return run in _DIRECTIONS and (foreign or (bool(after) and not after.isascii()))


def _markup_edits(text: str) -> Iterator[MarkupEdit]:
    if "<" not in text and "](" not in text and "]:" not in text:
        return
    plain = _without_code(text)
    yield from markup_parts(plain)
    yield from _target_edits(plain)
    yield from _definition_edits(plain)


def _without_code(text: str) -> str:
    """Return a text of the same length in which Markdown code is blank.

    If there are tags outside of code, the text may be an HTML page, in which Markdown's marks mean nothing.
    """
    if "`" not in text and "~~~" not in text:
        return text
    pieces, place = [], 0
    for start, end in _code_spans(text):
        pieces += [text[place:start], re.sub(r"[^\n]", " ", text[start:end])]
        place = end
    blank = "".join([*pieces, text[place:]])
    return text if TAG_LIKE.search(blank) else blank


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    fences = _FENCE.finditer(text)
    for opening in fences:
        if opening.start() < place:
            continue
        yield from (match.span() for match in _INLINE.finditer(text, place, opening.start()))
        place = len(text)
        for closing in fences:
            if closing[1][0] == opening[1][0] and len(closing[1]) >= len(opening[1]):
                place = closing.end()
                break
        yield opening.start(), place
    yield from (match.span() for match in _INLINE.finditer(text, place))


def _target_edits(text: str) -> Iterator[MarkupEdit]:
    """Yield images whose URL can carry data out, and links that run scripts or have placeholders to fill in."""
    for match in _TARGET.finditer(text):
        label = _find_label(text, match.start())
        if label is None:
            continue
        start, image = label
        url = match[1]
        runs = is_script_url(url)
        if not runs and not is_beacon(url, shown=image):
            continue
        closing = text.find(")", match.end(), match.end() + _LONGEST_LABEL)
        end = closing + 1 if closing >= 0 else match.end()
        label_text = text[start + (2 if image else 1) : match.start()]
        yield MarkupEdit(start, end, SCRIPT_URL if runs else BEACON, re.sub(r"[\[\]()!<>]", "", label_text))


def _find_label(text: str, closing: int) -> tuple[int, bool] | None:
    """Return the start of the label that ends at ``closing``, and whether it is an image's; None without a start."""
    depth = 0
    for place in range(closing, max(-1, closing - _LONGEST_LABEL), -1):
        if text[place] == "]":
            depth += 1
        elif text[place] == "[":
            depth -= 1
            if depth == 0:
                image = text[place - 1 : place] == "!"
                return (place - 1 if image else place), image
    return None


def _definition_edits(text: str) -> Iterator[MarkupEdit]:
    shown = "![" in text
    for match in _DEFINITION.finditer(text):
        if match[1].strip().lower() in _COMMENT_LABELS and not re.match(r"(?i)https?://", match[2]):
            yield MarkupEdit(match.start(), match.end(), MARKDOWN_COMMENT, hidden=True)
        elif is_script_url(match[2]) or is_beacon(match[2], shown=shown):
            yield MarkupEdit(match.start(), match.end(), BEACON, hidden=True)
