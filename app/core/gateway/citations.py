"""Adjust what an answer says about positions in its texts: offsets of citations and probabilities of tokens."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from app.core.gateway.answer_texts import DEEPEST
from app.core.gateway.channels import Path
from app.core.gateway.offsets import OffsetMap

_IN_DOCUMENT: Final = ("start_char_index", "end_char_index")
_TEXT_MEMBERS: Final = ("text", "content")

FindMap = Callable[[Path], OffsetMap | None]
"""Returns the map of the text at a place of the answer, or None if it did not change."""


def moved_citations(
    value: Any, path: Path, find_map: FindMap, documents: Sequence[OffsetMap] = ()
) -> Iterator[tuple[Path, int]]:
    """Yield the new offsets of citations below ``path`` by their places.

    ``documents`` are the maps of the request's documents, from the text that the model saw to the caller's.
    """
    if len(path) > DEEPEST:
        return
    if isinstance(value, list):
        for number, element in enumerate(value):
            yield from moved_citations(element, (*path, number), find_map, documents)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name == "annotations" and isinstance(member, list):
                offsets = _map_beside(value, path, find_map)
                for number, annotation in enumerate(member):
                    yield from moved_annotation(annotation, (*path, name, number), offsets)
            else:
                yield from moved_citations(member, (*path, name), find_map, documents)
        yield from moved_in_document(value, path, documents)


def moved_annotation(annotation: Any, path: Path, offsets: OffsetMap | None) -> Iterator[tuple[Path, int]]:
    """Yield the new offsets of one annotation of a text; some interfaces put them into a member named by its type."""
    if offsets is None or not isinstance(annotation, dict):
        return
    start, end = annotation.get("start_index"), annotation.get("end_index")
    if isinstance(start, int) and offsets.start(start) != start:
        yield (*path, "start_index"), offsets.start(start)
    if isinstance(end, int) and offsets.end(end) != end:
        yield (*path, "end_index"), offsets.end(end)
    kind = annotation.get("type")
    if isinstance(kind, str) and isinstance(annotation.get(kind), dict):
        yield from moved_annotation(annotation[kind], (*path, kind), offsets)


def moved_in_document(
    citation: Mapping[str, Any], path: Path, documents: Sequence[OffsetMap]
) -> Iterator[tuple[Path, int]]:
    """Yield the new offsets of a citation of one of the request's documents."""
    number = citation.get("document_index")
    if not isinstance(number, int) or not 0 <= number < len(documents):
        return
    offsets = documents[number]
    first, last = (citation.get(name) for name in _IN_DOCUMENT)
    if isinstance(first, int) and offsets.start(first) != first:
        yield (*path, _IN_DOCUMENT[0]), offsets.start(first)
    if isinstance(last, int) and offsets.end(last) != last:
        yield (*path, _IN_DOCUMENT[1]), offsets.end(last)


def outdated_logprobs(
    value: Any, path: Path, is_changed: Callable[[Path], bool]
) -> Iterator[tuple[Path, Any]]:
    """Yield the new values of ``logprobs`` whose text changed: null beside a message, empty beside its own text.

    ``is_changed`` says whether any text below a place changed.
    """
    if len(path) > DEEPEST:
        return
    if isinstance(value, list):
        for number, element in enumerate(value):
            yield from outdated_logprobs(element, (*path, number), is_changed)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name == "logprobs":
                if member and is_changed(path):
                    yield (*path, name), [] if isinstance(member, list) else None
            else:
                yield from outdated_logprobs(member, (*path, name), is_changed)


def _map_beside(holder: Mapping[str, Any], path: Path, find_map: FindMap) -> OffsetMap | None:
    name = next((name for name in _TEXT_MEMBERS if isinstance(holder.get(name), str)), None)
    return find_map((*path, name)) if name is not None else None
