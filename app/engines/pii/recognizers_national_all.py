"""Every recognizer of a national identifier, region by region."""

from app.engines.pii import (
    recognizers_national_americas,
    recognizers_national_asia,
    recognizers_national_documents,
    recognizers_national_east,
    recognizers_national_west,
)
from app.engines.pii.recognizers_national import NationalRecognizer

_TABLES = (
    *recognizers_national_west.ROWS,
    *recognizers_national_east.ROWS,
    *recognizers_national_americas.ROWS,
    *recognizers_national_asia.ROWS,
    *recognizers_national_documents.ROWS,
)


def national_recognizers() -> list[NationalRecognizer]:
    """Return one recognizer for each row of the tables."""
    return [NationalRecognizer(row) for row in _TABLES]
