"""Extract the text of a Word document (DOCX)."""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any, Final

from app.core.errors import InvalidArgumentsError, ServiceError, TooLargeError
from app.engines.documents.parsing import bounded

UNPACKED_BYTES: Final = 200 * 1024 * 1024
_WIDEST: Final = 1000
"""Most columns of a table row; Word itself allows 63."""
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)


def docx_text(data: bytes) -> tuple[str | None, str]:
    """Return the title and the text of paragraphs, lists and tables in order, without headers, notes or comments."""
    # The parser is loaded here, because only installations that ingest documents need it.
    import docx  # noqa: PLC0415

    try:
        _check_size(data)
        document = docx.Document(io.BytesIO(data))
        lines = list(bounded(_lines(document.iter_inner_content())))
        title = document.core_properties.title or None
    except (ServiceError, MemoryError):
        raise
    except Exception as error:
        raise InvalidArgumentsError(
            "The document cannot be read as DOCX; it is broken or of another kind.",
            details={"pointer": "/content"},
        ) from error
    text = "\n".join(lines).strip()
    first = text.partition("\n")[0]
    return title or (first[2:] if first.startswith("# ") else None), text


def _check_size(data: bytes) -> None:
    """Refuse an archive that unpacks to far more than any normal document."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > UNPACKED_BYTES:
        raise TooLargeError("The document unpacks to too much.", details={"limit": UNPACKED_BYTES})


def _lines(blocks: Any) -> Iterator[str]:
    for block in blocks:
        if hasattr(block, "rows"):
            yield from _rows(block)
            yield ""
            continue
        words = block.text.strip()
        if not words:
            continue
        style = (block.style.name if block.style is not None else None) or ""
        heading = _HEADING.match(style)
        if heading or style == "Title":
            yield f"{'#' * (int(heading[1]) if heading else 1)} {words}"
            yield ""
        elif style.startswith("List"):
            yield f"- {words}"
        else:
            yield words
            yield ""


def _rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        # The file states a span as a number, and each column of it would become a cell: bound it first.
        if sum(cell.grid_span for cell in row._tr.tc_lst) > _WIDEST:  # noqa: SLF001 - the library has no public name for it
            continue
        cells: list[str] = []
        previous = None
        for cell in row.cells:
            # The library repeats a cell for each column that it spans.
            if cell._tc is not previous:  # noqa: SLF001 - the library has no public name for it
                cells.append(" ".join(cell.text.split()))
            previous = cell._tc  # noqa: SLF001
        yield " | ".join(cells)
