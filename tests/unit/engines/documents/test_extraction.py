"""Documents of each format give the text that a reader would see, and broken ones a clear refusal."""

import io
import zipfile

import docx
import pypdf
import pytest

from app.core.errors import InvalidArgumentsError, TooLargeError
from app.engines.documents import extraction
from app.engines.documents.extraction import DOCX, extracted
from tests.unit.engines.documents.samples import pdf_of


def test_plain_text_is_taken_as_it_is():
    assert extracted(b"One\r\nTwo\r\n", "text/plain") == extraction.Extracted(None, "One\nTwo")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        ("é".encode(), "text/plain"),
        ("é".encode("utf-8-sig"), "text/plain"),
        ("é".encode("utf-16"), "text/plain"),
        ("é".encode("latin-1"), "text/plain; charset=iso-8859-1"),
        ("<meta charset=windows-1252><p>é".encode("cp1252"), "text/html"),
    ],
)
def test_text_is_decoded_as_marked(data, media_type):
    assert extracted(data, media_type).text == "é"


@pytest.mark.parametrize("media_type", ["text/plain", "text/plain; charset=klingon"])
def test_text_in_another_encoding_than_it_says_is_refused(media_type):
    with pytest.raises(InvalidArgumentsError, match="encoding"):
        extracted(b"\xff\xe9\xe8", media_type)


def test_nothing_that_databases_refuse_comes_through():
    assert extracted(b"a\x00b\x1bc\td", "text/plain").text == "abc\td"


def test_markdown_keeps_its_form_and_gives_its_first_heading():
    found = extracted(b"intro\n\n# The plan #\n\n- one\n", "text/markdown")
    assert found.title == "The plan"
    assert found.text.endswith("- one")


def test_front_matter_names_the_document_and_is_no_text():
    found = extracted(b'---\ntitle: "Q4 plan"\ntags: [x]\n---\nBody\n', "text/markdown")
    assert found == extraction.Extracted("Q4 plan", "Body")


def test_html_gives_headings_lists_tables_and_code():
    page = (
        "<html><head><title> The\n title </title><style>p{}</style></head><body><nav>menu</nav>"
        "<h2>Plan</h2><p>We <b>go</b>\n on &amp; on.</p><ul><li>one</li><li>two</li></ul>"
        "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
        "<pre>x  = 1\ny = 2</pre></body></html>"
    )
    found = extracted(page.encode(), "text/html")
    assert found.title == "The title"
    assert found.text == (
        "## Plan\n\nWe go on & on.\n\n- one\n\n- two\n\na | b\n1 | 2\n\n```\nx  = 1\ny = 2\n```"
    )


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>SECRET</script>",
        "<!-- SECRET -->",
        "<p hidden>SECRET</p>",
        '<p style="display : none">SECRET</p>',
        '<span style="font-size:0px">SECRET</span>',
        '<p style="visibility:hidden">SECRET <b>SECRET</b></p>',
        "<template>SECRET</template>",
        '<div aria-hidden="true">SECRET</div>',
        '<img alt="x" src="http://a/SECRET">',
    ],
)
def test_what_a_reader_of_html_does_not_see_is_left_out(hidden):
    assert extracted(f"<p>seen</p>{hidden}".encode(), "text/html").text == "seen"
    assert "SECRET" in extracted(b"<p>seen</p><p>SECRET</p>", "text/html").text


def test_html_nested_deeper_than_the_stack_is_read():
    assert extracted(b"<div>" * 10_000 + b"deep", "text/html").text == "deep"


def test_a_pdf_gives_its_pages_and_title():
    found = extracted(pdf_of("First page", "Second page", title="Report"), "application/pdf")
    assert found.title == "Report"
    assert found.text == "First page\n\nSecond page"


def test_words_cut_at_the_end_of_a_line_of_a_pdf_are_joined():
    assert extracted(pdf_of("exam-\nple"), "application/pdf").text == "example"


def test_an_encrypted_pdf_is_refused_and_one_without_a_password_is_read():
    assert extracted(encrypted("", owner="owner"), "application/pdf").text == "Closed"
    with pytest.raises(InvalidArgumentsError, match="password"):
        extracted(encrypted("secret"), "application/pdf")


def test_a_pdf_without_text_is_refused_with_advice():
    with pytest.raises(InvalidArgumentsError, match="OCR"):
        extracted(pdf_of(""), "application/pdf")


def test_docx_gives_headings_lists_and_tables_in_their_order():
    document = docx.Document()
    document.core_properties.title = "Notes"
    document.add_heading("Plan", level=1)
    document.add_paragraph("We go on.")
    document.add_paragraph("one", style="List Bullet")
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "a", "b"
    document.add_paragraph("The end.")
    file = io.BytesIO()
    document.save(file)
    found = extracted(file.getvalue(), DOCX)
    assert found.title == "Notes"
    assert found.text == "# Plan\n\nWe go on.\n\n- one\na | b\n\nThe end."


@pytest.mark.parametrize("media_type", ["application/pdf", DOCX])
@pytest.mark.parametrize("data", [b"", b"garbage", b"%PDF-1.7\ngarbage", b"PK\x03\x04garbage"])
def test_broken_files_are_refused(media_type, data):
    with pytest.raises(InvalidArgumentsError):
        extracted(data, media_type)


def test_an_archive_that_unpacks_to_too_much_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x", "w") as entry:
        for _ in range(201):
            entry.write(b"\0" * 1024 * 1024)
    with pytest.raises(TooLargeError):
        extracted(file.getvalue(), DOCX)


def test_an_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(InvalidArgumentsError) as refused:
        extracted(b"GIF89a", "image/gif")
    assert "application/pdf" in refused.value.details["known"]


@pytest.mark.parametrize(("name", "text"), [("a.html", "x"), ("B.MD", "<p>x"), ("notes.txt", "<p>x")])
def test_the_name_says_the_kind_where_the_media_type_does_not(name, text):
    assert extracted(b"<p>x", "application/octet-stream", name).text == text


def encrypted(user, owner=None):
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf_of("Closed")))
    writer.encrypt(user, owner, algorithm="AES-256")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()
