"""Choose the spans of a leaf that become handles so that redaction is reversible, and check that beforehand."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.core.content.handles import LITERAL, Handle, HandleMatch, find_handles
from app.core.content.json_text import MAX_LITERALS, is_json_text
from app.core.content.leaves import Leaf
from app.core.content.text_edits import Conceal, Edit
from app.core.contracts.engines import Span

HandlesInText = Literal["escape", "keep", "leave"]
"""What becomes of text that already looks like a handle: it is concealed, stays if the scope gave it, or stays."""


@dataclass(slots=True)
class _ConcealSpan:
    start: int
    end: int
    label: str
    keep: Handle | None = None


def conceal_edits(
    leaf: Leaf,
    findings: Iterable[Span],
    *,
    masked: Sequence[Span] = (),
    handles: HandlesInText = "escape",
) -> list[Edit]:
    """Return edits that replace ``findings`` by handles so that restoring gives the exact text back.

    The caller replaces ``masked`` spans irreversibly; they are ignored here.

    Text that already looks like a handle, in any spelling that restoring tolerates, is concealed as LITERAL; with
    ``keep`` it stays if the handle exists in the scope, and with ``leave`` it always stays. Then a finding ends where
    an exact handle begins, so that the handle can be read again. If the result could be read differently from what
    was written (a handle that merges with its neighbours, text that turns into JSON), the whole leaf becomes one
    LITERAL; with ``leave`` it does not, since such texts are not restored.
    """
    matches = [
        match
        for match in find_handles(leaf.text)
        if not any(span.start < match.end and match.start < span.end for span in masked)
    ]
    cuts = [_ConcealSpan(span.start, span.end, span.label) for span in findings]
    if handles != "escape":
        cuts = _without_handles(leaf.text, cuts, [match for match in matches if match.exact])
    if handles != "leave":
        cuts += [
            _ConcealSpan(match.start, match.end, LITERAL, match.handle if handles == "keep" else None)
            for match in matches
        ]
    cuts = _merge_overlaps(cuts)
    if cuts and handles != "leave" and not masked and not _is_reversible(leaf, cuts):
        cuts = [_ConcealSpan(0, len(leaf.text), LITERAL)]
    return [Edit(leaf, cut.start, cut.end, Conceal(cut.label, cut.keep)) for cut in cuts]


def _without_handles(
    text: str, cuts: Sequence[_ConcealSpan], matches: Sequence[HandleMatch]
) -> list[_ConcealSpan]:
    """Return ``cuts`` without the handles in them; a rest of blanks and punctuation says nothing and is dropped."""
    starts, ends = [match.start for match in matches], [match.end for match in matches]
    rests: list[_ConcealSpan] = []
    for cut in cuts:
        first, last = bisect_right(ends, cut.start), bisect_left(starts, cut.end)
        if first >= last:
            rests.append(cut)
            continue
        edges = [cut.start, *(edge for match in matches[first:last] for edge in match[:2]), cut.end]
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            rest = text[start:end]
            if any(map(str.isalnum, rest)):
                begin = start + len(rest) - len(rest.lstrip())
                rests.append(_ConcealSpan(begin, begin + len(rest.strip()), cut.label))
    return rests


def _merge_overlaps(cuts: list[_ConcealSpan]) -> list[_ConcealSpan]:
    cuts.sort(key=lambda cut: (cut.start, -cut.end))
    merged: list[_ConcealSpan] = []
    for cut in cuts:
        if cut.start >= cut.end:
            continue
        if not merged or cut.start >= merged[-1].end:
            merged.append(cut)
            continue
        last = merged[-1]
        # Overlapping spans become one, so that no part of either is left in the text.
        if last.label == LITERAL:
            last.label = cut.label
        last.keep = None
        last.end = max(last.end, cut.end)
    return merged


def _is_reversible(leaf: Leaf, cuts: Sequence[_ConcealSpan]) -> bool:
    pieces: list[str] = []
    expected = []
    length = position = 0
    for cut in cuts:
        handle = str(Handle(cut.label, 1))
        pieces += [leaf.text[position : cut.start], handle]
        length += cut.start - position
        expected.append((length, length + len(handle)))
        length += len(handle)
        position = cut.end
    redacted = "".join((*pieces, leaf.text[position:]))
    if [(match.start, match.end) for match in find_handles(redacted)] != expected:
        return False
    return leaf.depth >= MAX_LITERALS or not is_json_text(redacted)
