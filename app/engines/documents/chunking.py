"""Cut a document into parts small enough to be found and shown on their own."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.{0,500})$")
_SENTENCE_END = re.compile("(?<=[.!?:;\u2026\u3002\uff01\uff1f])[\"'\u201d\u2019)\\]]?\\s+|\\n+")
_GAP = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text: ``text == whole[start:end]``; ``headings`` are those above it, outermost first."""

    text: str
    start: int
    end: int
    headings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    end: int
    headings: tuple[str, ...]


def chunked(text: str, *, size: int = 1200, overlap: int = 150) -> list[Chunk]:
    """Cut ``text`` (Markdown or plain) into chunks of at most ``size`` characters.

    It cuts between sections where possible, else between paragraphs, sentences or words, in this order. Within a
    section a chunk begins with up to ``overlap`` characters of the previous one, so that a sentence at a cut is found
    from both sides. White space between chunks belongs to none; everything else belongs to at least one.
    """
    if not 0 <= overlap < size:
        raise ValueError("the overlap must be shorter than a chunk")
    spans: list[_Block] = []
    for block in _pieces(text, size - overlap):
        last = spans[-1] if spans else None
        if last and last.headings == block.headings and block.end - last.start <= size - overlap:
            spans[-1] = _Block(last.start, block.end, last.headings)
        else:
            spans.append(block)
    return [_chunk(text, span, spans[n - 1] if n else None, overlap) for n, span in enumerate(spans)]


def _chunk(text: str, span: _Block, before: _Block | None, overlap: int) -> Chunk:
    start = span.start
    if before is not None and before.headings == span.headings and overlap:
        floor = max(before.start, span.start - overlap)
        ends = [sentence_end.end() for sentence_end in _SENTENCE_END.finditer(text, floor, span.start)]
        gaps = [gap.end() for gap in _GAP.finditer(text, floor, span.start)]
        cuts = [cut for cut in (ends or gaps) if cut < span.start]
        start = cuts[0] if cuts else span.start
    return Chunk(text[start : span.end], start, span.end, span.headings)


def _pieces(text: str, size: int) -> Iterator[_Block]:
    """Yield paragraphs in order, those longer than ``size`` in parts."""
    for block in _paragraphs(text):
        if block.end - block.start <= size:
            yield block
            continue
        for start, end in _parts(text, block.start, block.end, size):
            yield _Block(start, end, block.headings)


def _paragraphs(text: str) -> Iterator[_Block]:
    """Yield runs of lines between blank lines; a fenced block is one run, and a heading begins a new run."""
    path: list[tuple[int, str]] = []
    start: int | None = None
    end = 0
    fence: str | None = None
    under: tuple[str, ...] = ()
    position = 0
    for line in text.splitlines(keepends=True):
        bare = line.rstrip()
        mark = _FENCE.match(bare)
        heading = _HEADING.match(bare) if fence is None else None
        if start is not None and ((not bare and fence is None) or heading):
            yield _Block(start, end, under)
            start = None
        if heading:
            level = len(heading[1])
            path = [heading_above for heading_above in path if heading_above[0] < level] + [
                (level, heading[2].rstrip(" \t#"))
            ]
            under = tuple(title for _, title in path)
        if fence is None:
            fence = mark[1] if mark else None
        elif mark and mark[1].startswith(fence):
            fence = None
        if bare:
            start = position + len(line) - len(line.lstrip()) if start is None else start
            end = position + len(bare)
        position += len(line)
    if start is not None:
        yield _Block(start, end, under)


def _parts(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut ``text[start:end]`` at the last sentence end within ``size``, else at a gap, else anywhere."""
    while end - start > size:
        cut = _last(_SENTENCE_END, text, start, start + size) or _last(_GAP, text, start, start + size)
        stop, following = cut or (start + size, start + size)
        yield start, stop
        start = following
    if start < end:
        yield start, end


def _last(pattern: re.Pattern[str], text: str, start: int, limit: int) -> tuple[int, int] | None:
    """Return start and end of the last match in the later half of the window."""
    match = None
    for match in pattern.finditer(text, start + (limit - start) // 2, limit):  # noqa: B007 - the last one counts
        pass
    return (match.start(), match.end()) if match is not None and match.start() > start else None
