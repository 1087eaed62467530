"""Extract the text of a PDF."""

import io
import logging
import re
from typing import Any, Final

from app.core.errors import InvalidArgumentsError, ServiceError, TooLargeError
from app.engines.documents.parsing import bounded

MOST_PAGES: Final = 5000
_HYPHENATED = re.compile(r"(?<=[a-z])-\n(?=[a-z])")


def pdf_text(data: bytes) -> tuple[str | None, str]:
    """Return the title and the text of all pages, a blank line between them; words cut at line ends are joined."""
    # The parser is loaded here, because only installations that ingest documents need it.
    import pypdf  # noqa: PLC0415

    # The library logs oddities of a file and quotes its content.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        return _read(reader)
    except (ServiceError, MemoryError):
        raise
    except Exception as error:
        raise _broken() from error


def _read(reader: Any) -> tuple[str | None, str]:
    # Many files are encrypted with an empty password, only to ask readers to forbid printing and the like.
    if reader.is_encrypted and not reader.decrypt(""):
        raise InvalidArgumentsError(
            "The PDF is encrypted; remove its password first.", details={"pointer": "/content"}
        )
    count = len(reader.pages)
    if count > MOST_PAGES:
        raise TooLargeError(
            "The PDF has too many pages; split it into several documents.", details={"limit": MOST_PAGES}
        )
    texts = (_HYPHENATED.sub("", page.extract_text() or "").strip() for page in reader.pages)
    pages = list(bounded(texts))
    title = reader.metadata.title if reader.metadata is not None else None
    return (str(title) if title else None), "\n\n".join(page for page in pages if page)


def _broken() -> InvalidArgumentsError:
    return InvalidArgumentsError(
        "The document cannot be read as a PDF; it is broken or of another kind.",
        details={"pointer": "/content"},
    )
