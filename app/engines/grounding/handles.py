"""Find handles of an answer that the sources do not have: they stand for nothing, or for somebody else."""

from collections.abc import Iterator

from app.core.content.handles import TOLERATED_LABELS, find_handles
from app.core.contracts.grounding import AnswerFinding
from app.engines.grounding.sources import Sources


def check_handles(text: str, sources: Sources) -> Iterator[AnswerFinding]:
    """Yield a finding for each handle that the sources do not have."""
    source_handles = sources.handles
    labels = {handle.label for handle in source_handles}
    for match in find_handles(text):
        handle = match.handle
        ours = handle.label in TOLERATED_LABELS or handle.label in labels or handle.label.startswith("SECRET")
        if handle in source_handles or not ours:
            continue
        near = next((place for other, place in source_handles.items() if other.label == handle.label), None)
        message = (
            "This handle is not in the context, which has others of its kind."
            if near is not None
            else "This handle is not in the context."
        )
        yield AnswerFinding("handle", match.start, match.end, "high", 0.9, message, near)
