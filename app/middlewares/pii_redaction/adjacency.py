"""Find adjacent texts of a context that a model reads as one, so that data may be split over them."""

from collections.abc import Sequence
from typing import Final

from app.core.content.leaves import Leaf, LeafPlace

_RUNNING_PLACES: Final = frozenset({LeafPlace.TEXT, LeafPlace.TOOL_RESULT})
_RUNNING_NAMES: Final = frozenset({"text", "content", "refusal", "thinking", "transcript"})
_SENTENCE_ENDS: Final = frozenset(".!?:;\u2026\u3002\uff01\uff1f")
_CLOSERS: Final = "\"'\u201d\u2019\u00bb)]}*_`"


def adjacent_runs(leaves: Sequence[Leaf]) -> list[list[int]]:
    """Return the positions of adjacent texts of one role, as runs of two or more.

    Blocks of one message, messages of one role and blocks of one tool's result are adjacent. A run ends where a
    sentence or a line ends and the next text begins a new one, since no value is split there.
    """
    runs: list[list[int]] = []
    open_run: list[int] = []
    for position, leaf in enumerate(leaves):
        if not leaf.text:
            continue
        if open_run and not _may_continue(leaves[open_run[-1]], leaf):
            runs.append(open_run)
            open_run = []
        open_run.append(position)
    return [run for run in (*runs, open_run) if len(run) > 1]


def _may_continue(left: Leaf, right: Leaf) -> bool:
    """Return whether ``right`` may continue ``left`` in the middle of a sentence."""
    if left.place is not right.place or left.place not in _RUNNING_PLACES or left.role != right.role:
        return False
    if LeafPlace.TEXT is left.place and not (_is_running(left) and _is_running(right)):
        return False
    if left.depth or right.depth or not (left.value.is_plain_text and right.value.is_plain_text):
        return False
    if left.place is LeafPlace.TOOL_RESULT and left.value.path[0] != right.value.path[0]:
        return False
    return not _is_closed(left.text[-8:], right.text[:8])


def _is_running(leaf: Leaf) -> bool:
    """Return whether a text is one that the model reads in a row with others, and not a title or another member."""
    name = leaf.value.path[-1]
    return isinstance(name, int) or name in _RUNNING_NAMES


def _is_closed(end: str, begin: str) -> bool:
    """Return whether a sentence or a line ends between two texts, so that no value can continue."""
    if end[-1] in "\r\n" or begin[0] in "\r\n":
        return True
    last = end.rstrip().rstrip(_CLOSERS)[-1:]
    first = begin.lstrip()[:1]
    return last in _SENTENCE_ENDS and not first.islower() and not first.isdigit()
