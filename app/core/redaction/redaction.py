"""Choose the spans of a leaf that become handles so that redaction is reversible, and check that beforehand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.core.content.context import Conceal, Edit
from app.core.content.handles import LITERAL, Handle, find_handles
from app.core.content.json_text import MAX_LITERALS, is_json_text
from app.core.content.leaves import Leaf
from app.core.contracts.engines import Span


@dataclass(slots=True)
class _ConcealSpan:
    start: int
    end: int
    label: str
    keep: Handle | None = None


def conceal_edits(
    leaf: Leaf, findings: Iterable[Span], *, masked: Sequence[Span] = (), keep_handles: bool = False
) -> list[Edit]:
    """Return edits that replace ``findings`` by handles so that restoring gives the exact text back.

    The caller replaces ``masked`` spans irreversibly; they are ignored here.

    Text that already looks like a handle, in any spelling that restoring tolerates, is concealed as LITERAL; with
    ``keep_handles`` it stays if the handle exists in the scope. If the result could be read differently from what was
    written (a handle that merges with its neighbours, text that turns into JSON), the whole leaf becomes one LITERAL.
    """
    cuts = [_ConcealSpan(span.start, span.end, span.label) for span in findings]
    cuts += [
        _ConcealSpan(match.start, match.end, LITERAL, match.handle if keep_handles else None)
        for match in find_handles(leaf.text)
        if not any(span.start < match.end and match.start < span.end for span in masked)
    ]
    cuts = _merge_overlaps(cuts)
    if cuts and not keep_handles and not masked and not _is_reversible(leaf, cuts):
        cuts = [_ConcealSpan(0, len(leaf.text), LITERAL)]
    return [Edit(leaf, cut.start, cut.end, Conceal(cut.label, cut.keep)) for cut in cuts]


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
