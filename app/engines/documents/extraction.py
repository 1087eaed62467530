"""Extract the text of a document in one of the usual formats, as plain Markdown."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from app.core.errors import InvalidArgumentsError
from app.engines.documents.docx_text import docx_text
from app.engines.documents.html_text import html_text
from app.engines.documents.parsing import LONGEST_TEXT, too_long
from app.engines.documents.pdf_text import pdf_text

DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "txt": "text/plain",
    "text": "text/plain",
    "log": "text/plain",
    "md": "text/markdown",
    "markdown": "text/markdown",
    "htm": "text/html",
    "html": "text/html",
    "xhtml": "application/xhtml+xml",
    "pdf": "application/pdf",
    "docx": DOCX,
}
"""Media types by file name extension, used where the given media type is unspecific."""
_UNSPECIFIC = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_HEADING = re.compile(r"^ {0,3}#[ \t]+(\S.{0,500})$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.MULTILINE | re.IGNORECASE)
_UNPRINTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a document: headings as ``#``, list items as ``-``, blank lines between paragraphs.

    ``title`` is the title that the document gives itself, or None.
    """

    title: str | None
    text: str


def media_type_of(media_type: str, name: str) -> str:
    """Return the media type without parameters; where it is unspecific, the one of the extension of ``name``."""
    named_type = media_type.partition(";")[0].strip().lower()
    if named_type in _UNSPECIFIC:
        return MEDIA_TYPES.get(name.rpartition(".")[2].lower(), named_type)
    return named_type


def extracted(data: bytes, media_type: str, name: str = "") -> Extracted:
    """Return the text of ``data``; a long PDF may take seconds, so call it off the event loop.

    Raises InvalidArgumentsError where the format is unknown or the document is broken, encrypted or has no text, and
    TooLargeError where it unpacks to too much.
    """
    kind = media_type_of(media_type, name)
    reader = _READERS.get(kind)
    if reader is None:
        raise InvalidArgumentsError(
            "This kind of document cannot be read; send text, Markdown, HTML, PDF or DOCX and name its media type.",
            details={"pointer": "/mediaType", "known": sorted(set(MEDIA_TYPES.values()))},
        )
    title, text = reader(data, media_type)
    if len(text) > LONGEST_TEXT:
        raise too_long()
    text = _UNPRINTED.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not text:
        raise InvalidArgumentsError(
            "The document contains no text; a scanned one needs text recognition (OCR) first.",
            details={"pointer": "/content"},
        )
    cleaned = " ".join(_UNPRINTED.sub("", title or "").split())
    return Extracted(cleaned[:500] or None, text)


def _decoded(data: bytes, media_type: str) -> str:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _in(encoding, data[len(mark) :])
    named = _CHARSET.search(media_type)
    return _in(named[1] if named else "utf-8", data)


def _in(encoding: str, data: bytes) -> str:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise InvalidArgumentsError(
            "The document is not in the encoding that its media type names (UTF-8 where it names none); "
            "name the right one, as in text/plain; charset=iso-8859-1.",
            details={"pointer": "/mediaType"},
        ) from None


def _plain(data: bytes, media_type: str) -> tuple[str | None, str]:
    return None, _decoded(data, media_type)


def _markdown(data: bytes, media_type: str) -> tuple[str | None, str]:
    text = _decoded(data, media_type).replace("\r\n", "\n")
    front = _FRONT_MATTER.match(text)
    titled = _FRONT_TITLE.search(front[1]) if front else None
    body = text[front.end() :] if front else text
    heading = _HEADING.search(body)
    title = titled[1] if titled and titled[1] else heading[1].rstrip(" \t#") if heading else None
    return title, body


def _html(data: bytes, media_type: str) -> tuple[str | None, str]:
    named = _CHARSET.search(media_type) or any(data.startswith(mark) for mark, _ in _BOMS)
    declared = None if named else _META_CHARSET.search(data[:2048])
    if declared:
        return html_text(_in(declared[1].decode("ascii", "replace"), data))
    return html_text(_decoded(data, media_type))


def _pdf(data: bytes, _media_type: str) -> tuple[str | None, str]:
    return pdf_text(data)


def _docx(data: bytes, _media_type: str) -> tuple[str | None, str]:
    return docx_text(data)


_READERS: Final[Mapping[str, Callable[[bytes, str], tuple[str | None, str]]]] = {
    "text/plain": _plain,
    "text/markdown": _markdown,
    "text/x-markdown": _markdown,
    "text/html": _html,
    "application/xhtml+xml": _html,
    "application/pdf": _pdf,
    DOCX: _docx,
}
