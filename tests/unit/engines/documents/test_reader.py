"""Documents made to take memory and time: each is refused within its limits, and those after it are read."""

import io
import zipfile
import zlib

import docx
import pytest

from app.core.errors import InvalidArgumentsError, ServiceError, TooLargeError
from app.engines.documents.extraction import DOCX
from app.engines.documents.reader import DocumentReader
from tests.unit.engines.documents.samples import pdf_of


def docx_of(body: bytes) -> bytes:
    """Return a Word document whose body is this XML."""
    made, written = io.BytesIO(), io.BytesIO()
    docx.Document().save(made)
    head = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
    with zipfile.ZipFile(made) as source, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            document = head + body + b"</w:body></w:document>"
            target.writestr(name, document if name == "word/document.xml" else source.read(name))
    return written.getvalue()


def unfolding_pdf() -> bytes:
    """Return a PDF of one page whose few bytes are a million orders to write."""
    page = pdf_of("x")
    begin, end = page.index(b"stream\n") + 7, page.index(b"\nendstream")
    packed = zlib.compress(b"BT /F1 12 Tf (hello world) Tj ET\n" * 300_000, 9)
    changed = page[:begin] + packed + page[end:]
    return changed.replace(b"<< /Length", b"<< /Filter /FlateDecode /Length", 1)


PARAGRAPH = b"<w:p><w:r><w:t>hello</w:t></w:r></w:p>"
BOMBS = {
    "paragraphs": (docx_of(b"<w:p/>" * 2_000_000), DOCX),
    "nested page": (b"<div>" * 150_000 + b"x", "text/html"),
    "unfolding page": (unfolding_pdf(), "application/pdf"),
}


@pytest.mark.parametrize("name", sorted(BOMBS))
async def test_a_document_that_takes_too_long_is_refused_and_the_next_one_is_read(name: str) -> None:
    reader = DocumentReader(short_s=1, long_s=1, at_once=1)
    with pytest.raises(TooLargeError):
        await reader.read(*BOMBS[name])
    after = await DocumentReader().read(docx_of(PARAGRAPH), DOCX)
    assert after.text == "hello"


async def test_a_document_that_takes_too_much_memory_is_refused_in_its_own_process() -> None:
    with pytest.raises(ServiceError):
        await DocumentReader(short_s=3).read(docx_of(b"<w:p/>" * 10_000_000), DOCX)


async def test_a_cell_that_spans_a_billion_columns_is_left_out() -> None:
    span = b'<w:tc><w:tcPr><w:gridSpan w:val="1000000000"/></w:tcPr><w:p/></w:tc>'
    body = b"<w:tbl><w:tblGrid/><w:tr>" + span + b"</w:tr></w:tbl>" + PARAGRAPH
    assert (await DocumentReader().read(docx_of(body), DOCX)).text == "hello"


async def test_what_is_wrong_with_a_document_is_said_as_it_is_without_a_process() -> None:
    with pytest.raises(InvalidArgumentsError) as broken:
        await DocumentReader().read(b"%PDF-1.4 nothing", "application/octet-stream", "a.pdf")
    assert broken.value.details == {"pointer": "/content"}
    with pytest.raises(InvalidArgumentsError) as unknown:
        await DocumentReader().read(b"GIF89a", "image/gif")
    assert unknown.value.details["pointer"] == "/mediaType"


async def test_a_page_of_many_tags_keeps_its_encoding() -> None:
    page = "<p>é</p>".encode("latin-1") * 5000
    assert (await DocumentReader().read(page, "text/html; charset=iso-8859-1")).text.startswith("é\n\né")
